"""Rules of requests and their answers, and of PRODUCER and SUBSCRIBE."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pulsarium.capture.lint.exchanges import answered_key
from pulsarium.capture.lint.frames import WITH_REQUEST_ID, Frame
from pulsarium.capture.lint.members import Phase, Producer
from pulsarium.capture.lint.rule import Section, Severity
from pulsarium.capture.lint.scalable import segment_of
from pulsarium.capture.lint.state import LintedConnection
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated.PulsarApi_pb2 import STICKY, BaseCommand, CommandSubscribe, Schema
from pulsarium.proto.generated.PulsarApi_pb2 import Shared as SharedAccess
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

_T = BaseCommand
_NAME_TOPICS = {"GET_OR_CREATE_SCHEMA", "GET_SCHEMA", "LOOKUP", "PARTITIONED_METADATA", "PRODUCER", "SUBSCRIBE"}
_SCHEMA_VERSION_BYTES = 8


def _answers(frame: Frame) -> bool:
    """Return whether the frame can only be an answer, by its request_id."""
    return (
        frame.spec is not None
        and frame.spec.direction is Direction.BROKER
        and frame.request_id is not None
        and answered_key(frame) == ("request_id", frame.request_id)
    )


REQUEST_RULES = Section("Rules of requests, their answers, and names in them")


@REQUEST_RULES(
    "request-id-reused",
    "A request_id is not used again while its request waits for an answer.",
    "PulsarApi.proto: request_id",
    "Increase request ids, per client or per connection.",
    on=WITH_REQUEST_ID,
)
def _request_reused(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.request_id is not None and frame.sender is Direction.CLIENT:
        waiting = state.matcher.first(("request_id", frame.request_id))
        if waiting is not None:
            yield f"{frame.name} with request {frame.request_id}, which {waiting.name} still uses"


@REQUEST_RULES(
    "answer-to-nothing",
    "An answer has the request_id of a request.",
    "PulsarApi.proto: request_id",
    "Answer with the id of the request.",
    on=WITH_REQUEST_ID,
    about=Direction.BROKER,
)
def _request_nothing(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if _answers(frame) and state.matcher.request_of(frame) is None and (frame.request_id or 0) not in state.answered:
        yield f"{frame.name} to request {frame.request_id}, which was never made"


@REQUEST_RULES(
    "answered-twice",
    "A request has one answer.",
    "PulsarApi.proto: request_id",
    "Answer each request once.",
    on=WITH_REQUEST_ID,
    about=Direction.BROKER,
)
def _request_twice(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if _answers(frame) and state.matcher.request_of(frame) is None and (frame.request_id or 0) in state.answered:
        yield f"{frame.name} to request {frame.request_id}, which has an answer already"


@REQUEST_RULES(
    "wrong-answer",
    "The answer to a request is the command for it, or ERROR.",
    "PulsarApi.proto",
    "Answer with the command that docs/commands.md lists.",
    on=WITH_REQUEST_ID,
    about=Direction.BROKER,
)
def _request_kind(state: LintedConnection, frame: Frame) -> Iterator[str]:
    request = state.matcher.request_of(frame)
    if request is None or frame.spec is None or request.spec is None or not _answers(frame):
        return
    if frame.spec.type not in (request.spec.reply, _T.ERROR):
        wanted = COMMANDS[request.spec.reply or 0].name
        yield f"{frame.name} to {request.name}, whose answer is {wanted}"


@REQUEST_RULES(
    "topic-name-invalid",
    "A topic has the name domain://tenant/namespace/topic, or a short form of it.",
    "Pulsar's TopicName; ServerError InvalidTopicName",
    "Validate topic names when the application passes them.",
    on=_NAME_TOPICS,
)
def _request_topic_name(state: LintedConnection, frame: Frame) -> Iterator[str]:
    try:
        if segment_of(frame.topic) is None:
            TopicName.parse(text_of(frame.body.topic).replace("topic://", "persistent://", 1))
    except InvalidTopicName as error:
        yield str(error)[:300]


@REQUEST_RULES(
    "partitions-ignored",
    "A client opens the partitions of a partitioned topic, and not the topic itself.",
    "Concepts: partitioned topics; ServerError NotAllowedError",
    "Open topic-partition-0 and so on, up to the number in PARTITIONED_METADATA_RESPONSE.",
    on=["PRODUCER", "SUBSCRIBE"],
)
def _request_partitions(state: LintedConnection, frame: Frame) -> Iterator[str]:
    count = state.partitions.get(frame.topic)
    if count is not None:
        yield f"{frame.name} for {frame.topic}, which has {count} partitions"


@REQUEST_RULES(
    "schema-client-side",
    "AUTO_CONSUME is an option of consumers, and not a schema of a topic.",
    "PulsarApi.proto: Schema.Type",
    "Send the schema of the messages.",
    on=["GET_OR_CREATE_SCHEMA", "PRODUCER"],
)
def _request_schema(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.body.HasField("schema") and frame.body.schema.type == Schema.AutoConsume:
        yield f"{frame.name} with an AUTO_CONSUME schema"


@REQUEST_RULES(
    "schema-version-size",
    "A schema version has 8 big-endian bytes from a broker.",
    "Pulsar's LongSchemaVersion; PulsarApi.proto: CommandGetSchema",
    "Send the bytes of PRODUCER_SUCCESS or of a message unchanged, and omit the field for the newest version.",
    on=["GET_SCHEMA"],
)
def _request_schema_version(state: LintedConnection, frame: Frame) -> Iterator[str]:
    body = frame.body
    if body.HasField("schema_version") and len(body.schema_version) != _SCHEMA_VERSION_BYTES:
        yield f"schema_version of {len(body.schema_version)} bytes"


_ORDERED_BY_NAME = (CommandSubscribe.Failover, CommandSubscribe.Key_Shared)
_SINGLE = (CommandSubscribe.Exclusive, CommandSubscribe.Failover)


def _before(state: LintedConnection, frame: Frame) -> Producer | None:
    """Return the producer that a PRODUCER reopens after its broker closed it, or None."""
    producer = state.producer(frame)
    again = producer is not None and producer.phase is Phase.CLOSED_BY_BROKER and not producer.closing
    return producer if again else None


OPENING_RULES = Section("Rules of PRODUCER and SUBSCRIBE: opening and reopening")


@OPENING_RULES(
    "producer-id-in-use",
    "A producer_id stands for one producer of a connection at a time.",
    "PulsarApi.proto: CommandProducer",
    "Increase producer ids, or close a producer before you use its id again.",
    on=["PRODUCER"],
)
def _opening_producer_in_use(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (producer := state.producer(frame)) is not None and producer.phase is Phase.OPEN and not producer.closing:
        yield f"producer {frame.producer_id} is open already, on {producer.topic}"


@OPENING_RULES(
    "consumer-id-in-use",
    "A consumer_id stands for one consumer of a connection at a time.",
    "PulsarApi.proto: CommandSubscribe",
    "Increase consumer ids, or close a consumer before you use its id again.",
    on=["SUBSCRIBE"],
)
def _opening_consumer_in_use(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is not None and consumer.phase is Phase.OPEN and not consumer.ending:
        yield f"consumer {frame.consumer_id} is open already, on {consumer.topic}"


@OPENING_RULES(
    "producer-renamed",
    "A reopened producer keeps its name.",
    "PIP-6: deduplication depends on the producer's name",
    "Send the producer_name of PRODUCER_SUCCESS again.",
    on=["PRODUCER"],
)
def _opening_renamed(state: LintedConnection, frame: Frame) -> Iterator[str]:
    before = _before(state, frame)
    if before is not None and before.name and before.name != frame.body.producer_name:
        yield f"{frame.body.producer_name or 'no name'} in place of {before.name}"


@OPENING_RULES(
    "producer-epoch-stale",
    "A reopened producer has a greater epoch.",
    "PulsarApi.proto: CommandProducer.epoch",
    "Increase epoch with every reconnect: it tells the broker that the producer is the same one.",
    on=["PRODUCER"],
)
def _opening_epoch(state: LintedConnection, frame: Frame) -> Iterator[str]:
    before = _before(state, frame)
    if before is not None and before.was_open and frame.body.epoch <= before.epoch:
        yield f"epoch {frame.body.epoch} after {before.epoch}"


@OPENING_RULES(
    "topic-epoch-stale",
    "A reopened exclusive producer sends its topic_epoch.",
    "PIP-68",
    "Send topic_epoch of PRODUCER_SUCCESS: without it the broker cannot tell whether another producer took over.",
    on=["PRODUCER"],
)
def _opening_topic_epoch(state: LintedConnection, frame: Frame) -> Iterator[str]:
    before, body = _before(state, frame), frame.body
    if before is None or before.topic_epoch is None or body.producer_access_mode == SharedAccess:
        return
    if not body.HasField("topic_epoch"):
        yield f"no topic_epoch, but the producer has {before.topic_epoch}"
    elif body.topic_epoch < before.topic_epoch:
        yield f"topic_epoch {body.topic_epoch} after {before.topic_epoch}"


@OPENING_RULES(
    "subscription-name-empty",
    "A subscription has a name.",
    "PulsarApi.proto: CommandSubscribe.subscription; ServerError ProducerBusy",
    "Refuse an empty name when the application passes it.",
    on=["SUBSCRIBE"],
)
def _opening_unnamed(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if not frame.body.subscription:
        yield "an empty subscription name"


@OPENING_RULES(
    "consumer-name-missing",
    "A Failover or Key_Shared consumer has a name.",
    "PulsarApi.proto: CommandSubscribe.consumer_name; PIP-34",
    "Generate a random name if the application passes none: brokers choose the active consumer, and the ring of "
    "key hashes, by names.",
    on=["SUBSCRIBE"],
    severity=Severity.WARNING,
)
def _opening_nameless(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.body.subType in _ORDERED_BY_NAME and not frame.body.consumer_name:
        yield f"no consumer_name on {CommandSubscribe.SubType.Name(frame.body.subType)}"


@OPENING_RULES(
    "sticky-ranges",
    "A STICKY consumer has hash ranges, each from start to end, without overlap.",
    "PIP-34; ServerError ConsumerAssignError",
    "Validate ranges when the application passes them.",
    on=["SUBSCRIBE"],
)
def _opening_sticky(state: LintedConnection, frame: Frame) -> Iterator[str]:
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
    "Only a single active consumer reads compacted, from persistent topics.",
    "PIP-14; ServerError NotAllowedError",
    "Use Exclusive or Failover with read_compacted.",
    on=["SUBSCRIBE"],
)
def _opening_compacted(state: LintedConnection, frame: Frame) -> Iterator[str]:
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
    "Only a reader (durable=false) names its start.",
    "PulsarApi.proto: CommandSubscribe.start_message_id",
    "Use initialPosition, or SEEK: brokers ignore start_message_id of durable subscriptions.",
    on=["SUBSCRIBE"],
    severity=Severity.WARNING,
)
def _opening_start(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.body.durable and frame.body.HasField("start_message_id"):
        yield "start_message_id on a durable subscription"
