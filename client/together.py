"""Several calls at once, and the turns that tasks give each other."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import anyio
import anyio.lowlevel

Checkpoint: TypeAlias = Callable[[], Awaitable[None]]


def checkpoint_here() -> Checkpoint:
    """Return the checkpoint of the library that runs this task: in each call anyio looks for it."""
    if "trio" in sys.modules:
        import trio.lowlevel

        if trio.lowlevel.in_trio_task():
            return trio.lowlevel.checkpoint
    return anyio.lowlevel.checkpoint


async def together(calls: Iterable[Callable[[], Awaitable[object]]], *, all_or_none: bool = False) -> None:
    """Return when all are done, and raise the first failure as it is; `all_or_none`: at once, and cancel the others."""
    failures: list[Exception] = []

    async def one(call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except Exception as error:
            failures.append(error)
            if all_or_none:
                tasks.cancel_scope.cancel()

    waiting = list(calls)
    if not waiting:
        await anyio.lowlevel.checkpoint()
        return
    if len(waiting) == 1:  # for which a task group would be much ado
        await waiting[0]()
        return
    async with anyio.create_task_group() as tasks:
        for call in waiting:
            tasks.start_soon(one, call)
    if failures:
        raise failures[0]
