"""Run tests under trio and asyncio on clocks that jump: time passes when no task can run, and at no other time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable

import anyio
from trio.testing import MockClock

from tests.client.both import AsyncTest, twice

SECONDS = 3600.0  # on the test's clock; a test that takes longer is stuck


class _Jumping(selectors.SelectSelector):
    """A selector that never waits. Everything is in memory, so only time can wake the loop."""

    jumped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.jumped += max(0.0, timeout or 0.0)
        return super().select(0)


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.jumped


def on_both(test: AsyncTest) -> Callable[..., None]:
    """Split an async test into one plain test for each event loop, as `both.on_both` does."""
    return twice(test, _run)


def _run(backend: str, test: AsyncTest) -> None:
    async def limited() -> None:
        with anyio.fail_after(SECONDS):
            await test()

    clock = {"clock": MockClock(autojump_threshold=0)} if backend == "trio" else {"loop_factory": _JumpingLoop}
    anyio.run(limited, backend=backend, backend_options=clock)
