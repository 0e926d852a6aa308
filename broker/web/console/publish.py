"""Publish one message from the console, encoded by the schema of its topic."""

from __future__ import annotations

import json
import random
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.jackson.kinds import BOOL, LONG, STRINGS, TEXT, record
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.schema.data import SchemaData, SchemaError, split
from pulsarium.broker.model.topic.joining import of_producer
from pulsarium.broker.net.slices import aside
from pulsarium.broker.web.admin.topic.producing import append_without_producer
from pulsarium.broker.web.console.decode import ENCODING
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.proto import entry
from pulsarium.proto.avro import utf8
from pulsarium.proto.errors import Misfit
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.json_values import compact, encode_json, joined_pair, read_json
from pulsarium.proto.numbers import LONG_MAX, unsigned
from pulsarium.proto.routing import java_hash, legacy_segment, m1_segment_hash, segment_hash
from pulsarium.proto.topic_name import SCALABLE, TopicName

PRODUCER: Final = "console"
BYTES: Final = SchemaData("BYTES")
PLAIN: Final = ("BYTES", "NONE", "STRING")  # types whose payload is a text as it is written
REQUEST: Final = record(
    "the message to publish",
    {
        **dict.fromkeys(("text", "base64", "key"), TEXT),
        "properties": STRINGS,
        **dict.fromkeys(("eventMs", "deliverAfterMs"), LONG),
        "raw": BOOL,
    },
)

Json = dict[str, Any]


class _Encoded(NamedTuple):
    """The payload of a message, None for a message without a value, and the key of a pair that is stored apart."""

    payload: bytes | None
    key: bytes | None = None


@route("POST", "/pulsarium/publish/{domain}/{tenant}/{namespace}/{topic}", needs=topic_operation("PRODUCE"))
async def publish(call: Call) -> HttpReply:
    """Publish one message, and return its id and its topic, which is a partition or segment of the one in the path.

    The body has a `value` as JSON, or `text`, which is read as JSON where the schema is none of texts or bytes, or
    `base64`. On a topic with a schema, bytes need `raw`. A `value` of null is a message without a value. An error of
    the value names its place in `at`, or its line and column.
    """
    name, body = call.topic, call.json()
    if not isinstance(body, dict):
        raise AdminError(400, "The body must be a JSON object with value, text or base64")
    sent = REQUEST.value_of({key: value for key, value in body.items() if key != "value"})
    stored = call.broker.schemas.latest(name)
    schema = BYTES if stored is None or sent["raw"] else stored.schema
    try:
        encoded = await aside(partial(_encoded, schema, sent, body), len(call.body))
    except json.JSONDecodeError as error:
        told = {"reason": f"It is no JSON: {error}", "at": "", "line": error.lineno, "column": error.colno}
        return json_reply(told, 400)
    except Misfit as error:
        return json_reply({"reason": str(error), "at": error.at}, 400)
    except ValueError as error:
        raise AdminError(400, f"The topic's schema of type {schema.type} cannot be used: {error}") from None
    metadata = _metadata(call.broker.clock_of(name).now_ms(), sent, encoded)
    if stored is not None and not sent["raw"]:
        metadata.schema_version = stored.version_bytes
    target = _target(call, name, metadata.partition_key if metadata.HasField("partition_key") else None)
    made = entry.build(metadata, encoded.payload or b"")
    return json_reply({"messageId": _published(call, target, made, has_schema=not sent["raw"]), "topic": str(target)})


def _encoded(schema: SchemaData, sent: Mapping[str, Any], body: Json) -> _Encoded:
    """Return the payload of the body by a schema. Raise `Misfit`, json.JSONDecodeError or ValueError."""
    if sent.get("base64") is not None:
        if schema.type not in PLAIN:
            raise Misfit(f"the topic has a schema of type {schema.type}: pass raw to publish bytes all the same")
        try:
            return _Encoded(b64decode(sent["base64"], validate=True))
        except ValueError:
            raise Misfit("it is no base64") from None
    text = sent.get("text")
    if text is None:
        if "value" not in body:
            raise Misfit("the message has no value, text or base64")
        value = body["value"]
        return _Encoded(None) if value is None else _by_schema(schema, value, sent)
    if schema.type in PLAIN:
        return _Encoded(utf8(text))
    found = _by_schema(schema, read_json(text), sent)
    return _Encoded(utf8(compact(text))) if schema.type == "JSON" else found


