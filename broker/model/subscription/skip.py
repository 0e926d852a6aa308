"""Moving a subscription on for everybody, without its consumers: they owe what was passed over no longer."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pyroaring import BitMap

from pulsarium.broker.model.errors import NoSuchMessageError, UnsupportedSubscriptionTypeError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.message_id import words_of

if TYPE_CHECKING:
    from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
    from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
    from pulsarium.broker.model.subscription.persistent import PersistentSubscription


KEPT_MOVES = 64  # of the mark, for each subscription


class MovedBy(Enum):
    """Name who moved a mark-delete position."""

    CUMULATIVE = "a cumulative acknowledgement"
    EXPIRED = "TTL or a request to expire messages"
    SKIPPED = "a request to skip messages, or to clear the backlog"
    EVICTED = "backlog quota or truncation"
    SEEK = "a seek or a reset of the cursor"


CUMULATIVE = MovedBy.CUMULATIVE  # an enumeration is slow to ask


@dataclass(slots=True)
class MarkMove:
    """Keep that the mark went from `after` to `through`. `ms`: when, in ms since the epoch; 0 where nobody looked."""

    by: MovedBy
    after: Position
    through: Position
    ms: int


class MarkMoves:
    """Remember the moves of a mark since the topic was loaded, when it stood at `start`. In memory only, for "why"."""

    __slots__ = ("_known", "forgotten", "start")

    def __init__(self, start: Position) -> None:
        self.start = start
        self.forgotten = start  # of nothing up to here is known how
        self._known: deque[MarkMove] = deque()

    def note(self, by: MovedBy, after: Position, through: Position, ms: int = 0) -> None:
        """The mark moved. Cumulative acknowledgements in a row are one."""
        known = self._known
        if known and by is CUMULATIVE is known[-1].by:
            known[-1].through = through
        elif through > after:
            known.append(MarkMove(by, after, through, ms))
            if len(known) > KEPT_MOVES:
                self.forgotten = known.popleft().through

    def sought(self, mark: Position, ms: int) -> None:
        """The cursor was reset: what was before it means nothing any more."""
        self._known.clear()
        self.start = self.forgotten = Position(-1, -1)
        self.note(MovedBy.SEEK, self.start, mark, ms)

    def of(self, position: Position) -> MarkMove | None:
        """The one that went past an entry."""
        return next((each for each in reversed(self._known) if each.after < position <= each.through), None)


LARGEST_BATCH = 1 << 20  # messages; metadata may claim any number, and an ack set has a bit for each


def skip_through(
    subscription: PersistentSubscription,
    position: Position,
    ack_set: Sequence[int] = (),
    by: MovedBy = MovedBy.SKIPPED,
) -> int:
    """Acknowledge everything up to an entry, or with an ack set up to a message in it; how many entries went.

    Consumers stay, and owe what was passed over no longer.
    """
    cursor = subscription.cursor
    before = cursor.backlog()
    subscription.acknowledge_through(position, ack_set, by, save_now=True)
    subscription.dispatch_soon()
    return before - cursor.backlog()


def skip(subscription: PersistentSubscription, count: int, *, with_acked: bool = False) -> int:
    """Pass over the next `count` unacknowledged entries; how many there were. `with_acked` as for `nth_position`."""
    position = nth_position(subscription.cursor, count, with_acked=with_acked)
    return skip_through(subscription, position) if position is not None else 0


def skip_all(subscription: PersistentSubscription) -> int:
    """Pass over everything that there is, delayed or not."""
    if subscription.dispatcher is not None:
        subscription.dispatcher.forget_delayed()
    last = subscription.cursor.ledger.last_confirmed
    return skip_through(subscription, last) if last > subscription.cursor.mark_delete else 0


def nth_position(cursor: ManagedCursor, count: int, *, with_acked: bool = False) -> Position | None:
    """The `count`th unacknowledged entry, the last one when there are fewer; None when there is none.

    `with_acked` counts what was acknowledged behind the mark-delete position too.
    """
    mark = cursor.mark_delete
    found: Position | None = None
    for ledger in cursor.ledger.ledgers.values():
        if count <= 0:
            break
        if ledger.id < mark.ledger_id:
            continue
        waiting = BitMap(range(mark.entry_id + 1 if ledger.id == mark.ledger_id else 0, ledger.confirmed))
        acked = None if with_acked else cursor.individual_acks.of(ledger.id)
        if acked is not None:
            waiting -= acked
        if waiting:
            found = Position(ledger.id, waiting[min(count, len(waiting)) - 1])
            count -= len(waiting)
    return found


# entries by their ids (PIP-423)


@dataclass(frozen=True, slots=True)
class SkipEntry:
    """An entry, or with `batch_indexes` only these of its messages; None when there are none, as in Pulsar's."""

    ledger_id: int
    entry_id: int
    batch_indexes: Sequence[int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_indexes", tuple(self.batch_indexes) if self.batch_indexes else None)

    @property
    def position(self) -> Position:
        return Position(self.ledger_id, self.entry_id)


class Skip:
    """Entries of one subscription that are about to be acknowledged: all of them, or none when one is wrong.

    Entries whose ledger the topic does not have are of other partitions, or were trimmed; there is nothing to do for
    them, nor for those that are acknowledged already.
    """

    def __init__(self, subscription: PersistentSubscription, entries: Iterable[SkipEntry]) -> None:
        if subscription.dispatcher is not None and not subscription.shares_messages:
            raise UnsupportedSubscriptionTypeError
        self._subscription = subscription
        found = [each for each in entries if self._concerns(each.position)]
        self._whole = [each.position for each in found if not each.batch_indexes]
        self._indexes = {each.position: each.batch_indexes for each in found if each.batch_indexes}
        self._sizes: Mapping[Position, int] = {}

    def _concerns(self, position: Position) -> bool:
        cursor = self._subscription.cursor
        ledger = cursor.ledger.ledgers.get(position.ledger_id)
        if ledger is None:
            return False
        if position.entry_id >= ledger.confirmed:
            raise NoSuchMessageError(f"Message {position} does not exist: it is beyond the last entry of its ledger")
        return not cursor.is_acked(position)

    @property
    def ledger(self) -> ManagedLedger:
        return self._subscription.cursor.ledger

    @property
    def partial(self) -> Collection[Position]:
        """The entries whose batch size `check` has to know."""
        return self._indexes.keys()

    def check(self, batch_sizes: Mapping[Position, int]) -> None:
        """Raise what is wrong with a batch index."""
        for position, indexes in self._indexes.items():
            check_indexes(position, indexes, batch_sizes[position])
        self._sizes = batch_sizes

    def apply(self) -> None:
        """Acknowledge, as one ACK of a consumer would. Whoever has the messages owes them no longer."""
        parts = (  # one at a time: an ack set is as large as a batch claims to be
            (position, ack_set_without(position, indexes, self._sizes[position]))
            for position, indexes in self._indexes.items()
        )
        self._subscription.acknowledge(None, self._whole, parts, save_now=True)
        self._subscription.dispatch_soon()  # a consumer that owes less may be given more


def batch_size(entry: bytes) -> int:
    """Return how many messages a batch has; 0 for an entry that is none."""
    try:
        metadata = parse_metadata(entry)
    except EntryError:
        return 0
    return metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 0


def check_indexes(position: Position, indexes: Sequence[int], size: int) -> None:
    """Raise what is wrong with indexes of a batch of `size` messages."""
    if not 0 < size <= LARGEST_BATCH:
        raise NoSuchMessageError(f"Invalid batch index {indexes[0]}: message {position} is not a batch")
    if max(indexes) >= size:
        raise NoSuchMessageError(f"Invalid batch index {max(indexes)}: message {position} is a batch of {size}")


def ack_set_without(position: Position, indexes: Sequence[int], size: int) -> list[int]:
    """What remains of a batch of `size` messages without those at `indexes`; raises what is wrong with them."""
    check_indexes(position, indexes, size)
    remaining = bytearray(((1 << size) - 1).to_bytes((size + 7) // 8, "little"))
    for index in indexes:
        remaining[index // 8] &= ~(1 << index % 8)
    return words_of(int.from_bytes(remaining, "little"))
