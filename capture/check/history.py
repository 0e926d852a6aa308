"""The history of a capture, in bounded memory: stored messages, subscriptions with their deliveries, transactions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Bounded, Consumer, Phase, Position
from pulsarium.capture.lint.shared import Transaction
from pulsarium.proto.generated.PulsarApi_pb2 import CommandSubscribe

_MOST_MESSAGES = 500_000
_MOST_MEMBERS = 20_000
NEVER = -(1 << 62)
"""A time before all others."""


class FramePlace(NamedTuple):
    """A frame of the history: number of its record in the capture, connection, number in the connection, command."""

    record: int
    connection: int
    frame: int
    command: str
    ns: int
    wall_ns: int

    def __str__(self) -> str:
        return f"{self.command} (connection {self.connection}, frame {self.frame})"


def place_of(number: int, frame: Frame) -> FramePlace:
    record = frame.record
    return FramePlace(number, record.connection, frame.number, frame.name, record.monotonic_ns, record.wall_ns)


@dataclass(slots=True)
class SentMessage:
    """An entry that a client sent. `position` and `stored` are those of its receipt.

    session: connection, producer id and number of its PRODUCER. part: number of the chunk. keys: keys of its messages
    that are not deletions, or None when unknown. visible: whether clients surely read
    the entry: it is no marker, and no chunk of a message that may be incomplete.
    """

    sent: FramePlace
    session: tuple[int, int, int]
    producer: str
    sequence: int
    part: int
    transaction: Transaction | None
    deliver_at_ms: int
    keys: frozenset[str] | None
    deleted: frozenset[str]
    visible: bool
    position: Position
    stored: FramePlace


@dataclass(slots=True)
class EntryDeliveries:
    """Deliveries of an entry to a subscription: the first, the last, and the consumer of the last."""

    first: FramePlace
    last: FramePlace
    reader: ConsumerHistory
    cause_ns: int = NEVER
    """Time of the last request that names this entry for redelivery."""
    released: bool = False
    """True when the consumer acknowledged the entry since its last delivery, perhaps in a transaction."""
    acked: FramePlace | None = None
    committed_by: tuple[Transaction, FramePlace] | None = None
    """The committed transaction that acknowledged the entry."""


@dataclass(slots=True, eq=False)
class ConsumerHistory:
    """A consumer of a subscription.

    seen: the linter's state of the consumer. starved_ns: last time at which it had no permits. cause_ns: time of the
    last event after which the broker redelivers all messages of the consumer.
    """

    subscription: SubscriptionHistory
    seen: Consumer
    connection: int
    starved_ns: int
    cause_ns: int = NEVER
    gone: bool = False

    @property
    def open(self) -> bool:
        return self.attached and not self.seen.ending

    @property
    def attached(self) -> bool:
        """Return whether the consumer is open, or about to be closed by its client."""
        return not self.gone and self.seen.phase is Phase.OPEN


@dataclass(slots=True, eq=False)
class SubscriptionHistory:
    """A subscription, from the first SUBSCRIBE of the capture on.

    from_start: whether it began before the first message. born: record number of the answer to that SUBSCRIBE. last:
    greatest position that was delivered since the last jump (a seek, an unload, or a time without consumers), or None
    right after a jump.
    """

    name: str
    topic: TopicHistory
    type: int
    durable: bool
    read_compacted: bool
    out_of_order: bool
    from_start: bool
    born: int
    last: Position | None = (-1, -1)
    jumped: bool = False
    cause_ns: int = NEVER
    readers: list[ConsumerHistory] = field(default_factory=list)
    deliveries: Bounded[Position, EntryDeliveries] = field(default_factory=lambda: Bounded(_MOST_MESSAGES))
    acked_through: FramePlace | None = None
    acked_position: Position = (-1, -1)
    keys: Bounded[str, Position] = field(default_factory=lambda: Bounded(_MOST_MESSAGES))
    """Position of the last delivered entry of each key."""
    suspects: dict[Position, tuple[str, FramePlace]] = field(default_factory=dict)
    """Undelivered messages that are probably lost, each with the evidence."""
    held_back: bool = False
    """True when a delayed message was delivered after a wait, so that delayed delivery is on."""

    @property
    def exclusive(self) -> bool:
        return self.type == CommandSubscribe.Exclusive

    @property
    def single(self) -> bool:
        """Return whether one consumer at a time gets all messages."""
        return self.type in (CommandSubscribe.Exclusive, CommandSubscribe.Failover)

    @property
    def key_shared(self) -> bool:
        return self.type == CommandSubscribe.Key_Shared

    def jump(self, ns: int) -> None:
        """Forget positions, because the broker may deliver any message next."""
        self.last = None
        self.jumped = True
        self.cause_ns = max(self.cause_ns, ns)
        self.keys = Bounded(_MOST_MESSAGES)

    def forget_acks(self) -> None:
        """Forget acknowledgements that a seek or a lost broker may have undone."""
        self.acked_through, self.acked_position = None, (-1, -1)
        for each in self.deliveries.values():
            each.acked = each.committed_by = None

    def acked_by(self, position: Position) -> FramePlace | None:
        """Return the acknowledgement of an entry, or None."""
        delivery = self.deliveries.get(position)
        if delivery is not None and delivery.acked is not None:
            return delivery.acked
        return self.acked_through if position <= self.acked_position else None


class TopicHistory:
    """A topic: its stored messages in the order of positions, and its subscriptions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.positions: list[Position] = []
        self.subscriptions: dict[str, SubscriptionHistory] = {}
        self.deduplicated: list[int] = []
        """Record numbers of receipts that show deduplication: those of duplicates. The first and the last are kept."""
        self.sequences: Bounded[tuple[str, int, int], SentMessage] = Bounded(_MOST_MESSAGES)
        """First stored message by producer, sequence id and chunk."""
        self.newest: Bounded[str, Position] = Bounded(_MOST_MESSAGES)
        """Position of the newest message of each key."""
        self.faulted = False
        """True when a fault of the lab changed a frame of the topic."""

    def between(self, after: Position, before: Position) -> list[Position]:
        """Return the positions of stored messages between two positions, without these."""
        return self.positions[bisect_right(self.positions, after) : bisect_left(self.positions, before)]

    def add(self, message: SentMessage) -> None:
        """Add a stored message."""
        position = message.position
        insort(self.positions, position)
        if len(self.positions) > _MOST_MESSAGES:
            del self.positions[: _MOST_MESSAGES // 2]
        if message.transaction is None:
            for key in (message.keys or frozenset()) | message.deleted:
                self.newest[key] = max(position, self.newest.get(key) or position)


class TransactionOutcome(Enum):
    """State of a transaction, as the client knows it."""

    OPEN = "open"
    COMMITTING = "committing"
    COMMITTED = "committed"
    ABORTING = "aborting"
    ABORTED = "aborted"


@dataclass(slots=True)
class TransactionHistory:
    """A transaction: its outcome, the frame of the outcome, and the deliveries that it acknowledges."""

    outcome: TransactionOutcome
    place: FramePlace
    acks: list[tuple[SubscriptionHistory, Position, FramePlace]] = field(default_factory=list)


class History:
    """The topics and transactions of a capture."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicHistory] = {}
        self.messages: Bounded[tuple[str, Position], SentMessage] = Bounded(_MOST_MESSAGES)
        self.transactions: Bounded[Transaction, TransactionHistory] = Bounded(_MOST_MESSAGES)
        self.readers: Bounded[tuple[int, int], ConsumerHistory] = Bounded(_MOST_MEMBERS)

    def topic(self, name: str) -> TopicHistory:
        return self.topics.setdefault(name, TopicHistory(name))

    def message(self, topic: TopicHistory, position: Position) -> SentMessage | None:
        return self.messages.get((topic.name, position))

    def outcome(self, transaction: Transaction | None) -> TransactionOutcome | None:
        """Return the outcome of a transaction, or None when the capture does not have its beginning."""
        ended = self.transactions.get(transaction)
        return None if ended is None else ended.outcome
