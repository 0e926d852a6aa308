"""Divide long work into slices, so that other work runs between them, or give it to a thread.

The event loop works in rounds: it asks all sockets, then runs each task that is ready. No step of a round may be long,
whatever a client sends, so work that may be long ends after a slice and leaves the rest for a later round.

`FairQueue` divides the rounds among connections. A connection whose frames take more than a slice waits in the queue
with the rest of them. While connections wait, and once a round has lasted a slice, the frames of others wait there too.
Each round serves the queue for one slice, first the connection that used the loop least lately. So a client that asks
for little waits for one slice at most, however many others ask for much, and those share what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from time import perf_counter, thread_time
from typing import TypeVar

import trio
from trio.lowlevel import RunVar, checkpoint

from pulsarium.proto.compression import AT_ONCE

T = TypeVar("T")

SLICE = 0.005  # seconds of processor time
THREADS = 2  # of `aside`, because each may hold the 128 MiB of an entry
HALF_LIFE = 0.1  # seconds after which half of a use is forgotten

_threads = RunVar[trio.CapacityLimiter]("threads of aside")  # one for each event loop


class Slice:
    """A slice of work. Time that other processes of the machine take does not count."""

    __slots__ = ("_processor_until", "_until", "began")

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.began = perf_counter()
        self._until = self.began + SLICE
        self._processor_until = thread_time() + SLICE

    @property
    def is_over(self) -> bool:
        """Return whether the slice's time is used up. The processor's time, which costs more to read, comes second."""
        return perf_counter() >= self._until and thread_time() >= self._processor_until

    async def pause(self) -> None:
        """Let other work run when the slice is over, between two steps of async code. State may have changed then."""
        if self.is_over:
            await checkpoint()
            self._begin()


def work_for_a_slice(steps: Iterator[None]) -> bool:
    """Go through steps until a slice's time is used up; return whether steps may be left."""
    slice_ = Slice()
    return any(slice_.is_over for _ in steps)


async def aside(work: Callable[[], T], size: int, at_once: int = AT_ONCE) -> T:
    """Return the result of `work`. A thread does it for more than `at_once` bytes: state may change meanwhile."""
    return work() if size <= at_once else await in_a_thread(work)


async def in_a_thread(work: Callable[[], T]) -> T:
    """Return the result of `work`, which a thread does. State may change meanwhile."""
    try:
        threads = _threads.get()
    except LookupError:
        threads = trio.CapacityLimiter(THREADS)
        _threads.set(threads)
    return await trio.to_thread.run_sync(work, limiter=threads, abandon_on_cancel=True)


class Use:
    """The time that a connection used the event loop lately, in seconds. It halves every `HALF_LIFE` seconds."""

    __slots__ = ("_since", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0  # add to it at will
        self._since = perf_counter()

    def lately(self) -> float:
        """Return the use of the last moments."""
        now = perf_counter()
        self.seconds *= 0.5 ** ((now - self._since) / HALF_LIFE)
        self._since = now
        return self.seconds


class SliceQueue:
    """Work for later rounds, each of which serves the queue for one slice: the least rank first, and then in order."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []  # a heap: rank, order of arrival, work
        self._order = count()
        self._serves = False  # `_serve` will be called
        self._token = trio.lowlevel.current_trio_token()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, work: Callable[[], None], rank: float = 0.0) -> None:
        """Run `work`, which raises nothing, in a later round."""
        heappush(self._waiting, (rank, next(self._order), work))
        self._serve_soon()

    def _serve_soon(self) -> None:
        if not self._serves:
            self._serves = True
            with suppress(trio.RunFinishedError):  # the broker has ended, and with it all of its work
                self._token.run_sync_soon(self._serve)

    def _serve(self) -> None:
        """Serve the queue for one slice, and at least once."""
        slice_ = Slice()
        while self._waiting:
            heappop(self._waiting)[2]()
            if slice_.is_over:
                break
        self._serves = False
        if self._waiting:
            self._serve_soon()


class FairQueue(SliceQueue, trio.abc.Instrument):
    """The connections that wait for their next slice. As an instrument of trio, the queue sees each round begin."""

    def __init__(self) -> None:
        super().__init__()
        self._round_until = math.inf  # end of the slice that the current round has

    def after_io_wait(self, timeout: float) -> None:
        self._round_until = perf_counter() + SLICE

    @property
    def is_crowded(self) -> bool:
        """Return whether new work waits: others wait, or the round has lasted a slice."""
        return bool(self._waiting) or perf_counter() > self._round_until

    def wait(self, use: Use, work: Callable[[], None]) -> None:
        """Run `work` in a later round, when its connection is the one that used the loop least."""
        self.add(work, use.lately())


class Admission:
    """A queue for events that come in masses, such as new connections: they enter one by one, with other work between.

    A single event does not wait.
    """

    def __init__(self) -> None:
        self._queue = trio.Lock()
        self._slice = Slice()

    async def enter(self) -> None:
        """Wait until the caller may enter."""
        if self._queue.locked() or self._slice.is_over:
            async with self._queue:
                await self._slice.pause()
