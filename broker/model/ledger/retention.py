"""Which ledgers are consumed, and which of those retention lets go (B-25)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.ledger.position import LATEST, Position

MINUTE_MS = 60_000
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what was acknowledged by all stays; -1: for ever. Both 0: not at all; either one at 0 and the other not
    is refused where policies are set."""

    minutes: int = 0
    megabytes: int = 0


NO_RETENTION = Retention()


def first_needed(ledgers: Mapping[int, Ledger], slowest: Position | None) -> int:
    """The first ledger that a durable cursor still needs, by the position of the slowest; None: there is no cursor."""
    if slowest is None:
        return LATEST.ledger_id
    ledger = ledgers.get(slowest.ledger_id)
    done = ledger is not None and ledger.closed and slowest.entry_id + 1 >= ledger.count
    return slowest.ledger_id + 1 if done else slowest.ledger_id


def consumed(ledgers: Mapping[int, Ledger], slowest: Position | None) -> Iterator[Ledger]:
    """The closed ledgers before that one, oldest first. What waits for its commit is not consumed."""
    needed = first_needed(ledgers, slowest)
    return takewhile(
        lambda each: each.closed and each.confirmed == each.count and each.id < needed, iter(ledgers.values())
    )


def not_retained(ledgers: Iterable[Ledger], total_size: int, retention: Retention, now_ms: int) -> list[Ledger]:
    """Of consumed ledgers, oldest first, those that may go.

    A ledger goes when it was closed longer ago than the time, or when what is left without it still fills the size;
    the first one that stays keeps those behind it. `total_size`: bytes of all ledgers of the topic.
    """
    gone: list[Ledger] = []
    left = total_size
    for ledger in ledgers:
        left -= ledger.size
        expired = 0 <= retention.minutes * MINUTE_MS < now_ms - ledger.rolled_ms
        too_much = 0 <= retention.megabytes * MEGABYTE <= left
        if not (expired or too_much):
            break
        gone.append(ledger)
    return gone
