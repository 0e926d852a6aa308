"""/topics: messages over HTTP."""

from __future__ import annotations

from itertools import cycle
from typing import Any

from pulsarium.broker.admin.policies.values import LONG
from pulsarium.broker.admin.topic.backlog import number_of
from pulsarium.broker.admin.topic.produced import STRING, Schema, entry_of, read_info, stored_schema
from pulsarium.broker.admin.topic.reading import pause_after
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.http.call import Call, text_of, wrong_type
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import DOMAINS, route
from pulsarium.broker.http.reply import Reply, json_reply
from pulsarium.broker.model.errors import BrokerServiceError, PersistenceError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.publication import Unwatched
from pulsarium.broker.model.schema.data import SchemaData
from pulsarium.broker.model.schema.errors import SchemaError
from pulsarium.broker.model.schema.registry import NO_VERSION as WITHOUT
from pulsarium.broker.model.subscription.non_persistent import NOWHERE
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.joining import register
from pulsarium.broker.model.topic.non_persistent import NonPersistentTopic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.topic_name import TopicName

TOPIC = tuple(f"/topics/{domain}/{{tenant}}/{{namespace}}/{{topic}}" for domain in DOMAINS)
PARTITION = tuple(f"{path}/partitions/{{partition}}" for path in TOPIC)
NEEDS = topic_operation("PRODUCE")
NAME = "RestProducer"
NEW_VERSION = -1  # the schema stands in the request
JAVA_TYPE = "org.apache.pulsar.websocket.data.ProducerMessages"
FAILED = "Fail to publish message:"
SCHEMA_FAILED = f"{FAILED}java.util.concurrent.ExecutionException: "
SCHEMA_EXCEPTION = "org.apache.pulsar.broker.service.schema.exceptions.SchemaException: "
NO_VERSION = 'java.lang.NullPointerException: Cannot read field "schema" because "schemaAndMetadata" is null'
NO_REQUEST = f'Cannot invoke "{JAVA_TYPE}.getKeySchema()" because "request" is null'
NO_MESSAGES = 'Cannot invoke "java.util.List.iterator()" because "messages" is null'
NOT_FOUND = "org.apache.pulsar.broker.service.BrokerServiceException$TopicNotFoundException: "
NOT_OWNED = f"{NOT_FOUND}Topic not owned by current broker."


@route("POST", *TOPIC, needs=NEEDS)
async def produce(call: Call) -> Reply:
    """Publish messages, to the partitions in turn where there are any."""
    request = call.json_object(JAVA_TYPE)
    name = _topic(call)
    partitions = call.broker.metadata.partitions_of(name)
    targets = [(index, name.partition(index)) for index in range(partitions)] or [(name.partition_index, name)]
    return await _publish(call, request, targets)


@route("POST", *PARTITION, needs=NEEDS)
async def produce_to_partition(call: Call) -> Reply:
    """Publish messages to one partition."""
    request = call.json_object(JAVA_TYPE)
    index = number_of(call, "partition", bits=32)
    return await _publish(call, request, [(index, _topic(call).partition(max(index, 0)))])


def _topic(call: Call) -> TopicName:
    """The topic of the path, or the partitioned one; 500 for one that there is not, as in Pulsar."""
    name, broker = call.topic_anywhere, call.broker
    if str(name.namespace_name) not in broker.metadata.namespaces:
        raise AdminError(500, f"{FAILED} Namespace not found", AdminError(404, "Namespace not found"))
    if not (broker.topics.exists(name) or broker.metadata.partitions_of(name)):
        absent = f"Topic {name} not found"
        raise AdminError(500, f"{FAILED} {absent}", AdminError(404, absent))
    return name


