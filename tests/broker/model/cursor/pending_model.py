"""A simple model of pending acknowledgements: sets of messages."""

from __future__ import annotations

from dataclasses import dataclass, field

Messages = dict[int, frozenset[int]]  # batch indexes, by entry


@dataclass
class Ack:
    """An ACK in a transaction. For a cumulative one, `through` is the last entry and how many of its messages count."""

    least: int
    messages: Messages
    through: tuple[int, int] | None = None
    ending: bool = False  # its transaction has ended, but the end is not committed yet


@dataclass
class Model:
    sizes: list[int]
    shares: bool
    acked: list[set[int]] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.acked = [set() for _ in self.sizes]

    def left(self, entry: int) -> set[int]:
        """Return the batch indexes of an entry that may be delivered."""
        pending = self.pending(entry)
        return set(range(self.sizes[entry])) - self.acked[entry] - (pending or set())

    def pending(self, entry: int) -> set[int] | None:
        """Return the batch indexes of an entry that open transactions acknowledged, or None when none of them did."""
        held = [ack.messages[entry] for ack in self.acks if entry in ack.messages]
        return set().union(*held) if held else None

    def is_acked(self, entry: int) -> bool:
        return len(self.acked[entry]) == self.sizes[entry]

    def conflicts(self, entry: int, indexes: frozenset[int], *, whole: bool) -> bool:
        pending = self.pending(entry)
        if self.is_acked(entry):
            return True
        if whole:
            return pending is not None or (self.shares and bool(self.acked[entry]))
        return bool(indexes & self.acked[entry]) or bool(pending and indexes & pending)

    def conflicts_through(self, least: int, through: tuple[int, int]) -> bool:
        current = next((ack for ack in reversed(self.acks) if ack.through), None)
        if all(self.is_acked(entry) for entry in range(through[0] + 1)):
            return True
        if current is None or current.through is None:
            return False
        return current.least != least or through <= current.through

    def plain(self, entry: int, indexes: frozenset[int]) -> None:
        self.acked[entry] |= indexes

    def begin_end(self, least: int) -> list[Ack]:
        """Mark the acknowledgements of a transaction as ending, and return them."""
        found = [ack for ack in self.acks if ack.least == least and not ack.ending]
        for ack in found:
            ack.ending = True
        return found

    def end(self, acks: list[Ack], *, commit: bool) -> None:
        for ack in acks:
            self.acks.remove(ack)
            for entry, indexes in ack.messages.items() if commit else ():
                self.acked[entry] |= indexes
            if commit and ack.through is not None:
                last, count = ack.through
                for entry in range(last):
                    self.acked[entry] = set(range(self.sizes[entry]))
                self.acked[last] |= set(range(count))
