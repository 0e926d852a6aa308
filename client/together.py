"""Run several calls at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import anyio
import anyio.lowlevel


async def together(calls: Iterable[Callable[[], Awaitable[object]]], *, all_or_none: bool = False) -> None:
    """Run all calls, and raise the first failure without an exception group.

    With `all_or_none`, the first failure cancels the other calls. Otherwise all calls end first.
    """
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
    if len(waiting) == 1:  # saves a task group
        await waiting[0]()
        return
    async with anyio.create_task_group() as tasks:
        for call in waiting:
            tasks.start_soon(one, call)
    if failures:
        raise failures[0]
