"""Helpers for the tests of dispatch rates."""

from __future__ import annotations

import trio

from tests.broker.wire import Wire


async def times(wire: Wire, count: int) -> list[float]:
    """Return the times at which the next messages arrive, in seconds from now."""
    began, found = trio.current_time(), []
    for _ in range(count):
        await wire.message(30)
        found.append(round(trio.current_time() - began, 2))
    return found
