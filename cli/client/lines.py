"""Read messages from JSON lines (`pulsarium client produce --json-lines`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarium.proto.json_values import read_json
from pulsarium.proto.text import did_you_mean

if TYPE_CHECKING:
    from pulsarium.cli.client.encoding import TextSchema

FIELDS: Final = ("value", "key", "properties")
FORM: Final = 'write {"value": ..., "key": "...", "properties": {"NAME": "TEXT"}}, where only value is required'


class Outgoing(NamedTuple):
    """A message to be sent."""

    content: Any
    key: str | bytes | None
    """The key, or the encoded key of a pair."""
    properties: dict[str, str]


def read_lines(name: str, data: bytes, value: TextSchema, key: TextSchema | None) -> Iterator[Outgoing]:
    """Yield the message of each line that is not empty. `key` encodes the keys of pairs.

    Raise ValueError, which names the line, for a line that is no message.
    """
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                yield _message(line.decode(), value, key)
            except ValueError as error:
                raise ValueError(f"{name}:{number}: {error}") from None


def _message(text: str, of_value: TextSchema, of_key: TextSchema | None) -> Outgoing:
    try:
        found = read_json(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{text[:50]!r} is no JSON: {error}; {FORM}") from None
    if not isinstance(found, dict) or "value" not in found:
        raise ValueError(f"{text[:50]!r} has no value: {FORM}")
    for field in found:
        if field not in FIELDS:
            raise ValueError(f"'{field}' is no field of a message: {did_you_mean(field, FIELDS) or FORM}")
    value, key, properties = found["value"], found.get("key"), found.get("properties") or {}
    if not isinstance(properties, dict) or not all(isinstance(each, str) for each in properties.values()):
        raise ValueError(f"the properties {json.dumps(properties)} are no texts by name: {FORM}")
    if key is not None and of_key is not None:
        key = of_key.encode_value(key)
    elif not isinstance(key, str | None):
        raise ValueError(f"the key {json.dumps(key)} is no text: {FORM}")
    return Outgoing(None if value is None else of_value.encode_value(value), key, properties)
