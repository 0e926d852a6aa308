"""Skip entries of a subscription by request: by count, all, or by id.

Consumers need not acknowledge skipped messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyroaring import BitMap

from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.errors import NoSuchMessageError, UnsupportedSubscriptionTypeError
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.mark_moves import MovedBy
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.message_id import words_of

LARGEST_BATCH = 1 << 20  # messages; metadata may claim any number, and an ack set has a bit for each


def skip_through(
    subscription: PersistentSubscription,
    position: Position,
    ack_set: Sequence[int] = (),
    by: MovedBy = MovedBy.SKIPPED,
) -> int:
    """Acknowledge all entries through `position`, or up to a message in it with an ack set.

    Return how many entries left the backlog.

    Consumers stay connected, and need not acknowledge the skipped messages.
    """
    cursor = subscription.cursor
    before = cursor.backlog()
    subscription.acknowledge_through(position, ack_set, by, save_now=False)
    cursor.save()
    subscription.dispatch_soon()
    return before - cursor.backlog()


def skip(subscription: PersistentSubscription, count: int, *, with_acked: bool = False) -> int:
    """Skip the next `count` unacknowledged entries, and return how many were skipped.

    `with_acked` as for `nth_position`.
    """
    position = nth_position(subscription.cursor, count, with_acked=with_acked)
    return skip_through(subscription, position) if position is not None else 0


def skip_all(subscription: PersistentSubscription) -> int:
    """Skip the whole backlog, with its delayed messages, and return how many entries were skipped."""
    if subscription.dispatcher is not None:
        subscription.dispatcher.forget_delayed()
    last = subscription.cursor.ledger.last_confirmed
    return skip_through(subscription, last) if last > subscription.cursor.mark_delete else 0


def nth_position(cursor: ManagedCursor, count: int, *, with_acked: bool = False) -> Position | None:
    """Return the position of the `count`th unacknowledged entry, or of the last one, or None without any.

    `with_acked` also counts individually acknowledged entries.
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


# skipping entries by their ids (PIP-423)


@dataclass(frozen=True, slots=True)
class SkipEntry:
    """An entry to skip, or some messages of a batch. Empty `batch_indexes` become None, as in Pulsar."""

    ledger_id: int
    entry_id: int
    batch_indexes: Sequence[int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_indexes", tuple(self.batch_indexes) if self.batch_indexes else None)

    @property
    def position(self) -> Position:
        return Position(self.ledger_id, self.entry_id)


class Skip:
    """Entries of one subscription to acknowledge together: all of them, or none when one is invalid.

    Entries that are already acknowledged are ignored. So are entries in ledgers that the topic does not have: those are
    in other partitions, or were trimmed.
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
        """Return the positions whose batch size `check` needs."""
        return self._indexes.keys()

    def check(self, batch_sizes: Mapping[Position, int]) -> None:
        """Raise `NoSuchMessageError` for an invalid batch index."""
        for position, indexes in self._indexes.items():
            check_indexes(position, indexes, batch_sizes[position])
        self._sizes = batch_sizes

    def apply(self) -> None:
        """Acknowledge the entries, as one ACK of a consumer does, and dispatch."""
        parts = (  # a generator, because an ack set is as large as a batch claims to be
            (position, ack_set_without(position, indexes, self._sizes[position]))
            for position, indexes in self._indexes.items()
        )
        self._subscription.acknowledge(None, self._whole, parts, save_now=False)
        self._subscription.cursor.save()
        self._subscription.dispatch_soon()  # fewer unacknowledged messages may let a consumer receive more


def batch_size(entry: bytes) -> int:
    """Return the number of messages in a batch, or 0 for an entry that is not a batch."""
    try:
        metadata = parse_metadata(entry)
    except EntryError:
        return 0
    return metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 0


def check_indexes(position: Position, indexes: Sequence[int], size: int) -> None:
    """Raise `NoSuchMessageError` for indexes outside of a batch of `size` messages."""
    if not 0 < size <= LARGEST_BATCH:
        raise NoSuchMessageError(f"Invalid batch index {indexes[0]}: message {position} is not a batch")
    if max(indexes) >= size:
        raise NoSuchMessageError(f"Invalid batch index {max(indexes)}: message {position} is a batch of {size}")


def ack_set_without(position: Position, indexes: Sequence[int], size: int) -> list[int]:
    """Return the ack set of a batch of `size` messages without those at `indexes`.

    Raise `NoSuchMessageError` for invalid indexes.
    """
    check_indexes(position, indexes, size)
    remaining = bytearray(((1 << size) - 1).to_bytes((size + 7) // 8, "little"))
    for index in indexes:
        remaining[index // 8] &= ~(1 << index % 8)
    return words_of(int.from_bytes(remaining, "little"))
