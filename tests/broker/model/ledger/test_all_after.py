"""Reads of all entries behind a position at once."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST
from tests.broker.held import HeldStorage
from tests.broker.model.stores import NAME, append, cluster_of, read_all

SMALL = {"managedLedgerMaxEntriesPerLedger": 5, "managedLedgerMinLedgerRolloverTimeMinutes": 0}


@pytest.mark.parametrize("recovered", [False, True], ids=["in-memory", "on-disk"])
async def test_the_entries_behind_each_position(recovered: bool) -> None:
    store = HeldStorage()
    cluster = cluster_of(store, **SMALL)
    ledger = ManagedLedger(NAME, cluster)
    for number in range(13):
        append(ledger, cluster, b"%d" % number)
    if recovered:
        cluster = cluster_of(store, **SMALL)
        ledger = ManagedLedger(NAME, cluster)
        append(ledger, cluster, b"13")
    store.holding = True
    append(ledger, cluster, b"not visible")
    entries = read_all(ledger)
    assert len({position.ledger_id for position, _ in entries}) >= 3
    for number, (position, _) in enumerate(entries):
        assert list(ledger.all_after(position)) == [entry for _, entry in entries[number + 1 :]]
    assert list(ledger.all_after(EARLIEST)) == [entry for _, entry in entries]
