"""Storage of transaction coordinators."""

from __future__ import annotations

import pytest

from tests.broker.model.transaction.buffered import Buffered


@pytest.mark.usefixtures("autojump_clock")
async def test_sweeps_over_scalable_topics_give_way_after_each_transaction() -> None:
    broker = Buffered(transactionCoordinatorScalableTopicsGcRetentionSeconds=0)
    assert broker.cluster.scalable_coordinators is not None
    coordinator = broker.cluster.scalable_coordinators.coordinator(0)
    for _ in range(4):
        coordinator.begin(0, None, lambda error: None)
    for number, _ in enumerate(coordinator.sweep(), 1):
        assert coordinator.active == 4 - number
    assert coordinator.active == 0
    for number, _ in enumerate(coordinator.forget_old(), 1):
        assert [coordinator.belongs_to(least, "") for least in range(4)] == [least >= number for least in range(4)]
    assert number == 4
    broker.finish()


@pytest.mark.usefixtures("autojump_clock")
async def test_numbers_go_on_after_another_state_and_a_restart() -> None:
    """A client may still use a transaction number from before."""
    broker = Buffered()
    assert broker.cluster.coordinators is not None
    begun = broker.cluster.coordinators._make(0).begin(60_000, None, lambda error: None)
    broker.finish()
    broker.cluster.replace({}, [])
    broker.finish()
    broker.kill()
    assert broker.cluster.coordinators is not None
    assert broker.cluster.coordinators._make(1).last == -1
    assert broker.cluster.coordinators._coordinators[0].last == begun.least
    assert not broker.cluster.coordinators._coordinators[0].active
