"""Fixture with messages that tests of several commands need."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.ledger.position import Position
from tests.broker.wire import Wire, batch_of, plain


@pytest.fixture
async def five(wire: Wire) -> list[Position]:
    """Publish four messages and a batch of three, and return their positions."""
    await wire.producer(producer_id=50)
    return await wire.publish(*[plain(b"%d" % i) for i in range(4)], batch_of(b"x", b"y", b"z"), producer_id=50)
