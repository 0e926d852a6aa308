"""Texts and bytes as Java reads and writes them in JSON frames: base64, times, and its words about wrong frames."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pulsarium.broker.clock import instant_text
from pulsarium.broker.jackson import JsonParseError, parse, place

ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
TOO_SHORT: Final = "Input byte[] should at least have 2 bytes for base64 bytes"
ZEROS: Final = re.compile(r"\.?0+Z$")
TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d(?::?\d\d)?)")
READABLE: Final = re.compile(r"(?:\d{4}(?:-\d\d(?:-\d\d(?:T\d\d(?::\d\d)?)?)?)?)?")
NULL_TEXT: Final = 'Cannot invoke "String.getBytes(java.nio.charset.Charset)" because "src" is null'


class WrongFrame(Exception):
    """Error for a frame that Jackson cannot read, with its words."""


def decode_base64(text: str) -> bytes:
    """Decode base64, with or without its padding, as java.util.Base64 does. Raise ValueError with Java's words."""
    data = text.encode("latin-1", "replace")
    stop = data.find(b"=")
    digits = data if stop < 0 else data[:stop]
    rest = len(digits) % 4
    if len(data) == 1:
        raise ValueError(TOO_SHORT)
    wrong = digits.translate(None, ALPHABET)
    if wrong:
        raise ValueError(f"Illegal base64 character {wrong[0]:x}")
    if rest == 1 or (stop >= 0 and rest == 2 and data[stop : stop + 2] != b"=="):
        raise ValueError("Input byte array has wrong 4-byte ending unit")
    if stop >= 0:
        end = stop + (2 if rest == 2 else 1)
        if rest == 0:
            raise ValueError("Input byte array has wrong 4-byte ending unit")
        if len(data) > end:
            raise ValueError(f"Input byte array has incorrect ending byte at {end}")
    return base64.b64decode(digits + b"=" * (-len(digits) % 4))


def time_text(ms: int) -> str:
    """Return milliseconds since the epoch as Java's ISO_OFFSET_DATE_TIME writes them: without zeros at the end."""
    text = instant_text(ms)
    return ZEROS.sub("Z", text) if text.endswith("0Z") else text


def time_of(text: str) -> int:
    """Return milliseconds since the epoch of an ISO time with an offset. Raise ValueError with Java's words."""
    match = TIME.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        time = datetime.fromisoformat(match[1][:26] + match[2])
    except ValueError:
        readable = READABLE.match(text)
        stop = 0 if readable is None else readable.end()
        raise ValueError(f"Text '{text}' could not be parsed at index {stop}") from None
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    passed = time - epoch
    return (passed.days * 86_400 + passed.seconds) * 1000 + passed.microseconds // 1000


def read_object(text: str, java_type: str) -> Mapping[str, Any] | None:
    """Return the JSON object of a frame, or None for null. Raise `WrongFrame` in Jackson's words."""
    try:
        value = parse(text)
    except EOFError:
        raise WrongFrame(f"No content to map due to end-of-input{_end(text)}") from None
    except JsonParseError as error:
        raise WrongFrame(_without_class(str(error), text)) from None
    except ValueError:
        try:
            value, _ = json.JSONDecoder().raw_decode(text.lstrip())  # Jackson ignores text behind the value
        except ValueError:
            raise WrongFrame(f"Unexpected character{_end(text)}") from None
    if value is None or isinstance(value, dict):
        return value
    raise wrong_value(java_type, value)


def _end(text: str) -> str:
    return place(1, 0).replace(", column: 0", "")


def _without_class(said: str, text: str) -> str:
    said = said.partition(": ")[2]
    if said.startswith("Unexpected end-of-input\n"):
        kind = {"{": "Object", "[": "Array"}.get(text.lstrip()[:1])
        if kind is not None:
            start = place(1, 1).removeprefix("\n at ")
            where = place(1, len(text) + 1)
            return f"Unexpected end-of-input: expected close marker for {kind} (start marker at {start}){where}"
    return said


def text_field(value: Any) -> str | None:
    """Return a JSON value as Jackson makes a String of it. Raise `WrongFrame` for a list or an object."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        raise wrong_value("java.lang.String", value)
    return json.dumps(value)


def wrong_value(java_type: str, value: Any) -> WrongFrame:
    """Return the error for a JSON value of the wrong kind."""
    if isinstance(value, str):
        found = f'String "{value}": not a valid `{java_type}` value'
    elif isinstance(value, (dict, list)):
        kind = "Object" if isinstance(value, dict) else "Array"
        found = f"{kind} value (token `JsonToken.START_{kind.upper()}`)"
    else:
        found = f"value {json.dumps(value)}"
    return WrongFrame(f"Cannot deserialize value of type `{java_type}` from {found}{place(1, 1)}")
