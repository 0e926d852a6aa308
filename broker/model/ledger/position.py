"""Where an entry stands."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """An entry's place: entry -1 is the place before a ledger's first entry."""

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"


EARLIEST = Position(-1, -1)
LATEST = Position(2**63 - 1, 2**63 - 1)


def signed(value: int) -> int:
    """A ledger or entry id from the wire: uint64 there, a signed long in Pulsar."""
    return value - 2**64 if value >= 2**63 else value


def unsigned(value: int) -> int:
    """A ledger or entry id for the wire."""
    return value + 2**64 if value < 0 else value
