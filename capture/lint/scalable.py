"""Layouts, registrations and segments of scalable topics, as the frames of a capture show them, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pulsarium.capture.lint.frames import Frame, SentEntry
from pulsarium.capture.lint.members import Bounded
from pulsarium.proto.commands import Direction
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated.PulsarApi_pb2 import ACTIVE, BaseCommand, CommandSubscribe
from pulsarium.proto.routing import m1_segment_hash, segment_hash
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import SegmentName, TopicName

_T = BaseCommand
_MOST = 10_000
_MOST_PENDING = 50_000
_LONGEST_NAME = 2_000
_OF_A_SEGMENT = re.compile(r"(.*)-seg-([0-9]{1,19})", re.DOTALL)
_M1 = "Pulsar Server5.0.0-M1"


class LintedSegment(NamedTuple):
    """A segment of a scalable topic. `end` is included."""

    start: int
    end: int
    active: bool


class SegmentTopic(NamedTuple):
    """The parts of a segment's topic name. `end` is included."""

    parent: str
    start: int
    end: int
    id: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The newest layout of a scalable topic that a broker told, and the time of its first frame."""

    epoch: int
    told_ns: int
    segments: dict[int, LintedSegment]


@dataclass(slots=True)
class RegisteredGroup:
    """The registrations of a subscription.

    checkpoint: whether a CHECKPOINT consumer registered. assigned: for each registration, the segment topics with their
    numbers of bucket ranges. given_ns: time of the last assignment.
    """

    checkpoint: bool = False
    assigned: dict[tuple[int, int], dict[str, int]] = field(default_factory=dict)
    given_ns: int = 0

    def buckets(self, topic: str) -> int | None:
        """Return the number of bucket ranges of an assigned segment, or None for a segment that nobody has."""
        return next((each[topic] for each in self.assigned.values() if topic in each), None)


@dataclass(slots=True)
class SegmentProducers:
    """The segment producers of one producer of an application: their segments, access mode and first schema."""

    attached: set[int] = field(default_factory=set)
    exclusive: bool = False
    schema: tuple[int, bytes] | None = None


class Scalable:
    """State of scalable topics that the connections of a capture share."""

    def __init__(self) -> None:
        self.layouts: Bounded[str, Layout] = Bounded(_MOST)
        self.groups: Bounded[tuple[str, str], RegisteredGroup] = Bounded(_MOST)
        self.readers: Bounded[tuple[str, str], set[int]] = Bounded(_MOST)
        """Ids of the segments to which a subscription has subscribed."""
        self.writers: Bounded[tuple[str, str], SegmentProducers] = Bounded(_MOST)
        self.ledgers: Bounded[int, str] = Bounded(_MOST)
        """Segment topic of each ledger."""

    def writer(self, topic: SegmentTopic, name: str) -> SegmentProducers | None:
        """Return the writer of a segment producer by its name, or None when the name has another form."""
        owner = owner_of(name, topic.id)
        if owner is None:
            return None
        found = self.writers.get((topic.parent, owner))
        if found is None:
            found = self.writers[topic.parent, owner] = SegmentProducers()
        return found


class PendingMessage(NamedTuple):
    """A keyed message without a receipt."""

    parent: str
    owner: str
    key: bytes
    segment: int


class Sessions:
    """State of scalable topics of one connection. `apply` gets each frame after the rules."""

    def __init__(self, shared: Scalable | None) -> None:
        self._shared = shared
        self._number = id(self)
        self.open: Bounded[int, str] = Bounded(_MOST)
        """Topics of open lookup sessions."""
        self.refused: Bounded[int, str] = Bounded(_MOST)
        """Topics of the lookup sessions that a broker refused for good."""
        self.registered: Bounded[int, tuple[str, str, str]] = Bounded(_MOST)
        """Topic, subscription and consumer name of each registration."""
        self.asked: Bounded[int, int] = Bounded(_MOST)
        """Consumer ids of the registrations without an answer, by request id."""
        self.pending: Bounded[tuple[int, int], list[PendingMessage]] = Bounded(_MOST_PENDING)

    def overtaken(self, parent: str, owner: str, key: bytes, segment: int) -> Iterator[int]:
        """Yield the other segments that have not confirmed an earlier message of a key."""
        for some in self.pending.values():
            for each in some:
                if (each.parent, each.owner, each.key) == (parent, owner, key) and each.segment != segment:
                    yield each.segment

    def forget_producer(self, producer: int | None) -> None:
        """Forget the messages of a closed producer, which the client sends again elsewhere."""
        for key in [key for key in self.pending if key[0] == producer]:
            self.pending.pop(key)

    def apply(self, frame: Frame, entry: Callable[[Frame], SentEntry], names: Callable[[Frame], str]) -> None:
        """Update the state. `names` returns the name of a command's producer."""
        react = None if frame.spec is None else _REACTIONS.get((frame.spec.type, frame.sender))
        if react is not None and self._shared is not None:
            react(self, self._shared, frame)
        elif frame.name == "SEND" and self._shared is not None:
            self._send(frame, entry(frame), names(frame))

    def _send(self, frame: Frame, sent: SentEntry, name: str) -> None:
        topic = segment_of(frame.topic)
        owner = owner_of(name, topic.id) if topic is not None else None
        if topic is not None and owner is not None:
            found = [PendingMessage(topic.parent, owner, key, topic.id) for key in keys_of(sent)]
            if found:
                self.pending[frame.producer_id or 0, frame.sequence_id or 0] = found

    def _confirmed(self, shared: Scalable, frame: Frame) -> None:
        self.pending.pop((frame.producer_id or 0, frame.sequence_id or 0))
        self._located(shared, frame)

    def _located(self, shared: Scalable, frame: Frame) -> None:
        if frame.topic is not None and frame.topic.startswith("segment://") and frame.body.HasField("message_id"):
            shared.ledgers[frame.body.message_id.ledgerId] = frame.topic

    def _producer_closed(self, shared: Scalable, frame: Frame) -> None:
        self.forget_producer(frame.producer_id)

    def _lookup(self, shared: Scalable, frame: Frame) -> None:
        self.refused.pop(frame.body.session_id)
        self.open[frame.body.session_id] = text_of(frame.body.topic)

    def _update(self, shared: Scalable, frame: Frame) -> None:
        body = frame.body
        asked = self.open.get(body.session_id)
        if frame.error is not None:
            if asked is not None and frame.error in FINAL:
                self.refused[body.session_id] = asked
            self.open.pop(body.session_id)
        elif asked is not None:
            topic = text_of(body.resolved_topic_name) or asked
            known = shared.layouts.get(topic)
            if known is None or body.dag.epoch > known.epoch:
                segments = {
                    each.segment_id: LintedSegment(each.hash_start, each.hash_end, each.state == ACTIVE)
                    for each in body.dag.segments
                }
                shared.layouts[topic] = Layout(body.dag.epoch, frame.record.monotonic_ns, segments)

    def _close(self, shared: Scalable, frame: Frame) -> None:
        self.open.pop(frame.body.session_id)

    def _register(self, shared: Scalable, frame: Frame) -> None:
        body = frame.body
        topic, subscription = text_of(body.topic), text_of(body.subscription)
        self.registered[body.consumer_id] = (topic, subscription, text_of(body.consumer_name))
        self.asked[body.request_id] = body.consumer_id
        group = shared.groups.get((topic, subscription)) or RegisteredGroup()
        group.checkpoint = body.consumer_type == 1
        shared.groups[topic, subscription] = group

    def _answered(self, shared: Scalable, frame: Frame) -> None:
        """Take the assignment of an answer, which is the first one in 5.0.1."""
        consumer_id = self.asked.pop(frame.body.request_id)
        if consumer_id is not None and frame.error is None:
            self._take(shared, frame, consumer_id)

    def _assigned(self, shared: Scalable, frame: Frame) -> None:
        self._take(shared, frame, frame.body.consumer_id)

    def _take(self, shared: Scalable, frame: Frame, consumer_id: int) -> None:
        known = self.registered.get(consumer_id)
        group = None if known is None else shared.groups.get(known[:2])
        if group is not None:
            segments = frame.body.assignment.segments
            told = {text_of(each.segment_topic): len(each.bucket_ranges) for each in segments}
            group.assigned[self._number, consumer_id] = told
            group.given_ns = frame.record.monotonic_ns

    def _leave(self, shared: Scalable, frame: Frame) -> None:
        known = self.registered.pop(frame.body.consumer_id)
        group = None if known is None else shared.groups.get(known[:2])
        if group is not None:
            group.assigned.pop((self._number, frame.body.consumer_id), None)

    def _produce(self, shared: Scalable, frame: Frame) -> None:
        topic = segment_of(frame.topic)
        writer = None if topic is None else shared.writer(topic, text_of(frame.body.producer_name))
        if topic is not None and writer is not None:
            writer.attached.add(topic.id)
            writer.exclusive = frame.body.producer_access_mode != 0
            if writer.schema is None:
                writer.schema = schema_of(frame)

    def _subscribe(self, shared: Scalable, frame: Frame) -> None:
        topic = segment_of(frame.topic)
        if topic is not None and frame.body.subType == CommandSubscribe.Shared:
            key = (topic.parent, text_of(frame.body.subscription))
            readers = shared.readers.get(key) or set()
            readers.add(topic.id)
            shared.readers[key] = readers


