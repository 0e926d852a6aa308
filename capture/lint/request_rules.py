"""Rules of requests and their answers, and of what opens a producer or a consumer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pulsarium.capture.lint.exchanges import answered_key
from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Phase, Producer
from pulsarium.capture.lint.rule import Section, Severity
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated.PulsarApi_pb2 import STICKY, BaseCommand, CommandSubscribe, Schema
from pulsarium.proto.generated.PulsarApi_pb2 import Shared as SharedAccess
from pulsarium.proto.topic_name import TopicName

_T = BaseCommand
_NAME_TOPICS = {"GET_OR_CREATE_SCHEMA", "GET_SCHEMA", "LOOKUP", "PARTITIONED_METADATA", "PRODUCER", "SUBSCRIBE"}
_SCHEMA_VERSION_BYTES = 8


def _answers(frame: Frame) -> bool:
    """Whether the frame can only be an answer, by its request_id."""
    return (
        frame.spec is not None
        and frame.spec.direction is Direction.BROKER
        and frame.request_id is not None
        and answered_key(frame) == ("request_id", frame.request_id)
    )


REQUEST_RULES = Section("Rules of requests and their answers, and of the names in them")


@REQUEST_RULES(
    "request-id-reused",
    "A request_id is free while its request waits for an answer.",
    "PulsarApi.proto: request_id",
    "Count request ids up, per client or per connection.",
)
def _request_reused(state: State, frame: Frame) -> Iterator[str]:
    if frame.request_id is not None and frame.sender is Direction.CLIENT:
        waiting = state.matcher.first(("request_id", frame.request_id))
        if waiting is not None:
            yield f"request {frame.request_id} of {frame.name} is still that of {waiting.name}"


@REQUEST_RULES(
    "answer-to-nothing",
    "An answer has the request_id of a request.",
    "PulsarApi.proto: request_id",
    "Answer with the id of the request.",
    about=Direction.BROKER,
)
def _request_nothing(state: State, frame: Frame) -> Iterator[str]:
    if _answers(frame) and state.matcher.request_of(frame) is None and (frame.request_id or 0) not in state.answered:
        yield f"{frame.name} to request {frame.request_id}, which nobody made"


@REQUEST_RULES(
    "answered-twice",
    "A request is answered once.",
    "PulsarApi.proto: request_id",
    "Answer each request once.",
    about=Direction.BROKER,
)
def _request_twice(state: State, frame: Frame) -> Iterator[str]:
    if _answers(frame) and state.matcher.request_of(frame) is None and (frame.request_id or 0) in state.answered:
        yield f"{frame.name} to request {frame.request_id}, which has its answer"


@REQUEST_RULES(
    "wrong-answer",
    "A request is answered by the command that belongs to it, or by ERROR.",
    "PulsarApi.proto",
    "Answer with the command that docs/commands.md names.",
    about=Direction.BROKER,
)
def _request_kind(state: State, frame: Frame) -> Iterator[str]:
    request = state.matcher.request_of(frame)
    if request is None or frame.spec is None or request.spec is None or not _answers(frame):
        return
    if frame.spec.type not in (request.spec.reply, _T.ERROR):
        wanted = COMMANDS[request.spec.reply or 0].name
        yield f"{frame.name} to {request.name}, which {wanted} answers"


@REQUEST_RULES(
    "topic-name-invalid",
    "A topic is named domain://tenant/namespace/topic, or by a short form of it.",
    "Pulsar's TopicName; ServerError InvalidTopicName",
    "Check a topic's name where the application gives it.",
    on=_NAME_TOPICS,
)
def _request_topic_name(state: State, frame: Frame) -> Iterator[str]:
    try:
        TopicName.parse(frame.body.topic)
    except InvalidTopicName as error:
        yield str(error)[:300]


@REQUEST_RULES(
    "partitions-ignored",
    "Of a topic that has partitions those are opened, not the topic itself.",
    "Concepts: partitioned topics; ServerError NotAllowedError",
    "Open topic-partition-0 and so on, as many as PARTITIONED_METADATA_RESPONSE says.",
    on=["PRODUCER", "SUBSCRIBE"],
)
def _request_partitions(state: State, frame: Frame) -> Iterator[str]:
    count = state.partitions.get(frame.topic)
    if count is not None:
        yield f"{frame.name} for {frame.topic}, which has {count} partitions"


@REQUEST_RULES(
    "schema-client-side",
    "AUTO_CONSUME is a consumer's wish and no schema that a topic could have.",
    "PulsarApi.proto: Schema.Type",
    "Send the schema that the messages have.",
    on=["GET_OR_CREATE_SCHEMA", "PRODUCER"],
)
def _request_schema(state: State, frame: Frame) -> Iterator[str]:
    if frame.body.HasField("schema") and frame.body.schema.type == Schema.AutoConsume:
        yield f"{frame.name} with an AUTO_CONSUME schema"


@REQUEST_RULES(
    "schema-version-size",
    "A schema version has 8 bytes, big-endian, as a broker gave it.",
    "Pulsar's LongSchemaVersion; PulsarApi.proto: CommandGetSchema",
    "Send the bytes of PRODUCER_SUCCESS or of a message as they came; for the newest version leave the field out.",
    on=["GET_SCHEMA"],
)
def _request_schema_version(state: State, frame: Frame) -> Iterator[str]:
    body = frame.body
    if body.HasField("schema_version") and len(body.schema_version) != _SCHEMA_VERSION_BYTES:
        yield f"schema_version of {len(body.schema_version)} bytes"


_ORDERED_BY_NAME = (CommandSubscribe.Failover, CommandSubscribe.Key_Shared)
_SINGLE = (CommandSubscribe.Exclusive, CommandSubscribe.Failover)


def _before(state: State, frame: Frame) -> Producer | None:
    """The producer that a PRODUCER opens again: its broker closed it."""
    producer = state.producer(frame)
    again = producer is not None and producer.phase is Phase.CLOSED_BY_BROKER and not producer.closing
    return producer if again else None


OPENING_RULES = Section("Rules of PRODUCER and SUBSCRIBE: what opens a producer or a consumer, and opens it again")


@OPENING_RULES(
    "producer-id-in-use",
    "A producer_id names one producer of a connection at a time.",
    "PulsarApi.proto: CommandProducer",
    "Count producer ids up; close a producer before its id is used again.",
    on=["PRODUCER"],
)
def _opening_producer_in_use(state: State, frame: Frame) -> Iterator[str]:
    if (producer := state.producer(frame)) is not None and producer.phase is Phase.OPEN and not producer.closing:
        yield f"producer {frame.producer_id} stands already, on {producer.topic}"


@OPENING_RULES(
    "consumer-id-in-use",
    "A consumer_id names one consumer of a connection at a time.",
    "PulsarApi.proto: CommandSubscribe",
    "Count consumer ids up; close a consumer before its id is used again.",
    on=["SUBSCRIBE"],
)
def _opening_consumer_in_use(state: State, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is not None and consumer.phase is Phase.OPEN and not consumer.ending:
        yield f"consumer {frame.consumer_id} stands already, on {consumer.topic}"


@OPENING_RULES(
    "producer-renamed",
    "A producer that is opened again keeps its name.",
    "PIP-6: deduplication is by the producer's name",
    "Send the producer_name of PRODUCER_SUCCESS again.",
    on=["PRODUCER"],
)
def _opening_renamed(state: State, frame: Frame) -> Iterator[str]:
    before = _before(state, frame)
    if before is not None and before.name and before.name != frame.body.producer_name:
        yield f"{frame.body.producer_name or 'no name'} in place of {before.name}"


@OPENING_RULES(
    "producer-epoch-stale",
    "A producer that is opened again counts its epoch up.",
    "PulsarApi.proto: CommandProducer.epoch",
    "Count epoch up with every reconnect: by it the broker takes the producer for the same one, come again.",
    on=["PRODUCER"],
)
def _opening_epoch(state: State, frame: Frame) -> Iterator[str]:
    before = _before(state, frame)
    if before is not None and before.was_open and frame.body.epoch <= before.epoch:
        yield f"epoch {frame.body.epoch} after {before.epoch}"


@OPENING_RULES(
    "topic-epoch-stale",
    "An exclusive producer that is opened again names the topic_epoch it was given.",
    "PIP-68",
    "Send topic_epoch of PRODUCER_SUCCESS again: without it nobody can tell whether another took over meanwhile.",
    on=["PRODUCER"],
)
def _opening_topic_epoch(state: State, frame: Frame) -> Iterator[str]:
    before, body = _before(state, frame), frame.body
    if before is None or before.topic_epoch is None or body.producer_access_mode == SharedAccess:
        return
    if not body.HasField("topic_epoch"):
        yield f"no topic_epoch, and {before.topic_epoch} was given"
    elif body.topic_epoch < before.topic_epoch:
        yield f"topic_epoch {body.topic_epoch} after {before.topic_epoch}"


@OPENING_RULES(
    "subscription-name-empty",
    "A subscription has a name.",
    "PulsarApi.proto: CommandSubscribe.subscription; ServerError ProducerBusy",
    "Refuse an empty name where the application gives it.",
    on=["SUBSCRIBE"],
)
def _opening_unnamed(state: State, frame: Frame) -> Iterator[str]:
    if not frame.body.subscription:
        yield "an empty subscription name"


@OPENING_RULES(
    "consumer-name-missing",
    "A consumer of Failover or Key_Shared has a name.",
    "PulsarApi.proto: CommandSubscribe.consumer_name; PIP-34",
    "Make a random name up where the application gives none: the active consumer, and the ring of key hashes, are "
    "chosen by it.",
    on=["SUBSCRIBE"],
    severity=Severity.WARNING,
)
def _opening_nameless(state: State, frame: Frame) -> Iterator[str]:
    if frame.body.subType in _ORDERED_BY_NAME and not frame.body.consumer_name:
        yield f"no consumer_name on {CommandSubscribe.SubType.Name(frame.body.subType)}"


@OPENING_RULES(
    "sticky-ranges",
    "A STICKY consumer has hash ranges, each from start to end, and none over another.",
    "PIP-34; ServerError ConsumerAssignError",
    "Check ranges where the application gives them.",
    on=["SUBSCRIBE"],
)
def _opening_sticky(state: State, frame: Frame) -> Iterator[str]:
    body = frame.body
    if body.subType != CommandSubscribe.Key_Shared or body.keySharedMeta.keySharedMode != STICKY:
        return
    ranges = sorted((each.start, each.end) for each in body.keySharedMeta.hashRanges)
    if not ranges:
        yield "STICKY without ranges"
    for start, end in ranges:
        if start > end or start < 0:
            yield f"the range {start} to {end}"
    for one, two in pairwise(ranges):
        if two[0] <= one[1]:
            yield f"{one[0]} to {one[1]} overlaps with {two[0]} to {two[1]}"


@OPENING_RULES(
    "read-compacted-elsewhere",
    "The compacted view is read from persistent topics, by one active consumer.",
    "PIP-14; ServerError NotAllowedError",
    "Take Exclusive or Failover with read_compacted.",
    on=["SUBSCRIBE"],
)
def _opening_compacted(state: State, frame: Frame) -> Iterator[str]:
    body = frame.body
    if not body.read_compacted:
        return
    if body.subType not in _SINGLE:
        yield f"read_compacted on {CommandSubscribe.SubType.Name(body.subType)}"
    try:
        persistent = TopicName.parse(body.topic).is_persistent
    except InvalidTopicName:
        return
    if not persistent:
        yield f"read_compacted of {frame.topic}"


@OPENING_RULES(
    "start-on-durable",
    "Only a reader (durable=false) says where it starts.",
    "PulsarApi.proto: CommandSubscribe.start_message_id",
    "Take initialPosition, or SEEK: brokers ignore start_message_id of durable subscriptions.",
    on=["SUBSCRIBE"],
    severity=Severity.WARNING,
)
def _opening_start(state: State, frame: Frame) -> Iterator[str]:
    if frame.body.durable and frame.body.HasField("start_message_id"):
        yield "start_message_id on a durable subscription"
