"""Encode texts by the schemas of `pulsarium client produce`, in the words of pulsar-client's options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarium.client import BytesSchema, KeyValueEncodingType, KeyValueSchema, StringSchema
from pulsarium.client.errors import InvalidMessage
from pulsarium.client.schema.schema import SchemaInfo
from pulsarium.client.schema.structured import read_definition
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.json_values import encode_json, read_json

if TYPE_CHECKING:
    from pulsarium.client import Schema

KINDS: Final = {"avro": pb.Schema.Avro, "json": pb.Schema.Json}
ENCODINGS: Final = {
    "inline": KeyValueEncodingType.INLINE,
    "separated": KeyValueEncodingType.SEPARATED,
}


class _Encoded(BytesSchema):
    """A schema whose values are encoded already."""

    def __init__(self, info: SchemaInfo | None) -> None:
        self.info = info


class TextSchema:
    """A schema by its option, such as `avro:order.avsc`, and the encoder of texts by it."""

    def __init__(self, option: str, text: str) -> None:
        """Read the schema. Raise click.UsageError for a text that names none."""
        self._option = option
        kind, colon, definition = text.partition(":")
        self._kind = kind
        self._info: SchemaInfo | None = None
        if kind == "string" and not colon:
            self._info = StringSchema.info
        elif kind in KINDS and colon:
            self._info = SchemaInfo(KINDS[kind], self._definition(definition), "client")
        elif text != "bytes":
            raise click.UsageError(
                f"{option}: {text} is no schema; pass bytes, string, avro:DEFINITION or json:DEFINITION, "
                "where DEFINITION is JSON or the name of a file"
            )

    def _definition(self, text: str) -> bytes:
        if not text.lstrip().startswith("{"):
            try:
                text = Path(text).read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else error
                raise click.UsageError(f"{self._option}: {text}: {why}") from None
        try:
            read_definition(text.encode())
        except InvalidMessage as error:
            raise click.UsageError(f"{self._option}: {error}") from None
        return text.encode()

    @property
    def schema(self) -> Schema[bytes]:
        """Return the schema for a producer that sends bytes which `encode` returned."""
        return _Encoded(self._info)

    def encode(self, text: str) -> bytes:
        """Return the bytes of a text. Raise ValueError, which names the place, when the text does not fit."""
        if self._info is None or self._kind not in KINDS:
            return text.encode()
        try:
            value = read_json(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"{text[:50]!r} is no JSON: {error}; --separator '' keeps commas in one message") from None
        encoded = encode_json(self._kind.upper(), self._info.data, value)
        return encoded if self._kind == "avro" else text.encode()

    def encode_value(self, value: Any) -> bytes:
        """Return the bytes of a JSON value. Raise ValueError, which names the place, when the value does not fit.

        Without a schema of records, a text is sent as it is, and any other value as JSON.
        """
        if self._info is not None and self._kind in KINDS:
            return encode_json(self._kind.upper(), self._info.data, value)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode()


def pair_schema(key: TextSchema, value: TextSchema, encoding: str) -> Schema[Any]:
    """Return the schema of pairs of encoded halves."""
    return KeyValueSchema(key.schema, value.schema, ENCODINGS[encoding])
