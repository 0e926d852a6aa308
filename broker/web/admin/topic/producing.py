"""/topics: publish messages over HTTP."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.jackson.errors import JsonError
from pulsarium.broker.jackson.kinds import ANY, LONG, STRINGS, TEXT, JavaType, collection, record
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.schema.data import SchemaData, SchemaError, split
from pulsarium.broker.model.schema.registry import NO_VERSION as WITHOUT
from pulsarium.broker.model.schema.registry import StoredSchema
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.joining import register
from pulsarium.broker.web.admin.topic.reading import pause_after
from pulsarium.broker.web.http.call import Call, number_of
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.producer_message import PRODUCER_MESSAGE
from pulsarium.broker.web.http.registry import DOMAINS, route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.proto import entry
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.json_values import FRACTIONS, avro_codec
from pulsarium.proto.numbers import LONG_MAX, parse_number, unsigned
from pulsarium.proto.topic_name import TopicName

TOPIC = tuple(f"/topics/{domain}/{{tenant}}/{{namespace}}/{{topic}}" for domain in DOMAINS)
PARTITION = tuple(f"{path}/partitions/{{partition}}" for path in TOPIC)
NEEDS = topic_operation("PRODUCE")
NAME = "RestProducer"
NEW_VERSION = -1  # the request has the schema
REQUEST = record(
    "org.apache.pulsar.websocket.data.ProducerMessages",
    {
        **dict.fromkeys(("producerName", "keySchema", "valueSchema"), TEXT),
        "schemaVersion": LONG,
        "messages": collection("java.util.ArrayList", JavaType(PRODUCER_MESSAGE.java_type, ANY.of)),
    },
    {"schemaVersion": NEW_VERSION},
)
FAILED = "Fail to publish message:"
SCHEMA_FAILED = f"{FAILED}java.util.concurrent.ExecutionException: "
SCHEMA_EXCEPTION = "org.apache.pulsar.broker.service.schema.exceptions.SchemaException: "
NO_VERSION = 'java.lang.NullPointerException: Cannot read field "schema" because "schemaAndMetadata" is null'
NO_REQUEST = f'Cannot invoke "{REQUEST.java_type}.getKeySchema()" because "request" is null'
NO_MESSAGE = f'Cannot invoke "{PRODUCER_MESSAGE.java_type}.getSequenceId()" because "message" is null'
NO_MESSAGES = 'Cannot invoke "java.util.List.iterator()" because "messages" is null'
NOT_FOUND = "org.apache.pulsar.broker.service.BrokerServiceException$TopicNotFoundException: "
NOT_OWNED = f"{NOT_FOUND}Topic not owned by current broker."


@route("POST", *TOPIC, needs=NEEDS)
async def produce(call: Call) -> HttpReply:
    """Publish messages, round-robin to the partitions of a partitioned topic."""
    request = await _request(call)
    name = _topic(call)
    partitions = call.broker.metadata.partitions_of(name)
    targets = [(index, name.partition(index)) for index in range(partitions)] or [(name.partition_index, name)]
    return await _publish(call, request, targets)


@route("POST", *PARTITION, needs=NEEDS)
async def produce_to_partition(call: Call) -> HttpReply:
    """Publish messages to one partition."""
    request = await _request(call)
    index = number_of(call, "partition", bits=32)
    return await _publish(call, request, [(index, _topic(call).partition(max(index, 0)))])


def _topic(call: Call) -> TopicName:
    """Return the topic of the path, or the partitioned topic.

    Raise `AdminError` 500 for a missing one, as Pulsar does.
    """
    name, broker = call.topic_anywhere, call.broker
    if str(name.namespace_name) not in broker.metadata.namespaces:
        raise AdminError(500, f"{FAILED} Namespace not found", AdminError(404, "Namespace not found"))
    if not (broker.topics.exists(name) or broker.metadata.partitions_of(name)):
        absent = f"Topic {name} not found"
        raise AdminError(500, f"{FAILED} {absent}", AdminError(404, absent))
    return name


async def _request(call: Call) -> dict[str, Any]:
    """Return the body. Raise `AdminError` without one."""
    request: dict[str, Any] | None = call.read(REQUEST)
    if request is None:
        raise AdminError(500, f"{FAILED} {NO_REQUEST}", AdminError(400, "There is no body"))
    for index, each in enumerate(request.get("messages", ())):
        try:
            request["messages"][index] = PRODUCER_MESSAGE.value_of(each)
        except JsonError as error:
            raise error.inside(f"java.util.ArrayList[{index}]").inside(f'{REQUEST.java_type}["messages"]') from None
        if request["messages"][index] is None:
            raise AdminError(500, NO_MESSAGE)
        await pause_after(index + 1)
    return request


async def _publish(call: Call, request: dict[str, Any], targets: list[tuple[int, TopicName]]) -> HttpReply:
    version = request["schemaVersion"]
    schema, version_bytes = _asked(call, request) if version == NEW_VERSION else _known(call, version)
    messages = request.get("messages")
    if messages is None:
        raise AdminError(500, NO_MESSAGES)
    producer, now_ms = request.get("producerName") or NAME, call.broker.clock_of(call.topic_anywhere).now_ms()
    entries: list[bytes] = []
    for number, each in enumerate(messages, 1):
        entries.append(entry_of(each, schema, producer, version_bytes, now_ms))
        await pause_after(number)
    results: list[dict[str, Any]] = []
    for number, (target, made) in enumerate(zip(cycle(targets), entries, strict=False), 1):
        results.append(_publish_one(call, *target, made))
        await pause_after(number)
    return json_reply({"messagePublishResults": results, "schemaVersion": int.from_bytes(version_bytes, "big")})


def _asked(call: Call, request: dict[str, Any]) -> tuple[RequestSchemas, bytes]:
    """Return the schema of the request, and its version.

    Raise `AdminError` if the topic's strategy refuses the schema.
    """
    schema = RequestSchemas(read_info(request.get("valueSchema")) or STRING, read_info(request.get("keySchema")))
    schemas, topic = call.broker.schemas, call.topic_anywhere
    now_ms = call.broker.clock_of(topic).now_ms()
    wanted = SchemaData.taken_from(schema.to_proto())
    if wanted.type == "NONE":
        return schema, WITHOUT
    try:
        stored = register(schemas, topic, call.broker.topics.policies_of(topic).schemas, wanted, now_ms)
    except SchemaError:
        refused = schema.refused(str(topic), now_ms)
        raise AdminError(500, SCHEMA_FAILED + SCHEMA_EXCEPTION + refused, AdminError(409, refused)) from None
    return schema, stored.version_bytes


def _known(call: Call, version: int) -> tuple[RequestSchemas, bytes]:
    """Return a registered schema of the topic, and its version."""
    stored = call.broker.schemas.get(call.topic_anywhere, version)
    if stored is None:
        raise AdminError(500, FAILED + NO_VERSION, AdminError(404, "Schema not found"))
    return stored_schema(stored), stored.version_bytes


def _publish_one(call: Call, index: int, target: TopicName, entry: bytes) -> dict[str, Any]:
    """Publish one message, and return its result: an id or an error. `index` is the requested partition."""
    topics = call.broker.topics
    partitions = call.broker.metadata.partitions_of(target.partitioned_name)
    there = topics.exists(target) or index < partitions
    if not there or index != target.partition_index:
        return {"errorMsg": NOT_OWNED, "messageId": str(index), "errorCode": 2, "schemaVersion": 0}
    try:
        position = append_without_producer(topics.create(target), entry)
    except BrokerServiceError as error:
        return {"errorMsg": error.text, "messageId": str(index), "errorCode": 2, "schemaVersion": 0}
    return {"messageId": f"{position.ledger_id}:{position.entry_id}:{index}", "errorCode": 0, "schemaVersion": 0}


def append_without_producer(topic: Topic, entry: bytes) -> Position:
    """Publish an entry without deduplication: HTTP clients do not resend by themselves."""
    if topic.checks is not None:
        topic.checks.check_encryption(entry)
        topic.checks.check_limits(entry, False)
    topic.messages_in += 1
    topic.bytes_in += len(entry)
    return topic.publish_unwatched(entry)


# SchemaType -> its name on the wire
TYPES: Mapping[str, str] = {
    "BYTES": "None",
    "STRING": "String",
    "JSON": "Json",
    "AVRO": "Avro",
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
NO_SCHEMA = AdminError(500, "Fail to add or retrieve schema.")


@dataclass(frozen=True, slots=True)
class Info:
    """A schema of keys or of values (SchemaInfo)."""

    name: str
    type: str
    data: bytes
    properties: Mapping[str, str]

    def about(self, what: str) -> dict[str, str]:
        """Return the properties of a key-value schema that describe this half."""
        properties = json.dumps(dict(self.properties), separators=(",", ":"))
        values = {"name": self.name, "type": self.type, "properties": properties}
        return {f"{what}.schema.{field}": value for field, value in values.items()}


STRING = Info("String", "STRING", b"", {"__charset": "UTF-8"})


def read_info(text: str | None) -> Info | None:
    """Return a schema from its JSON, or None for no text. Raise `AdminError` for invalid JSON."""
    if not text:
        return None
    try:
        sent = json.loads(text)
        data = base64.b64decode(TEXT.of(sent.get("schema") or ""), validate=True)
        properties = STRINGS.value_of(sent.get("properties")) or {}
        kind = TEXT.of(sent["type"])
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, binascii.Error, JsonError):
        raise AdminError(NO_SCHEMA.status, NO_SCHEMA.reason) from None
    if kind not in TYPES:
        raise cannot_write(kind)
    return Info(TEXT.of(sent.get("name") or kind), kind, data, properties)


@dataclass(frozen=True, slots=True)
class RequestSchemas:
    """The schemas of the messages of one request."""

    value: Info
    key: Info | None

    def to_proto(self) -> pb.Schema:
        """Return the schema for the registry. With a key, both halves are one schema of SEPARATED encoding."""
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
            found.properties.add(key=name, value=value)
        return found

    def refused(self, topic: str, now_ms: int) -> str:
        """Return Pulsar's words for a schema that the topic refuses."""
        schema = self.to_proto()
        data = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in schema.schema_data)
        pairs: Any = schema.properties
        properties = ", ".join(f"{pair.key}={pair.value}" for pair in pairs)
        kind = self.value.type if self.key is None else "KEY_VALUE"
        shown = f"type={kind}, isDeleted=false, timestamp={now_ms}, user=Rest Producer, data=[{data}]"
        return f"Unable to add schema SchemaData({shown}, props={{{properties}}}) to topic {topic}"


