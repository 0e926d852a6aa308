"""Rules of PRODUCER and SUBSCRIBE: what opens a producer or a consumer, and opens it again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Phase, Producer
from pulsarium.capture.lint.rule import Severity, rule
from pulsarium.capture.lint.state import State
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated.PulsarApi_pb2 import STICKY, CommandSubscribe
from pulsarium.proto.generated.PulsarApi_pb2 import Shared as SharedAccess
from pulsarium.proto.topic_name import TopicName

_ORDERED_BY_NAME = (CommandSubscribe.Failover, CommandSubscribe.Key_Shared)
_SINGLE = (CommandSubscribe.Exclusive, CommandSubscribe.Failover)


def _before(state: State, frame: Frame) -> Producer | None:
    """The producer that a PRODUCER opens again: its broker closed it."""
    producer = state.producer(frame)
    again = producer is not None and producer.phase is Phase.CLOSED_BY_BROKER and not producer.closing
    return producer if again else None


@rule(
    "producer-id-in-use",
    "A producer_id names one producer of a connection at a time.",
    "PulsarApi.proto: CommandProducer",
    "Count producer ids up; close a producer before its id is used again.",
    on=["PRODUCER"],
)
def _producer_in_use(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    if producer is not None and producer.phase is Phase.OPEN and not producer.closing:
        yield f"producer {frame.producer_id} stands already, on {producer.topic}"


@rule(
    "consumer-id-in-use",
    "A consumer_id names one consumer of a connection at a time.",
    "PulsarApi.proto: CommandSubscribe",
    "Count consumer ids up; close a consumer before its id is used again.",
    on=["SUBSCRIBE"],
)
def _consumer_in_use(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is not None and consumer.phase is Phase.OPEN and not consumer.ending:
        yield f"consumer {frame.consumer_id} stands already, on {consumer.topic}"


@rule(
    "producer-renamed",
    "A producer that is opened again keeps its name.",
    "PIP-6: deduplication is by the producer's name",
    "Send the producer_name of PRODUCER_SUCCESS again.",
    on=["PRODUCER"],
)
def _renamed(state: State, frame: Frame) -> Iterator[str]:
    before = _before(state, frame)
    if before is not None and before.name and before.name != frame.body.producer_name:
        yield f"{frame.body.producer_name or 'no name'} in place of {before.name}"


@rule(
    "producer-epoch-stale",
    "A producer that is opened again counts its epoch up.",
    "PulsarApi.proto: CommandProducer.epoch",
    "Count epoch up with every reconnect: by it the broker takes the producer for the same one, come again.",
    on=["PRODUCER"],
)
def _epoch(state: State, frame: Frame) -> Iterator[str]:
    before = _before(state, frame)
    if before is not None and before.was_open and frame.body.epoch <= before.epoch:
        yield f"epoch {frame.body.epoch} after {before.epoch}"


@rule(
    "topic-epoch-stale",
    "An exclusive producer that is opened again names the topic_epoch it was given.",
    "PIP-68",
    "Send topic_epoch of PRODUCER_SUCCESS again: without it nobody can tell whether another took over meanwhile.",
    on=["PRODUCER"],
)
def _topic_epoch(state: State, frame: Frame) -> Iterator[str]:
    before, body = _before(state, frame), frame.body
    if before is None or before.topic_epoch is None or body.producer_access_mode == SharedAccess:
        return
    if not body.HasField("topic_epoch"):
        yield f"no topic_epoch, and {before.topic_epoch} was given"
    elif body.topic_epoch < before.topic_epoch:
        yield f"topic_epoch {body.topic_epoch} after {before.topic_epoch}"


@rule(
    "subscription-name-empty",
    "A subscription has a name.",
    "PulsarApi.proto: CommandSubscribe.subscription; ServerError ProducerBusy",
    "Refuse an empty name where the application gives it.",
    on=["SUBSCRIBE"],
)
def _unnamed(state: State, frame: Frame) -> Iterator[str]:
    if not frame.body.subscription:
        yield "an empty subscription name"


@rule(
    "consumer-name-missing",
    "A consumer of Failover or Key_Shared has a name.",
    "PulsarApi.proto: CommandSubscribe.consumer_name; PIP-34",
    "Make a random name up where the application gives none: the active consumer, and the ring of key hashes, are "
    "chosen by it.",
    on=["SUBSCRIBE"],
    severity=Severity.WARNING,
)
def _nameless(state: State, frame: Frame) -> Iterator[str]:
    if frame.body.subType in _ORDERED_BY_NAME and not frame.body.consumer_name:
        yield f"no consumer_name on {CommandSubscribe.SubType.Name(frame.body.subType)}"


@rule(
    "sticky-ranges",
    "A STICKY consumer has hash ranges, each from start to end, and none over another.",
    "PIP-34; ServerError ConsumerAssignError",
    "Check ranges where the application gives them.",
    on=["SUBSCRIBE"],
)
def _sticky(state: State, frame: Frame) -> Iterator[str]:
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


@rule(
    "read-compacted-elsewhere",
    "The compacted view is read from persistent topics, by one active consumer.",
    "PIP-14; ServerError NotAllowedError",
    "Take Exclusive or Failover with read_compacted.",
    on=["SUBSCRIBE"],
)
def _compacted(state: State, frame: Frame) -> Iterator[str]:
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


@rule(
    "start-on-durable",
    "Only a reader (durable=false) says where it starts.",
    "PulsarApi.proto: CommandSubscribe.start_message_id",
    "Take initialPosition, or SEEK: brokers ignore start_message_id of durable subscriptions.",
    on=["SUBSCRIBE"],
    severity=Severity.WARNING,
)
def _start(state: State, frame: Frame) -> Iterator[str]:
    if frame.body.durable and frame.body.HasField("start_message_id"):
        yield "start_message_id on a durable subscription"
