"""Messages that come over HTTP: their schema, and how texts become payloads."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pulsarium.broker.admin.policies.values import LONG, TEXT_LIST
from pulsarium.broker.http.call import text_of, texts_of
from pulsarium.broker.http.errors import AdminError, UnreadableBody
from pulsarium.broker.model.schema.data import SchemaData
from pulsarium.broker.model.schema.key_value import split
from pulsarium.broker.model.schema.registry import StoredSchema
from pulsarium.proto import entry
from pulsarium.proto.generated import PulsarApi_pb2 as pb

# SchemaType -> the wire's name for it
TYPES: Mapping[str, str] = {
    "BYTES": "None",
    "STRING": "String",
    "JSON": "Json",
    "BOOLEAN": "Bool",
    "INT8": "Int8",
    "INT16": "Int16",
    "INT32": "Int32",
    "INT64": "Int64",
    "FLOAT": "Float",
    "DOUBLE": "Double",
    "TIME": "Time",
    "TIMESTAMP": "Timestamp",
}
NUMBERS = {"INT8": ">b", "INT16": ">h", "INT32": ">i", "INT64": ">q", "TIME": ">q", "TIMESTAMP": ">q"}
FRACTIONS = {"FLOAT": ">f", "DOUBLE": ">d"}
NO_SCHEMA = AdminError(500, "Fail to add or retrieve schema.")


@dataclass(frozen=True, slots=True)
class Info:
    """One schema, of keys or of values (SchemaInfo)."""

    name: str
    type: str
    data: bytes
    properties: Mapping[str, str]

    def about(self, what: str) -> dict[str, str]:
        """What a key-value schema says of its half."""
        properties = json.dumps(dict(self.properties), separators=(",", ":"))
        values = {"name": self.name, "type": self.type, "properties": properties}
        return {f"{what}.schema.{field}": value for field, value in values.items()}


STRING = Info("String", "STRING", b"", {"__charset": "UTF-8"})


def read_info(text: str | None) -> Info | None:
    """A schema from its JSON; None for none. Raises AdminError."""
    if not text:
        return None
    try:
        sent = json.loads(text)
        data = base64.b64decode(text_of(sent.get("schema") or ""), validate=True)
        properties = {key: text_of(value) for key, value in (sent.get("properties") or {}).items()}
        kind = text_of(sent["type"])
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, binascii.Error, UnreadableBody):
        raise AdminError(NO_SCHEMA.status, NO_SCHEMA.reason) from None
    if kind not in TYPES:
        raise cannot_write(kind)
    return Info(text_of(sent.get("name") or kind), kind, data, properties)


@dataclass(frozen=True, slots=True)
class Schema:
    """What the messages of one request are written with."""

    value: Info
    key: Info | None

    def to_proto(self) -> pb.Schema:
        """As the registry takes it: with a key, both as one, keys and values apart."""
        found = pb.Schema(name="", schema_data=self.value.data)
        properties = dict(self.value.properties)
        wire_type = TYPES[self.value.type]
        if self.key is not None:
            both = (self.key.data, self.value.data)
            found.schema_data = b"".join(len(data).to_bytes(4, "big") + data for data in both)
            properties = {**self.key.about("key"), **self.value.about("value"), "kv.encoding.type": "SEPARATED"}
            wire_type = "KeyValue"
        found.type = pb.Schema.Type.Value(wire_type)  # type: ignore[assignment]
        for name, value in properties.items():
            found.properties.add(key=_utf8(name), value=_utf8(value))
        return found

    def refused(self, topic: str, now_ms: int) -> str:
        """How Pulsar says that a topic does not take it."""
        schema = self.to_proto()
        data = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in schema.schema_data)
        pairs: Any = schema.properties
        properties = ", ".join(f"{pair.key}={pair.value}" for pair in pairs)
        kind = self.value.type if self.key is None else "KEY_VALUE"
        shown = f"type={kind}, isDeleted=false, timestamp={now_ms}, user=Rest Producer, data=[{data}]"
        return f"Unable to add schema SchemaData({shown}, props={{{properties}}}) to topic {topic}"


def stored_schema(stored: StoredSchema) -> Schema:
    """What a topic has. Raises AdminError for types that cannot be written."""
    if stored.schema.type != "KEY_VALUE":
        return Schema(_stored_info(stored.schema), None)
    key, value = split(stored.schema)
    return Schema(_stored_info(value), _stored_info(key))


def _stored_info(schema: SchemaData) -> Info:
    kind = "BYTES" if schema.type == "NONE" else schema.type
    if kind not in TYPES:
        raise cannot_write(kind)
    return Info(kind, kind, schema.data, schema.texts)


def cannot_write(kind: str) -> AdminError:
    return AdminError(500, f"Fail to publish message: Pulsarium cannot write {kind} over HTTP")


def encode(text: str, info: Info) -> bytes:
    """A payload from its text; none for a text that is no such value, as in Pulsar."""
    try:
        if info.type in NUMBERS:
            return struct.pack(NUMBERS[info.type], int(text))
        if info.type in FRACTIONS:
            return struct.pack(FRACTIONS[info.type], float(text))
        if info.type == "BOOLEAN":
            return bytes([text.lower() == "true"])
        if info.type == "JSON":
            return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
    except (ValueError, OverflowError, RecursionError, struct.error):
        return b""
    return text.encode(errors="replace")


def _utf8(text: str) -> str:
    """A text as it can be written: JSON may hold halves of characters."""
    return text.encode(errors="replace").decode()


def entry_of(sent: Mapping[str, Any], schema: Schema, producer: str, version: bytes, now_ms: int) -> bytes:
    """One message as it is stored. Raises UnreadableBody for fields of another kind."""
    metadata = pb.MessageMetadata(
        producer_name=_utf8(producer), sequence_id=LONG.value_of(sent.get("sequenceId")) % 2**64, publish_time=now_ms
    )
    if version:
        metadata.schema_version = version
    for name, value in (texts_of(sent.get("properties")) or {}).items():
        metadata.properties.add(key=_utf8(name), value=_utf8(value))
    key = sent.get("key")
    if key is not None and schema.key is not None:
        metadata.partition_key = base64.b64encode(encode(text_of(key), schema.key)).decode()
        metadata.partition_key_b64_encoded = True
    elif key is not None:
        metadata.partition_key = _utf8(text_of(key))
    if sent.get("eventTime"):
        metadata.event_time = LONG.value_of(text_of(sent["eventTime"])) % 2**64
    at, after = LONG.value_of(sent.get("deliverAt")), LONG.value_of(sent.get("deliverAfterMs"))
    if at and metadata.event_time:
        metadata.deliver_at_time = at
    elif after:
        metadata.deliver_at_time = min(metadata.event_time + after, 2**63 - 1)
    clusters = sent.get("replicationClusters")
    metadata.replicate_to.extend(map(_utf8, TEXT_LIST.value_of(clusters) or ()))
    if sent.get("disableReplication"):
        metadata.replicate_to[:] = ["__local__"]
    payload = encode(text_of(sent.get("payload") or ""), schema.value)
    metadata.uncompressed_size = len(payload)
    return entry.build(metadata, payload)
