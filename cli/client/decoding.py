"""Decode messages with the schemas of their topics, and show values as pulsar-client does (`-st auto_consume`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pulsarium.cli.admin.output import java
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.client import Client, Message
    from pulsarium.client.schema.schema import SchemaInfo

_RECORDS: Final = (pb.Schema.Json, pb.Schema.Avro)
_LANG: Final = {
    pb.Schema.String: "String",
    pb.Schema.Bool: "Boolean",
    pb.Schema.Int8: "Byte",
    pb.Schema.Int16: "Short",
    pb.Schema.Int32: "Integer",
    pb.Schema.Int64: "Long",
    pb.Schema.Float: "Float",
    pb.Schema.Double: "Double",
}
_CLASSES: Final = {
    **{number: f"java.lang.{name}" for number, name in _LANG.items()},
    pb.Schema.Date: "java.util.Date",
    pb.Schema.Time: "java.sql.Time",
    pb.Schema.Timestamp: "java.sql.Timestamp",
    pb.Schema.Instant: "java.time.Instant",
    pb.Schema.LocalDate: "java.time.LocalDate",
    pb.Schema.LocalTime: "java.time.LocalTime",
    pb.Schema.LocalDateTime: "java.time.LocalDateTime",
}


class SchemaDecoder:
    """Decode messages. The schema of each version is fetched once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, bytes], SchemaInfo | None] = {}

    async def shown(self, message: Message) -> str:
        """Return the value of a message as text. Raise `InvalidMessage` when it does not fit the topic's schema."""
        from pulsarium.client.schema.of_info import schema_of

        info = await self._info(message.topic_name(), message.schema_version())
        if info is None:
            return java(_typed(None, message.data()))
        schema = schema_of(info)
        if schema.separates_key:
            value = schema.decode_apart(message.key_bytes(), message.data())
        else:
            value = schema.decode(message.data())
        return java(_shown(info, value))

    async def _info(self, topic: str, version: bytes) -> SchemaInfo | None:
        """Return the schema of a version, the latest one for b"", or None for a topic without a schema."""
        from pulsarium.client.errors import TopicNotFound

        if (topic, version) not in self._known:
            try:
                self._known[topic, version] = await self._client.get_schema(topic, version or None)
            except TopicNotFound:
                self._known[topic, version] = None
        return self._known[topic, version]


def _shown(info: SchemaInfo, value: Any) -> Any:
    """Return a value as the mapping that pulsar-client prints."""
    if info.type == pb.Schema.KeyValue:
        from pulsarium.client.schema.key_value import halves

        key, content = halves(info)
        return {"key": _shown(key, value.key), "value": _shown(content, value.value)}
    if value is None:
        return {"value": "NULL"}
    if info.type in _RECORDS:
        return _record(value)
    if info.type == pb.Schema.ProtobufNative:
        from google.protobuf.json_format import MessageToDict

        return _record(MessageToDict(value, preserving_proto_field_name=True))
    return _typed(info.type, value)


def _typed(type: int | None, value: Any) -> dict[str, Any]:
    return {"value": _plain(value), "type": f"class {_CLASSES.get(type, 'java.lang.String')}"}  # type: ignore[call-overload]


def _record(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in the order of a Java HashMap."""
    places = 16
    while len(fields) > places * 3 // 4:
        places *= 2
    names = sorted(fields, key=lambda name: _spread(name) & places - 1)
    return {name: _field(fields[name]) for name in names}


def _field(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _record(value)
    return "NULL" if value is None else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | Mapping) else str(value)


def _spread(name: str) -> int:
    """Return the hash by which Java's HashMap places a string."""
    found = 0
    for unit in memoryview(name.encode("utf-16-le")).cast("H"):
        found = (31 * found + unit) & 0xFFFFFFFF
    return found ^ found >> 16
