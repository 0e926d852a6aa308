"""Decide which thread writes a small commit, by how fast the device has answered."""

from __future__ import annotations

from pulsarium.broker.storage.interface import Batch, Durability

FAST_SECONDS = 200e-6  # of one write
FAST_BYTES = 64 << 10  # of one commit; a larger one takes longer, and says nothing about the device
FAST_CHANGES = 32  # of ledgers and paths in one commit
FAST_WRITES = 100  # in a row, until the event loop writes again


class Pace:
    """The times of the last writes. A sync takes longer, so a store that syncs is never fast."""

    def __init__(self, durability: Durability) -> None:
        self._syncs = durability == "fsync"
        self._fast_writes = FAST_WRITES

    def took(self, seconds: float, size: int) -> None:
        """Count a write. One slow write gives all writes back to the thread."""
        if seconds > FAST_SECONDS:
            self._fast_writes = 0 if size <= FAST_BYTES else self._fast_writes
        else:
            self._fast_writes += 1

    def allows(self, batch: Batch) -> bool:
        """Return whether the event loop may write a batch."""
        if self._syncs or self._fast_writes < FAST_WRITES or len(batch.entries) + len(batch.metadata) > FAST_CHANGES:
            return False
        return batch.size <= FAST_BYTES
