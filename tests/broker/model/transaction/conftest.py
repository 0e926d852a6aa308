"""A coordinator for tests of transactions."""

from __future__ import annotations

import pytest
import trio

from tests.broker.model.transaction.parts import Bench


@pytest.fixture
async def bench(nursery: trio.Nursery) -> Bench:
    made = Bench()
    nursery.start_soon(made.cluster.clock.run)
    return made
