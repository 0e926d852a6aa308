"""The nth entry of a backlog."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.skip import nth_position
from tests.broker.conftest import run_without_waiting
from tests.broker.model.stores import NAME, append, cluster_of, read_all


@given(st.integers(0, 12), st.sets(st.integers(0, 11)), st.integers(-2, 14), st.booleans())
def test_the_nth_position_is_that_of_a_list(entries: int, acked: set[int], count: int, with_acked: bool) -> None:
    async def check() -> None:
        cursor, all_of_them = over_three_ledgers(entries)
        for number in acked:
            if number < entries:
                cursor.ack(all_of_them[number])
        behind = [each for each in all_of_them if each > cursor.mark_delete]
        left = behind if with_acked else [each for each in behind if not cursor.is_acked(each)]
        expected = left[min(count, len(left)) - 1] if left and count > 0 else None
        assert nth_position(cursor, count, with_acked=with_acked) == expected

    run: Any = run_without_waiting
    run(check)


def over_three_ledgers(entries: int) -> tuple[ManagedCursor, list[Position]]:
    cluster = cluster_of(managedLedgerMaxEntriesPerLedger=4, managedLedgerMinLedgerRolloverTimeMinutes=0)
    ledger = ManagedLedger(NAME, cluster)
    cursor = ManagedCursor(ledger, "c", cluster, durable=True, start=ledger.first_position())
    for number in range(entries):
        append(ledger, cluster, b"%d" % number)
    return cursor, [position for position, _ in read_all(ledger)]


async def test_an_empty_backlog_has_no_nth_position() -> None:
    cursor, _ = over_three_ledgers(0)
    assert nth_position(cursor, 1) is None