def segment_of(topic: str | bytes | None) -> SegmentTopic | None:
    """Return the parts of a segment's topic name, or None for another topic."""
    if topic is None or len(topic) > _LONGEST_NAME or not text_of(topic).startswith("segment://"):
        return None
    try:
        name = SegmentName.of(TopicName.parse(topic))
    except InvalidTopicName:
        return None
    return SegmentTopic(str(name.parent), name.start, name.end, name.id)


def owner_of(name: str | bytes, segment: int) -> str | None:
    """Return the name of the application's producer behind a segment producer, or None for a name of another form."""
    found = _OF_A_SEGMENT.fullmatch(text_of(name[:_LONGEST_NAME]))
    return found[1] if found is not None and int(found[2]) == segment else None


def keys_of(sent: SentEntry) -> Iterator[bytes]:
    """Yield the keys of the messages of an entry, as bytes of UTF-8."""
    for metadata, _ in sent.messages:
        if metadata.HasField("partition_key") and not metadata.partition_key_b64_encoded:
            yield text_of(metadata.partition_key).encode()


def hash_of(key: bytes, broker_version: str) -> int:
    """Return the hash that chooses a key's segment for a broker of a version."""
    return m1_segment_hash(key) if broker_version == _M1 else segment_hash(key)


def schema_of(frame: Frame) -> tuple[int, bytes] | None:
    """Return the type and definition of a PRODUCER's schema, or None."""
    body: Any = frame.body
    return (body.schema.type, bytes(body.schema.schema_data)) if body.HasField("schema") else None


