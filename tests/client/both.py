"""Run tests under trio and asyncio, on a clock that jumps where the loop allows one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import anyio
import pytest
from trio.testing import MockClock

AsyncTest: TypeAlias = Callable[..., Coroutine[Any, Any, None]]

SECONDS = 50.0  # of real time; a test that takes longer is stuck
FIRST_FAILURE: dict[str, Any] = {"operation_timeout": 30, "starting_backoff_interval": 60}
"""Options of a client that raises the first failure, however slow the machine is: no time is left for a second try."""


def run_on(backend: str, test: AsyncTest, *arguments: Any, jump: bool = False) -> None:
    """Run a coroutine function under one event loop. With `jump`, trio's clock jumps when no task can run."""

    async def limited() -> None:
        with anyio.fail_after(SECONDS if not jump else 1e6):
            await test(*arguments)

    options = {"clock": MockClock(autojump_threshold=0)} if jump and backend == "trio" else {}
    anyio.run(limited, backend=backend, backend_options=options)


def on_both(test: AsyncTest) -> Callable[..., None]:
    """Split an async test into a plain test for each event loop. Neither pytest-trio nor anyio's plugin runs those."""
    return twice(test, run_on)


def twice(test: AsyncTest, run: Callable[[str, AsyncTest], None]) -> Callable[..., None]:
    """Split an async test into one plain test for each event loop. `run` takes the name of the loop and the test."""

    def plain(backend: str, **arguments: Any) -> None:
        async def call() -> None:
            await test(**arguments)

        run(backend, call)

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