def stored_schema(stored: StoredSchema) -> RequestSchemas:
    """Return a registered schema of a topic. Raise `AdminError` for types that cannot be written over HTTP."""
    if stored.schema.type != "KEY_VALUE":
        return RequestSchemas(_stored_info(stored.schema), None)
    key, value = split(stored.schema)
    return RequestSchemas(_stored_info(value), _stored_info(key))


def _stored_info(schema: SchemaData) -> Info:
    kind = "BYTES" if schema.type == "NONE" else schema.type
    if kind not in TYPES:
        raise cannot_write(kind)
    return Info(kind, kind, schema.data, schema.properties)


def cannot_write(kind: str) -> AdminError:
    """Return the refusal of messages of a kind that Pulsarium cannot write over HTTP."""
    return AdminError(500, f"Fail to publish message: Pulsarium cannot write {kind} over HTTP")


def encode(text: str, info: Info) -> bytes:
    """Return the payload of a text, or an empty one for an invalid text, as Pulsar does."""
    try:
        if info.type in NUMBERS:
            return struct.pack(NUMBERS[info.type], int(text))
        if info.type in FRACTIONS:
            return struct.pack(FRACTIONS[info.type], float(text))
        if info.type == "BOOLEAN":
            return bytes([text.lower() == "true"])
        if info.type == "AVRO":
            return avro_codec(info.data).encode(json.loads(text))
        if info.type == "JSON":
            return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
    except (ValueError, OverflowError, RecursionError, struct.error):
        return b""
    return text.encode(errors="replace")