async def _publish(call: Call, request: dict[str, Any] | None, targets: list[tuple[int, TopicName]]) -> Reply:
    if request is None:
        raise AdminError(500, f"{FAILED} {NO_REQUEST}", AdminError(400, "There is no body"))
    version = LONG.value_of(request.get("schemaVersion", NEW_VERSION))
    schema, version_bytes = _asked(call, request) if version == NEW_VERSION else _known(call, version)
    messages = request.get("messages")
    if messages is None:
        raise AdminError(500, NO_MESSAGES)
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        raise wrong_type("java.util.ArrayList<org.apache.pulsar.websocket.data.ProducerMessage>", messages)
    producer, now_ms = _text(request, "producerName") or NAME, call.broker.clock.now_ms()
    entries: list[bytes] = []
    for number, each in enumerate(messages, 1):
        entries.append(entry_of(each, schema, producer, version_bytes, now_ms))
        await pause_after(number)
    results: list[dict[str, Any]] = []
    for number, (target, entry) in enumerate(zip(cycle(targets), entries, strict=False), 1):
        results.append(_publish_one(call, *target, entry))
        await pause_after(number)
    return json_reply({"messagePublishResults": results, "schemaVersion": int.from_bytes(version_bytes, "big")})


def _text(request: dict[str, Any], name: str) -> str | None:
    value = request.get(name)
    return None if value is None else text_of(value)


def _asked(call: Call, request: dict[str, Any]) -> tuple[Schema, bytes]:
    """The schema of the request with its version. One that does not fit the topic's is refused."""
    schema = Schema(read_info(_text(request, "valueSchema")) or STRING, read_info(_text(request, "keySchema")))
    schemas, topic, now_ms = call.broker.schemas, call.topic_anywhere, call.broker.clock.now_ms()
    wanted = SchemaData.from_proto(schema.to_proto())
    if wanted.type == "NONE":
        return schema, WITHOUT
    try:
        stored = register(schemas, topic, call.broker.topics.policies_of(topic).schemas, wanted, now_ms)
    except SchemaError:
        refused = schema.refused(str(topic), now_ms)
        raise AdminError(500, SCHEMA_FAILED + SCHEMA_EXCEPTION + refused, AdminError(409, refused)) from None
    return schema, stored.version_bytes


def _known(call: Call, version: int) -> tuple[Schema, bytes]:
    """A schema that the topic has."""
    stored = call.broker.schemas.get(call.topic_anywhere, version)
    if stored is None:
        raise AdminError(500, FAILED + NO_VERSION, AdminError(404, "Schema not found"))
    return stored_schema(stored), stored.version_bytes


def _publish_one(call: Call, index: int, target: TopicName, entry: bytes) -> dict[str, Any]:
    """What came of one message: its id, or why it has none. `index` is the partition that was asked for."""
    topics = call.broker.topics
    partitions = call.broker.metadata.partitions_of(target.partitioned_name)
    there = topics.exists(target) or index < partitions
    if not there or index != target.partition_index:
        return {"errorMsg": NOT_OWNED, "messageId": str(index), "errorCode": 2, "schemaVersion": 0}
    try:
        position = _append(topics.create(target), entry)
    except BrokerServiceError as error:
        return {"errorMsg": error.text, "messageId": str(index), "errorCode": 2, "schemaVersion": 0}
    return {"messageId": f"{position.ledger_id}:{position.entry_id}:{index}", "errorCode": 0, "schemaVersion": 0}


def _append(topic: Topic, entry: bytes) -> Position:
    """Publish, without deduplication: over HTTP nobody tries again by himself."""
    if topic.checks is not None:
        topic.checks.check_encryption(entry)
        topic.checks.check_limits(entry, False)
    topic.messages_in += 1
    topic.bytes_in += len(entry)
    if isinstance(topic, PersistentTopic):
        return topic.append(Unwatched(), 0, 0, 1, entry)
    if not isinstance(topic, NonPersistentTopic):
        raise PersistenceError(f"Topic {topic.name} takes no messages")
    topic.pass_on(entry)
    return NOWHERE
