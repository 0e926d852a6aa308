"""The same question about several topics at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

from pulsarium.client.bulk import together

K = TypeVar("K")
T = TypeVar("T")

AT_ONCE = 16


async def each(keys: Iterable[K], ask: Callable[[K], Awaitable[T]]) -> dict[K, T]:
    """The answers by key, in the order of the keys; raises the first failure."""
    room = anyio.Semaphore(AT_ONCE)
    answers: dict[K, T] = {}

    async def one(key: K) -> None:
        async with room:
            answers[key] = await ask(key)

    wanted = list(keys)
    await together([lambda key=key: one(key) for key in wanted])  # type: ignore[misc]
    return {key: answers[key] for key in wanted}
