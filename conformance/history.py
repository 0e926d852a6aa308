"""Read the frames of a scenario: messages by segment, attachments, acknowledgements, and broken rules of the linter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pulsarium.capture.file import CaptureRecord, EventKind
from pulsarium.capture.lint.checker import BrokenRule, Walk, finding_of
from pulsarium.capture.lint.frames import Frame, SentEntry
from pulsarium.capture.lint.scalable import SegmentTopic, keys_of, segment_of
from pulsarium.proto.commands import Direction
from pulsarium.proto.generated.PulsarApi_pb2 import CommandAck, CommandSubscribe


@dataclass(frozen=True, slots=True)
class Stored:
    """A message that a segment confirmed."""

    segment: SegmentTopic
    key: str | None
    value: str


@dataclass(frozen=True, slots=True)
class Attached:
    """A SUBSCRIBE of a segment."""

    segment: SegmentTopic
    subscription: str
    kind: str
    durable: bool


@dataclass(frozen=True, slots=True)
class Acked:
    """An ACK of a segment."""

    segment: SegmentTopic
    subscription: str
    cumulative: bool


@dataclass(slots=True)
class History:
    """The commands of clients about segments, in order."""

    stored: list[Stored] = field(default_factory=list)
    attached: list[Attached] = field(default_factory=list)
    acked: list[Acked] = field(default_factory=list)
    producers: list[tuple[SegmentTopic, str]] = field(default_factory=list)
    """Segment and producer name of each PRODUCER."""
    commands: list[Frame] = field(default_factory=list)
    sent: list[SentEntry] = field(default_factory=list)
    """The entries of SEND commands."""
    findings: list[BrokenRule] = field(default_factory=list)
    ended: bool = False
    """True once a connection has ended."""

    def names(self) -> list[str]:
        """Return the commands of clients by name, in order."""
        return [each.name for each in self.commands]

    def entries(self, topic: str) -> list[SentEntry]:
        """Return the entries that clients sent to a topic."""
        return [each for each in self.sent if each.frame.topic == topic]

    def of(self, name: str) -> list[Frame]:
        """Return the frames of clients with a command."""
        return [each for each in self.commands if each.name == name]


def read(records: Iterable[CaptureRecord]) -> History:
    """Return the history of the records of a capture."""
    history, walk = History(), Walk(judging=True)
    consumers: dict[tuple[int, int | None], tuple[SegmentTopic, str]] = {}
    sent: dict[tuple[int, int | None, int | None], list[Stored]] = {}
    for record in records:
        checker, seen = walk.feed(record)
        history.findings += [finding_of(each, checker.conversation) for each in seen.violations]
        history.ended = history.ended or record.kind is EventKind.CLOSED
        frame = seen.frame
        if frame is None or frame.spec is None:
            continue
        place = (record.connection, frame.producer_id, frame.sequence_id)
        if frame.sender is Direction.BROKER:
            if frame.name == "SEND_RECEIPT":
                history.stored += sent.pop(place, [])
            continue
        history.commands.append(frame)
        if frame.name == "SEND":
            history.sent.append(SentEntry(frame))
        segment = segment_of(frame.topic)
        if segment is None:
            continue
        if frame.name == "PRODUCER":
            history.producers.append((segment, frame.body.producer_name))
        elif frame.name == "SEND":
            sent[place] = _messages(segment, history.sent[-1])
        elif frame.name == "SUBSCRIBE":
            kind = CommandSubscribe.SubType.Name(frame.body.subType)
            consumers[record.connection, frame.consumer_id] = (segment, frame.body.subscription)
            history.attached.append(Attached(segment, frame.body.subscription, kind, frame.body.durable))
        elif frame.name == "ACK" and (record.connection, frame.consumer_id) in consumers:
            of, subscription = consumers[record.connection, frame.consumer_id]
            history.acked.append(Acked(of, subscription, frame.body.ack_type == CommandAck.Cumulative))
    return history


def _messages(segment: SegmentTopic, sent: SentEntry) -> list[Stored]:
    found = []
    for metadata, payload in sent.messages:
        key = metadata.partition_key if metadata.HasField("partition_key") else None
        found.append(Stored(segment, key, payload.decode(errors="replace")))
    return found


__all__ = ["Acked", "Attached", "History", "Stored", "keys_of", "read"]
