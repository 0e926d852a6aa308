"""Decide which thread writes a small commit, by how fast the device has answered."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from threading import get_ident
from types import ModuleType

from pulsarium.broker.config.options import Durability
from pulsarium.broker.storage.interface import Batch

resource: ModuleType | None = None
if sys.platform == "linux":
    with suppress(ImportError):
        import resource

FAST_SECONDS = 200e-6  # of one write
FAST_BYTES = 128 << 10  # of one commit; a larger one takes longer, and says nothing about the device
FAST_CHANGES = 32  # of ledgers and paths in one commit
FAST_WRITES = 100  # since the last slow one, until the event loop writes again
LONGEST_CONTEST = 0.05  # seconds; a longer write is slow, whatever other threads do
MOST_CONTESTS = 20  # long writes beside other threads in a row; after more of them, the device is slow as well


def waits() -> int | None:
    """Return how often the calling thread has waited, or None if the system does not count the waits of a thread.

    A thread that only lost its core has not waited.
    """
    return None if resource is None else int(resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw)


class OtherThreads:
    """The threads of the stores in this process that do work, for which they need the interpreter's lock.

    A write gives the lock away. Afterwards its thread waits for a thread that has taken the lock meanwhile, and this
    wait looks like one for the device.
    """

    def __init__(self) -> None:
        self._working: set[int] = set()
        self._ended = 0.0

    def begin(self) -> None:
        """Note that the calling thread begins to work."""
        self._working.add(get_ident())

    def end(self) -> None:
        """Note that the calling thread has ended its work."""
        self._working.discard(get_ident())
        self._ended = time.perf_counter()

    def worked_since(self, moment: float) -> bool:
        """Return whether a thread, other than the calling one, has worked since a moment."""
        return self._ended >= moment or bool(self._working - {get_ident()})


other_threads = OtherThreads()


class Pace:
    """The times of the last writes. A sync takes longer, so a store that syncs is never fast.

    A write is slow when it took long and its thread waited, but not for another thread of a store. On a busy machine
    many writes take long, but not because of the device, and another thread would wait for a core as well. Of writes
    that wait for threads, some are fast, unless the device is slow.
    """

    def __init__(self, durability: Durability) -> None:
        self._syncs = durability == "fsync"
        self._fast_writes = FAST_WRITES
        self._contests = 0  # since the last fast write
        self._begun = 0.0
        self._waits: int | None = None

    def begin(self) -> None:
        """Begin to time a write."""
        self._waits = waits()
        self._begun = time.perf_counter()

    def end(self, size: int) -> None:
        """Count the write. One slow write gives all writes back to the thread."""
        taken = time.perf_counter() - self._begun
        if taken <= FAST_SECONDS:
            self._fast_writes += 1
            self._contests = 0
        elif size <= FAST_BYTES and self._waited_for_device(taken):
            self._fast_writes = 0

    def _waited_for_device(self, taken: float) -> bool:
        if self._waits is not None and waits() == self._waits:
            return False
        if taken > LONGEST_CONTEST or not other_threads.worked_since(self._begun):
            return True
        self._contests += 1
        return self._contests > MOST_CONTESTS

    def allows(self, batch: Batch) -> bool:
        """Return whether the event loop may write a batch."""
        if self._syncs or self._fast_writes < FAST_WRITES or len(batch.entries) + len(batch.metadata) > FAST_CHANGES:
            return False
        return batch.size <= FAST_BYTES
