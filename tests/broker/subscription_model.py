"""A model of one subscription's deliveries, small enough to be checked by reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

import mmh3

from pulsarium.broker.model.ledger.position import EARLIEST, Position
from tests.broker.wire import Exclusive, Failover, KeyShared, Shared, Wire

TICK = 1.0  # seconds: delayedDeliveryTickTimeMillis
FAILOVER_DELAY = 1.0  # seconds: activeConsumerFailoverDelayTimeMillis
LATEST = 2 * TICK  # seconds from a due time to the latest alarm, which is set a tick late and goes off at the next tick
SLACK = 0.05  # seconds that the broker may take for an action that is due
RING = 65535  # number of places on the hash ring of Key_Shared, counted from 1 (finding of B-07)


@dataclass(eq=False)
class Member:
    """A consumer."""

    name: str
    wire: Wire
    permits: int = 0
    newest: Position = EARLIEST  # the newest position among first deliveries to this consumer


@dataclass(eq=False)
class Entry:
    """An entry, with one bit for each of its messages, as in an ack set."""

    position: Position
    full: int
    key: str
    due: float = 0.0  # seconds of the broker's clock; 0 without delay
    remaining: int = field(init=False)
    holder: Member | None = None  # Shared types: the consumer that has not acknowledged the entry yet
    count: int = 0  # redeliveries (B-18)
    read: bool = False  # delivered since reading last began at the mark-delete position

    def __post_init__(self) -> None:
        self.remaining = self.full

    @property
    def ack_set(self) -> list[int]:
        """Return the ack set of MESSAGE: empty while no message is acknowledged (S54-11, -12).

        One word is enough, because no batch here has 64 messages.
        """
        return [] if self.remaining == self.full else [self.remaining]

    def forget(self) -> None:
        self.holder, self.count, self.read = None, 0, False


class Account:
    """An account of one subscription's entries. Call its methods in the order in which the broker handles commands."""

    def __init__(self, type: int) -> None:
        self.type = type
        self.entries: dict[Position, Entry] = {}  # in the order of positions
        self.members: list[Member] = []
        self.active: Member | None = None
        self.now: Callable[[], float]  # seconds of the broker's clock
        self.settled = 0.0  # Failover: the time from which on a consumer must be active
        self.fresh = False  # Shared: an entry was delivered for the first time since the last check

    # state

    @property
    def single(self) -> bool:
        """Return whether one consumer gets all entries in order, as in Exclusive and Failover."""
        return self.type in (Exclusive, Failover)

    def unacked_entries(self) -> Iterator[Entry]:
        """Yield the backlog: entries that are not completely acknowledged."""
        return (entry for entry in self.entries.values() if entry.remaining)

    def of(self, member: Member) -> list[Entry]:
        """Return the entries that a consumer has and has not acknowledged."""
        return [entry for entry in self.unacked_entries() if (entry.read if self.single else entry.holder is member)]

    def missing(self) -> list[Entry]:
        """Return the entries that the broker must deliver as soon as a consumer has permits."""
        late = self.now() - LATEST - SLACK
        return [
            entry for entry in self.unacked_entries() if entry.holder is None and (not entry.due or entry.due < late)
        ]

    def unacked(self, member: Member) -> int:
        """Return a consumer's number of unacknowledged messages (S54-18), which only the Shared types count."""
        return 0 if self.single else sum(entry.remaining.bit_count() for entry in self.of(member))

    # consumers

    def joined(self, member: Member) -> None:
        if not self.members:
            self._begin_again()
        self.members.append(member)
        if self.type == Exclusive:
            self.active = member
        self.settled = self.now() + FAILOVER_DELAY + SLACK

    def left(self, member: Member) -> None:
        self.members.remove(member)
        for entry in self.entries.values():
            if entry.holder is member:
                entry.holder = None
        if self.active is member:
            self.active = None
        self.settled = self.now() + FAILOVER_DELAY + SLACK

    def told(self, member: Member, *, active: bool) -> None:
        """Handle ACTIVE_CONSUMER_CHANGE. A consumer that becomes active reads from the mark-delete position (B-03)."""
        if active:
            self.active = member
            self._read_again()
        elif self.active is member:
            self.active = None

    def _begin_again(self) -> None:
        """Forget all deliveries when the first consumer attaches, and their redelivery counts too (B-19)."""
        for entry in self.entries.values():
            entry.forget()

    def _read_again(self) -> None:
        for entry in self.entries.values():
            entry.read = False

    # acknowledgements, redelivery and seek

    def acked(self, position: Position, remaining: int = 0) -> None:
        """Acknowledge all messages of an entry but those in `remaining`.

        Acknowledgements of one batch add up (S54-14). The redelivery count begins again at 0.
        """
        entry = self.entries[position]
        entry.remaining &= remaining
        entry.count = 0
        if not entry.remaining:
            entry.holder = None

    def acked_through(self, position: Position, remaining: int = 0) -> None:
        for each in [each for each in self.entries if each < position]:
            self.acked(each)
        self.acked(position, remaining)

    def redelivered(self, member: Member, positions: Iterable[Position]) -> None:
        if self.single:
            if member is self.active:
                self._read_again()
            return
        named = set(positions)
        for entry in list(self.unacked_entries()):
            asked = entry.position in named if named else entry.holder is member
            if entry.holder is not None and asked:
                entry.holder, entry.count = None, entry.count + 1

    def moved(self, target: Position, remaining: int) -> None:
        """Move the subscription to `target`, inclusive. Of a batch, only the messages in `remaining` are left."""
        for position, entry in self.entries.items():
            entry.remaining = entry.full if position >= target else 0
            entry.forget()
        if target in self.entries:
            self.entries[target].remaining &= remaining

    # deliveries

    def delivered(self, member: Member, position: Position, count: int, ack_set: list[int]) -> None:
        entry = self.entries[position]
        assert member.permits > 0, f"{position}: no permits (B-05)"
        assert entry.remaining, f"{position}: delivered, although it was acknowledged"
        assert ack_set == entry.ack_set, f"{position}: ack set {ack_set}, not {entry.ack_set}"
        assert count == entry.count, f"{position}: redelivery count {count}, not {entry.count}"
        member.permits -= entry.remaining.bit_count()
        if self.single:
            assert member is self.active, f"{position}: went to {member.name}, who is not active"
            assert entry is self._expected(), f"{position}: out of order"
        else:
            self._shared(member, entry)
        entry.read = True

    def _expected(self) -> Entry | None:
        return next((entry for entry in self.unacked_entries() if not entry.read), None)

    def _shared(self, member: Member, entry: Entry) -> None:
        assert entry.holder is None, f"{entry.position}: went to {member.name}, but {entry.holder.name} has it"
        assert entry.due - TICK <= self.now() + SLACK, f"{entry.position}: {entry.due - self.now()} s too early (B-21)"
        if self.type == KeyShared:
            for other in self.unacked_entries():
                if other.key == entry.key and other is not entry:
                    self._same_key(member, entry, other)
        elif not entry.read and not entry.due:
            assert entry.position > member.newest, f"{entry.position}: out of order"
            member.newest = entry.position
            self.fresh = True
        entry.holder = member

    def _same_key(self, member: Member, entry: Entry, other: Entry) -> None:
        """Check that only one consumer at a time has messages of a key (B-11), and has them in order."""
        where = f"{entry.position} of {entry.key} went to {member.name}"
        assert other.holder in (None, member), f"{where}, but {other.position} is unacknowledged at another consumer"
        if other.position < entry.position and not (entry.due or other.due):
            assert other.holder is member, f"{where}, but {other.position} comes first"

    def check(self) -> None:
        """Check that the broker has delivered all entries that it could deliver."""
        if self.single:
            if self.now() > self.settled and self.members:
                assert self.active is not None, "no consumer is active"
            if self.now() > self.settled and self.active is not None and self.active.permits > 0:
                expected = self._expected()
                assert expected is None, f"{expected.position} was not delivered"
            return
        for entry in self.missing():
            assert not self._could_go(entry), f"{entry.position} of {entry.key} was not delivered"
        if self.fresh:  # older entries come before newer ones (B-18), and none is left out
            self.fresh = False
            newest = max((member.newest for member in self.members), default=EARLIEST)
            for entry in self.missing():
                assert entry.due or entry.position > newest, f"{entry.position} was passed over"

    def _could_go(self, entry: Entry) -> bool:
        if self.type == Shared:
            return any(member.permits > 0 for member in self.members)
        owner = owner_of(entry.key, frozenset(member.name for member in self.members))
        draining = any(e.key == entry.key and e.holder and e.holder.name != owner for e in self.unacked_entries())
        return not draining and any(member.name == owner and member.permits > 0 for member in self.members)


@cache
def owner_of(key: str, names: frozenset[str]) -> str | None:
    """Return the consumer of a Key_Shared key: the one whose point on the hash ring is the next (B-07)."""
    ring = {place(f"{name}\0{0}\0{j}"): name for name in names for j in range(100)}
    here = place(key)
    return ring[min(ring, key=lambda point: (point < here, point))] if ring else None


def place(text: str) -> int:
    """Return the place of a key, or of a consumer's point, on the hash ring."""
    return (mmh3.hash(text.encode(), signed=False) & 0x7FFFFFFF) % RING + 1