def _by_schema(schema: SchemaData, value: Any, sent: Mapping[str, Any]) -> _Encoded:
    if schema.type != "KEY_VALUE":
        return _Encoded(encode_json(schema.type, schema.data, value))
    if not isinstance(value, dict) or not value.keys() <= {"key", "value"}:
        raise Misfit("expected an object with key and value, the two halves of a pair")
    try:
        halves = zip(("key", "value"), split(schema), strict=True)
    except SchemaError as error:
        raise ValueError(error.text) from None
    of_key, of_value = (_half(half, value.get(name), name) for name, half in halves)
    if schema.properties.get(ENCODING) != "SEPARATED":
        return _Encoded(joined_pair(of_key, of_value))
    if sent.get("key") is not None:
        raise Misfit("the pair has its key in the value: leave out the key of the message")
    return _Encoded(of_value, of_key)


def _half(schema: SchemaData, value: Any, name: str) -> bytes | None:
    try:
        return None if value is None else encode_json(schema.type, schema.data, value)
    except Misfit as error:
        raise error.inside(name) from None


def _metadata(now_ms: int, sent: Mapping[str, Any], encoded: _Encoded) -> pb.MessageMetadata:
    metadata = pb.MessageMetadata(producer_name=PRODUCER, sequence_id=0, publish_time=now_ms)
    metadata.uncompressed_size = len(encoded.payload or b"")
    if encoded.payload is None:
        metadata.null_value = True
    if encoded.key is not None:
        metadata.partition_key, metadata.partition_key_b64_encoded = b64encode(encoded.key).decode(), True
    elif sent.get("key") is not None:
        metadata.partition_key = sent["key"]
    for name, value in sent.get("properties", {}).items():
        metadata.properties.add(key=name, value=value)
    if sent["eventMs"]:
        metadata.event_time = unsigned(sent["eventMs"])
    if sent["deliverAfterMs"] > 0:
        metadata.deliver_at_time = min(now_ms + sent["deliverAfterMs"], LONG_MAX)
    return metadata


def _target(call: Call, name: TopicName, key: str | None) -> TopicName:
    """Return the topic that stores a message: a partition or a segment, by the key or by chance."""
    broker = call.broker
    if name.domain == SCALABLE and not name.is_segment:
        return _segment(call, name, key)
    partitions = broker.metadata.partitions_of(name)
    if partitions:
        return name.partition(random.randrange(partitions) if key is None else java_hash(key) % partitions)
    if not broker.topics.exists(name):
        raise AdminError(404, f"Topic {name} not found")
    return name


def _segment(call: Call, name: TopicName, key: str | None) -> TopicName:
    topic = call.broker.cluster.scalable.find(name)
    if topic is None:
        raise AdminError(404, f"Topic {name} not found")
    segments = topic.layout.active()
    if key is None:
        chosen = random.choice(segments)
    elif all(each.legacy_topic is not None for each in segments):
        chosen = sorted(segments, key=lambda each: each.id)[legacy_segment(key, len(segments))]
    else:
        place = segment_hash(key) if call.broker.profile.entry_buckets else m1_segment_hash(key)
        chosen = next(each for each in segments if each.start <= place <= each.end)
    return topic.segment_topic(chosen)


def _published(call: Call, target: TopicName, made: bytes, *, has_schema: bool) -> str:
    """Publish an entry as a new producer may, and return its id."""
    topic = call.broker.topics.create(target)
    try:
        topic.check_producer(PRODUCER, encrypted=False)
        if not has_schema:
            of_producer(call.broker.schemas, topic, None)
        return str(append_without_producer(topic, made))
    except BrokerServiceError as error:
        raise AdminError(409, f"The topic takes no message now: {error.text}") from None
