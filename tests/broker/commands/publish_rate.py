"""Helpers for the tests of publish rates."""

from __future__ import annotations

import trio

from tests.broker.wire import Type, Wire


async def times(wire: Wire, count: int) -> list[float]:
    """Return the times at which the next receipts arrive, in seconds from now."""
    began, found = trio.current_time(), []
    for _ in range(count):
        await wire.expect(Type.SEND_RECEIPT)
        found.append(round(trio.current_time() - began, 2))
    return found
