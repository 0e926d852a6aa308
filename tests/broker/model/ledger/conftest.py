"""A managed ledger on a store whose commits the test can hold back."""

from __future__ import annotations

import pytest

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from tests.broker.held import HeldStorage
from tests.broker.model.stores import NAME, Heard, cluster_of


@pytest.fixture
async def cluster(store: HeldStorage) -> Cluster:
    return cluster_of(store, managedLedgerMaxEntriesPerLedger=3, managedLedgerMinLedgerRolloverTimeMinutes=0)


@pytest.fixture
async def ledger(cluster: Cluster) -> ManagedLedger:
    return ManagedLedger(NAME, cluster, listener=Heard())
