"""Negative acknowledgements: entries to be asked for again after a delay."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup


class NegativeAcks:
    """Collects entries and hands over those whose delay is over; a task runs only while there are any."""

    def __init__(self, tasks: TaskGroup, delay: float, redeliver: Callable[[set[tuple[int, int]]], None]) -> None:
        """`delay` in seconds; `redeliver` must not wait."""
        self._tasks = tasks
        self._delay = delay
        self._redeliver = redeliver
        self._due: dict[tuple[int, int], float] = {}
        self._scope: anyio.CancelScope | None = None

    def add(self, entry: tuple[int, int]) -> None:
        """Ask for this entry after the delay; again means from now on."""
        self._due.pop(entry, None)
        self._due[entry] = anyio.current_time() + self._delay  # the last one is due last
        if self._scope is None:
            self._scope = anyio.CancelScope()
            self._tasks.start_soon(self._run, self._scope)

    def forget(self, entry: tuple[int, int]) -> None:
        """It was acknowledged after all."""
        self._due.pop(entry, None)

    def clear(self) -> None:
        """Everything comes again anyway."""
        self._due.clear()

    def close(self) -> None:
        """Ask for nothing more."""
        self._due.clear()
        if self._scope is not None:
            self._scope.cancel()

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                while self._due:
                    await anyio.sleep_until(next(iter(self._due.values())))
                    now = anyio.current_time()
                    due = {entry for entry, when in self._due.items() if when <= now}
                    for entry in due:
                        del self._due[entry]
                    if due:
                        self._redeliver(due)
        finally:
            self._scope = None
