"""Entries that wait for their redelivery, each with its own delay."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import anyio
from anyio.abc import TaskGroup

Entry = tuple[int, int]


class Delayed:
    """Pass on entries when their delay is over. A task runs only while entries wait, or at most one delay longer."""

    def __init__(self, tasks: TaskGroup, hand_over: Callable[[set[Entry]], None]) -> None:
        """Pass entries to `hand_over`, which must not wait."""
        self._tasks = tasks
        self._hand_over = hand_over
        # one queue for each delay, in which entries are due in the order of their arrival, so that nothing is sorted
        self._queues: dict[float, dict[Entry, float]] = {}
        self._delays: dict[Entry, float] = {}
        self._scope: anyio.CancelScope | None = None
        self._closed = False
        self._sleep = anyio.CancelScope()

    def __len__(self) -> int:
        return len(self._delays)

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._delays

    def add(self, entry: Entry, delay: float) -> None:
        """Pass on an entry after `delay` seconds. A second call begins the delay again. After `close`, do nothing."""
        if self._closed:
            return
        self.forget(entry)
        due = anyio.current_time() + delay
        self._delays[entry] = delay
        self._queues.setdefault(delay, {})[entry] = due
        if self._scope is None:
            self._scope = anyio.CancelScope()
            self._tasks.start_soon(self._run, self._scope)
        elif due < self._sleep.deadline:
            self._sleep.deadline = due

    def forget(self, entry: Entry) -> None:
        """Remove an entry."""
        delay = self._delays.pop(entry, None)
        if delay is not None:
            queue = self._queues[delay]
            del queue[entry]
            if not queue:
                del self._queues[delay]

    def forget_all(self, entries: Iterable[Entry]) -> None:
        """Remove these entries."""
        for entry in entries:
            self.forget(entry)

    def forget_before(self, end: Entry) -> None:
        """Remove all entries before this one."""
        self.forget_all([entry for entry in self._delays if entry < end])

    def clear(self) -> None:
        """Remove all entries."""
        self._queues.clear()
        self._delays.clear()

    def close(self) -> None:
        """Remove all entries, and stop the task."""
        self._closed = True
        self.clear()
        if self._scope is not None:
            self._scope.cancel()

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                while self._queues:
                    with anyio.CancelScope(deadline=self._first()) as self._sleep:
                        await anyio.sleep_forever()
                    if due := self._due():
                        self._hand_over(due)
        finally:
            self._scope = None

    def _first(self) -> float:
        """Return the time at which the next entry is due."""
        return min((next(iter(queue.values())) for queue in self._queues.values()), default=math.inf)

    def _due(self) -> set[Entry]:
        now = anyio.current_time()
        due = set()
        for queue in list(self._queues.values()):
            for entry, when in list(queue.items()):
                if when > now:
                    break
                due.add(entry)
        self.forget_all(due)
        return due
