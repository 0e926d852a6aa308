"""Several calls at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import anyio
import anyio.lowlevel


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
