"""Entries that wait, each for a time of its own: what was refused, and what is not acknowledged yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import anyio
from anyio.abc import TaskGroup

Entry = tuple[int, int]


class Delayed:
    """Hands over entries when their delay is over; a task runs only while there are any, at most one delay longer."""

    def __init__(self, tasks: TaskGroup, hand_over: Callable[[set[Entry]], None]) -> None:
        """`hand_over` must not wait."""
        self._tasks = tasks
        self._hand_over = hand_over
        # entries of the same delay become due in the order they came, so that nothing needs to be sorted
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
        """Hand it over after so many seconds; again means from now on. Nothing any more after `close`."""
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
        """It waits no longer."""
        delay = self._delays.pop(entry, None)
        if delay is not None:
            queue = self._queues[delay]
            del queue[entry]
            if not queue:
                del self._queues[delay]

    def forget_all(self, entries: Iterable[Entry]) -> None:
        """None of these waits any longer."""
        for entry in entries:
            self.forget(entry)

    def forget_before(self, end: Entry) -> None:
        """Nothing waits any longer that stands in front of this entry."""
        self.forget_all([entry for entry in self._delays if entry < end])

    def clear(self) -> None:
        """Nothing waits any longer."""
        self._queues.clear()
        self._delays.clear()

    def close(self) -> None:
        """`clear`, and end the task."""
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
        """When the next one is due."""
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
