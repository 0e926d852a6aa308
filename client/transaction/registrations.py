"""What a coordinator was told of a transaction, each once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable

import anyio


class Registrations:
    """Of topics, or of subscriptions."""

    def __init__(self) -> None:
        self._made: set[Hashable] = set()
        self._making: dict[Hashable, anyio.Lock] = {}

    async def once(self, what: Hashable, register: Callable[[], Awaitable[object]]) -> None:
        """Return when it is registered; callers at the same time return in the order of their calls."""
        if what in self._made and what not in self._making:
            return
        lock = self._making.setdefault(what, anyio.Lock())
        try:
            async with lock:
                if what not in self._made:
                    await register()
                    self._made.add(what)
        finally:
            if not lock.locked():  # the last of them
                self._making.pop(what, None)