FINAL = frozenset({"TopicNotFound", "AuthorizationError", "NotAllowedError", "AuthenticationError"})
"""Errors of a lookup that a repetition cannot help."""

_CLIENT, _BROKER = Direction.CLIENT, Direction.BROKER
_REACTIONS: dict[tuple[int, Direction], Callable[[Sessions, Scalable, Frame], None]] = {
    (_T.SCALABLE_TOPIC_LOOKUP, _CLIENT): Sessions._lookup,
    (_T.SCALABLE_TOPIC_UPDATE, _BROKER): Sessions._update,
    (_T.SCALABLE_TOPIC_CLOSE, _CLIENT): Sessions._close,
    (_T.SCALABLE_TOPIC_SUBSCRIBE, _CLIENT): Sessions._register,
    (_T.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE, _BROKER): Sessions._answered,
    (_T.SCALABLE_TOPIC_ASSIGNMENT_UPDATE, _BROKER): Sessions._assigned,
    (_T.SCALABLE_TOPIC_UNSUBSCRIBE, _CLIENT): Sessions._leave,
    (_T.PRODUCER, _CLIENT): Sessions._produce,
    (_T.SUBSCRIBE, _CLIENT): Sessions._subscribe,
    (_T.SEND_RECEIPT, _BROKER): Sessions._confirmed,
    (_T.SEND_ERROR, _BROKER): Sessions._producer_closed,
    (_T.CLOSE_PRODUCER, _BROKER): Sessions._producer_closed,
    (_T.CLOSE_PRODUCER, _CLIENT): Sessions._producer_closed,
    (_T.MESSAGE, _BROKER): Sessions._located,
}
