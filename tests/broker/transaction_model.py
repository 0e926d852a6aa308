"""A model of transactions: the messages of topics and subscriptions that clients must see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pulsarium.broker.model.ledger.position import Position

Txn = int
"""The least significant bits of a transaction id. All transactions belong to coordinator 0."""
Place = tuple[str, str]
"""A topic and a subscription."""


class State(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Entry(NamedTuple):
    """A published message, and its transaction."""

    position: Position
    payload: bytes
    txn: Txn | None


class Seen(NamedTuple):
    """Messages that clients can see: of each topic those that a reader gets, of each place the backlog, sorted."""

    read: dict[str, list[bytes]]
    left: dict[Place, list[bytes]]


@dataclass
class Model:
    """The state of topics, subscriptions and transactions that follows from the broker's answers."""

    topics: dict[str, list[Entry]]
    acked: dict[Place, set[Position]]
    pending: dict[Place, dict[Position, Txn]]
    states: dict[Txn, State] = field(default_factory=dict)

    @property
    def open(self) -> list[Txn]:
        return [txn for txn, state in self.states.items() if state is State.OPEN]

    def visible(self, topic: str) -> Iterator[Entry]:
        """Yield the entries before the first one of an open transaction, without those of aborted transactions."""
        for entry in self.topics[topic]:
            state = State.COMMITTED if entry.txn is None else self.states[entry.txn]
            if state is State.OPEN:
                return
            if state is State.COMMITTED:
                yield entry

    def conflicts(self, place: Place, position: Position) -> bool:
        """Return whether a transaction that acknowledges the position is refused with a conflict (cmd 10)."""
        return position in self.acked[place] or position in self.pending[place]

    def ended(self, txn: Txn, state: State) -> None:
        self.states[txn] = state
        for place, pending in self.pending.items():
            of_it = {position for position, owner in pending.items() if owner == txn}
            for position in of_it:
                del pending[position]
            if state is State.COMMITTED:
                self.acked[place] |= of_it

    def seen(self) -> Seen:
        read = {topic: [entry.payload for entry in self.visible(topic)] for topic in self.topics}
        left = {
            place: sorted(
                entry.payload for entry in self.visible(place[0]) if not self.conflicts(place, entry.position)
            )
            for place in self.acked
        }
        return Seen(read, left)
