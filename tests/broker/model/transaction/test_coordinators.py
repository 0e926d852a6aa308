"""Storage of transaction coordinators."""

from __future__ import annotations

import pytest

from tests.broker.model.transaction.buffered import Buffered


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
