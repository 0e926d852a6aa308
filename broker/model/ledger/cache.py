"""Limit the memory that the entries of all ledgers take (managedLedgerCacheSizeMB)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsarium.broker.logs import Log
from pulsarium.broker.storage.interface import Run, Storage

if TYPE_CHECKING:
    from pulsarium.broker.model.ledger.ledger import Ledger

log = Log("storage")

BLOCK_BYTES = 1 << 20
BLOCK_ENTRIES = 1024
ENTRY_OVERHEAD = 64  # bytes that Python adds to an entry, about
TRIM_STEP = 4096  # blocks that one trim examines
MOST_FORGOTTEN = 64  # blocks of deleted ledgers that may stay in the list


class Block:
    """A run of entries of one ledger. Blocks leave memory and come back as a whole."""

    __slots__ = ("count", "entries", "failure", "first", "ledger", "moving", "sealed", "size", "stored", "waiting")

    def __init__(self, ledger: Ledger, first: int) -> None:
        self.ledger = ledger
        self.first = first
        self.entries: list[bytes] | None = []
        self.count = 0
        self.size = 0
        self.sealed = False  # takes no more entries
        self.stored = False  # a temporary store has all entries; a committing store is asked through the ledger
        self.moving = False
        self.failure: Exception | None = None  # the error of the last load, until a reader has seen the error
        self.waiting: list[Callable[[], None]] = []


class EntryCache:
    """Keep the newest blocks of all ledgers in memory, within `limit` bytes.

    The oldest blocks leave first. A store that keeps entries (a data directory) has them already. Any other block is
    spilled to a temporary store.
    """

    def __init__(self, storage: Storage, limit: int) -> None:
        self.size = 0
        self.limit = limit
        self.loads = 0
        self.loading = 0  # loads that the store has not answered
        self.when_spilled: Callable[[], object] = lambda: None
        self._storage = storage
        self._resident: deque[Block] = deque()
        self._forgotten = 0  # blocks of deleted ledgers in the list, about

    def track(self, block: Block) -> None:
        """Add a block that came into memory."""
        self._resident.append(block)

    def forget(self, block: Block) -> None:
        """Release a block of a deleted ledger."""
        if block.entries is None:
            return
        self._drop(block)
        self._forgotten += 1
        if self._forgotten > max(MOST_FORGOTTEN, len(self._resident) // 2):  # a cache with room is never trimmed
            self._resident = deque(each for each in self._resident if each.entries is not None)
            self._forgotten = 0

    def trim(self) -> None:
        """Drop the oldest blocks until the cache is within its limit. A call within the limit costs nearly nothing."""
        excess = self.size - self.limit
        if excess <= 0:
            return
        kept: list[Block] = []
        while excess > 0 and self._resident and len(kept) < TRIM_STEP:
            block = self._resident.popleft()
            if block.entries is None:
                continue
            block.sealed = True
            excess -= block.size
            if self._has(block):
                self._drop(block)
                continue
            kept.append(block)
            if not block.moving and not self._storage.keeps_entries:
                self._spill(block)
        self._resident.extendleft(reversed(kept))

    def _has(self, block: Block) -> bool:
        """Return whether a store has all entries of a block."""
        if self._storage.keeps_entries:
            return block.first + block.count <= block.ledger.confirmed
        return block.stored

    def _drop(self, block: Block) -> None:
        if block.entries is not None:
            block.entries = None
            self.size -= block.size

    def _spill(self, block: Block) -> None:
        assert block.entries is not None
        block.moving = True

        def spilled(error: Exception | None) -> None:
            block.moving = False
            if error is None:
                block.stored = True
                self._drop(block)
                self.when_spilled()

        self._storage.spill(block.ledger.id, Run(block.first, block.entries), spilled)

    def fetch(self, ledger_id: int, entry_id: int, done: Callable[[bytes | Exception], None]) -> None:
        """Fetch one entry from the store. `done` receives the entry, or the error. The block stays out of memory."""

        def fetched(result: list[bytes] | Exception) -> None:
            done(result if isinstance(result, Exception) else result[0])

        self._storage.read(ledger_id, entry_id, entry_id, fetched)

    def read_now(self, ledger_id: int, entry_id: int) -> bytes:
        """Return one entry from the store, read at once. The block stays out of memory."""
        return self._storage.read_now(ledger_id, entry_id, entry_id)[0]

    def load(self, block: Block, ready: Callable[[], None]) -> None:
        """Load a block into memory.

        `ready()` is called on the event loop when the block is loaded, or has failed to load.
        """
        block.waiting.append(ready)
        if len(block.waiting) > 1:
            return
        self.loads += 1
        self.loading += 1

        def loaded(result: list[bytes] | Exception) -> None:
            self.loading -= 1
            waiting, block.waiting = block.waiting, []
            if isinstance(result, Exception):
                block.ledger.cannot_read(block, result)
            elif block.entries is None:
                block.entries = result
                block.size = sum(map(len, result)) + ENTRY_OVERHEAD * len(
                    result
                )  # the size of a cut-out piece was an estimate
                self.size += block.size
                self.track(block)
            for callback in waiting:
                try:
                    callback()
                except Exception as error:  # the other readers still wait
                    log.error("a reader of entries failed: the other readers go on", exception=error)

        self._storage.read(block.ledger.id, block.first, block.first + block.count - 1, loaded)