def entry_of(sent: Mapping[str, Any], schema: RequestSchemas, producer: str, version: bytes, now_ms: int) -> bytes:
    """Return the entry to store for one message. Raise `AdminError` for an event time that is no number."""
    metadata = pb.MessageMetadata(producer_name=producer, sequence_id=unsigned(sent["sequenceId"]), publish_time=now_ms)
    if version:
        metadata.schema_version = version
    for name, value in sent.get("properties", {}).items():
        metadata.properties.add(key=name, value=value)
    key = sent.get("key")
    if key is not None and schema.key is not None:
        metadata.partition_key = base64.b64encode(encode(key, schema.key)).decode()
        metadata.partition_key_b64_encoded = True
    elif key is not None:
        metadata.partition_key = key
    if sent.get("eventTime"):
        event_time = parse_number(sent["eventTime"])
        if event_time is None:
            raise AdminError(500, f'For input string: "{sent["eventTime"]}"')
        metadata.event_time = unsigned(event_time)
    at, after = sent["deliverAt"], sent["deliverAfterMs"]
    if at and metadata.event_time:
        metadata.deliver_at_time = at
    elif after:
        metadata.deliver_at_time = min(metadata.event_time + after, LONG_MAX)
    metadata.replicate_to.extend(sent.get("replicationClusters", ()))
    if sent["disableReplication"]:
        metadata.replicate_to[:] = ["__local__"]
    payload = encode(sent.get("payload", ""), schema.value)
    metadata.uncompressed_size = len(payload)
    return entry.build(metadata, payload)
