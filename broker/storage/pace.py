"""Decide which thread writes a small commit, by how fast the device has answered."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from types import ModuleType

from pulsarium.broker.storage.interface import Batch, Durability

resource: ModuleType | None = None
if sys.platform == "linux":
    with suppress(ImportError):
        import resource

FAST_SECONDS = 200e-6  # of one write
FAST_BYTES = 128 << 10  # of one commit; a larger one takes longer, and says nothing about the device
FAST_CHANGES = 32  # of ledgers and paths in one commit
FAST_WRITES = 100  # since the last slow one, until the event loop writes again


def waits() -> int | None:
    """Return how often the calling thread has waited, or None if the system does not count the waits of a thread.

    A thread that only lost its core has not waited.
    """
    return None if resource is None else int(resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw)


class Pace:
    """The times of the last writes. A sync takes longer, so a store that syncs is never fast.

    A write is slow when it took long and its thread waited. On a busy machine many writes take long, but not because
    of the device, and another thread would wait for a core as well.
    """

    def __init__(self, durability: Durability) -> None:
        self._syncs = durability == "fsync"
        self._fast_writes = FAST_WRITES
        self._begun = 0.0
        self._waits: int | None = None

    def begin(self) -> None:
        """Begin to time a write."""
        self._waits = waits()
        self._begun = time.perf_counter()

    def end(self, size: int) -> None:
        """Count the write. One slow write gives all writes back to the thread."""
        if time.perf_counter() - self._begun <= FAST_SECONDS:
            self._fast_writes += 1
        elif size <= FAST_BYTES and (self._waits is None or waits() != self._waits):
            self._fast_writes = 0

    def allows(self, batch: Batch) -> bool:
        """Return whether the event loop may write a batch."""
        if self._syncs or self._fast_writes < FAST_WRITES or len(batch.entries) + len(batch.metadata) > FAST_CHANGES:
            return False
        return batch.size <= FAST_BYTES
