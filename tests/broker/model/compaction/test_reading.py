"""Reading with read_compacted, compared with a list of the entries that compaction kept and of newer ones."""

from __future__ import annotations

from collections.abc import Iterable

import trio
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.compaction.compacted import read_compacted
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from tests.broker.compacted import Retained
from tests.broker.model.stores import NAME, append, cluster_of, read_all

ENTRIES = 24
PLACES = st.integers(0, ENTRIES - 1)
STEPS = st.one_of(
    st.tuples(st.just("read"), st.integers(1, 8)),
    st.tuples(st.just("ack"), PLACES),
    st.tuples(st.just("ack_cumulative"), PLACES),
    st.tuples(st.just("rewind"), st.just(0)),
    st.tuples(st.just("seek"), PLACES),
    st.tuples(st.just("compact"), PLACES),
)


def not_ready() -> None:
    raise AssertionError("everything is in memory")


class Model:
    """A ledger with a cursor and a compaction, beside lists that tell what the cursor should read."""

    def __init__(self, kept: Iterable[int]) -> None:
        cluster = cluster_of(managedLedgerMaxEntriesPerLedger=7, managedLedgerMinLedgerRolloverTimeMinutes=0)
        self.ledger = ManagedLedger(NAME, cluster)
        for number in range(ENTRIES):
            append(self.ledger, cluster, b"%d" % number)
        self.entries = dict(read_all(self.ledger))
        self.positions = list(self.entries)
        self.kept = {self.positions[place] for place in kept}
        self.retained = Retained(Position(-1, -1), {})
        self.retained.horizon = None
        self.cursor = ManagedCursor(self.ledger, "s", cluster, durable=True, start=self.ledger.first_position())
        self.acked: set[Position] = set()
        self.at = 0  # the index of the entry that is read next

    def step(self, name: str, argument: int) -> None:
        getattr(self, name)(argument)
        assert {p for p in self.positions if self.cursor.is_acked(p)} == self.acked

    def read(self, limit: int) -> None:
        found = read_compacted(self.retained, self.cursor, limit, not_ready)
        assert found is not None
        assert len(found) <= limit
        assert all(self.entries[position] == entry for position, entry in found)
        read = [position for position, _ in found]
        wanted = [p for p in self.positions[self.at :] if p not in self.acked and self._is_shown(p)]
        assert read == wanted[: len(read)]
        assert bool(read) == bool(wanted)
        if read:
            self.at = self.positions.index(read[-1]) + 1

    def _is_shown(self, position: Position) -> bool:
        horizon = self.retained.horizon
        return horizon is None or position > horizon or position in self.kept

    def ack(self, place: int) -> None:
        self.cursor.ack(self.positions[place])
        self.acked.add(self.positions[place])

    def ack_cumulative(self, place: int) -> None:
        self.cursor.ack_cumulative(self.positions[place])
        self.acked.update(self.positions[: place + 1])

    def rewind(self, _: int) -> None:
        self.cursor.rewind()
        self.at = 0

    def seek(self, place: int) -> None:
        self.cursor.reset(self.positions[place])
        self.acked = set(self.positions[:place])
        self.at = place

    def compact(self, place: int) -> None:
        """Compact up to this place, unless it was compacted before."""
        horizon = self.positions[place]
        if self.retained.horizon is None or horizon > self.retained.horizon:
            self.retained.horizon = horizon
            self.retained.entries = [(p, self.entries[p]) for p in self.positions[: place + 1] if p in self.kept]


@given(st.sets(PLACES), st.lists(STEPS, max_size=30))
def test_reading_compacted_behaves_as_a_list_whatever_happens(kept: set[int], steps: list[tuple[str, int]]) -> None:
    async def history() -> None:
        model = Model(kept)
        for name, argument in steps:
            model.step(name, argument)
        model.rewind(0)
        for _ in range(ENTRIES + 1):
            model.read(5)
        assert model.cursor.read_position > model.ledger.last_confirmed

    trio.run(history)
