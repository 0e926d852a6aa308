"""Tests under trio and asyncio on clocks that jump: time passes when nothing else happens, and costs nothing."""

from __future__ import annotations

import asyncio
import inspect
import selectors
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from tests.client.both import AsyncTest

SECONDS = 3600.0  # of the test's clock, after which it is stuck


class _Jumping(selectors.SelectSelector):
    """Waits for nothing: everything is in memory, so only time can wake the loop."""

    jumped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.jumped += max(0.0, timeout or 0.0)
        return super().select(0)


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return super().time() + self._jumping.jumped


def on_both(test: AsyncTest) -> Callable[..., None]:
    """Makes an async test two plain ones, as `both.on_both` does."""

    def plain(backend: str, **arguments: Any) -> None:
        async def call() -> None:
            with anyio.fail_after(SECONDS):
                await test(**arguments)

        clock = {"clock": MockClock(autojump_threshold=0)} if backend == "trio" else {"loop_factory": _JumpingLoop}
        anyio.run(call, backend=backend, backend_options=clock)

    signature = inspect.signature(test)
    backend = inspect.Parameter("backend", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    plain.__signature__ = signature.replace(parameters=[backend, *signature.parameters.values()])  # type: ignore[attr-defined]
    plain.__name__ = test.__name__
    plain.__doc__ = test.__doc__
    plain.__module__ = test.__module__
    marked: Callable[..., None] = pytest.mark.parametrize("backend", ["trio", "asyncio"])(plain)
    for mark in getattr(test, "pytestmark", []):
        marked = pytest.MarkDecorator(mark, _ispytest=True)(marked)
    return marked
