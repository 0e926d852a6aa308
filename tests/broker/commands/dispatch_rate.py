"""Helpers for the tests of dispatch rate."""

from __future__ import annotations

import trio

from tests.broker.wire import Wire


async def times(wire: Wire, count: int) -> list[float]:
    """In which second from now each of the next messages came."""
    began, found = trio.current_time(), []
    for _ in range(count):
        await wire.message(30)
        found.append(round(trio.current_time() - began, 2))
    return found
