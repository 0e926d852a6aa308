"""A ledger: entries 0, 1, 2, ... in blocks, and the cache of all blocks (managedLedgerCacheSizeMB).

Choose the ledgers to trim, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.ledger.position import LATEST, Position
from pulsarium.broker.storage.interface import DamagedEntriesError, EntryRun, Storage, StorageError

log = PartLog("storage")

BLOCK_BYTES = 1 << 20
BLOCK_ENTRIES = 1024
ENTRY_OVERHEAD = 64  # bytes that Python adds to an entry, about
TRIM_STEP = 4096  # blocks that one trim examines
MOST_FORGOTTEN = 64  # blocks of deleted ledgers that may stay in the list
# With a data directory, the entries are in files that the kernel caches, and the process stays below 120 MB. Without
# one, an entry over the limit must first be written to a temporary file.
MEGABYTES_WITH_DATA = 56
MEGABYTES_IN_MEMORY = 256


def limit_of(megabytes: int | None, storage: Storage) -> int:
    """Return the bytes of managedLedgerCacheSizeMB. Unset, they depend on the store."""
    if megabytes is None:
        megabytes = MEGABYTES_WITH_DATA if storage.keeps_entries else MEGABYTES_IN_MEMORY
    return megabytes << 20


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
        self.spill_listeners: list[Callable[[], object]] = []  # called when a block has left memory
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
                for told in self.spill_listeners:
                    told()

        self._storage.spill(block.ledger.id, EntryRun(block.first, block.entries), spilled)

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


class Ledger:
    """The entries of one ledger, in blocks of the cache."""

    __slots__ = ("_cache", "_firsts", "blocks", "closed", "confirmed", "count", "created_ms", "id", "rolled_ms", "size")

    def __init__(self, ledger_id: int, cache: EntryCache, created_ms: int) -> None:
        self.id = ledger_id
        self.count = 0
        self.confirmed = 0  # committed entries, which are visible
        self.size = 0
        self.created_ms = created_ms
        self.rolled_ms = 0  # when the ledger was closed, stored as LedgerInfo.timestamp
        self.closed = False
        self.blocks: list[Block] = []
        self._firsts: list[int] = []
        self._cache = cache

    def append(self, entry: bytes) -> int:
        """Append an entry, and return its entry id."""
        return self.extend([entry])

    def extend(self, entries: Sequence[bytes]) -> int:
        """Append entries to one block, and return the entry id of the first."""
        block = self.blocks[-1] if self.blocks else None
        if block is None or block.sealed or block.entries is None:
            block = self._new_block()
        assert block.entries is not None
        block.entries += entries
        first, count, size = self.count, len(entries), sum(map(len, entries))
        weight = size + ENTRY_OVERHEAD * count
        block.count += count
        block.size += weight
        self.count += count
        self.size += size
        self._cache.size += weight
        if block.size >= BLOCK_BYTES or block.count >= BLOCK_ENTRIES:
            block.sealed = True
        return first

    def _new_block(self) -> Block:
        block = Block(self, self.count)
        self.blocks.append(block)
        self._firsts.append(block.first)
        self._cache.track(block)
        return block

    def adopt(self, runs: list[tuple[int, int, int]]) -> None:
        """Adopt the stored entries of this ledger after a restart: (first entry, count, bytes) of each run.

        Raise `StorageError` when entries are missing, because the store never keeps entries behind a failed commit.
        """
        for first, count, size in runs:
            if first != self.count:
                raise StorageError(f"ledger {self.id}: entry {self.count} is not stored, but entry {first} is")
            block = self.blocks[-1] if self.blocks else None
            if block is None or block.size + size > BLOCK_BYTES or block.count + count > BLOCK_ENTRIES:
                block = Block(self, first)
                block.sealed = block.stored = True
                block.entries = None
                self.blocks.append(block)
                self._firsts.append(first)
            block.count += count
            block.size += size + count * ENTRY_OVERHEAD
            self.count += count
            self.size += size
        self.confirmed = self.count

    def view(self) -> Ledger:
        """Return a ledger of the same blocks that shows only the entries confirmed so far."""
        view = Ledger(self.id, self._cache, self.created_ms)
        view.blocks, view._firsts = self.blocks, self._firsts
        view.count = view.confirmed = self.confirmed
        view.size, view.closed, view.rolled_ms = self.size, self.closed, self.rolled_ms
        return view

    def drop_unconfirmed(self) -> None:
        """Remove the entries whose commit failed."""
        while self.count > self.confirmed:
            block = self.blocks[-1]
            entries = block.entries or []
            while block.count and self.count > self.confirmed:
                size = len(entries.pop())
                block.count -= 1
                self.count -= 1
                self.size -= size
                block.size -= size + ENTRY_OVERHEAD
                self._cache.size -= size + ENTRY_OVERHEAD
            if not block.count:
                self.blocks.pop()
                self._firsts.pop()

    def block_of(self, entry_id: int) -> Block:
        """Return the block of an entry."""
        return self.blocks[bisect_right(self._firsts, entry_id) - 1]

    def read(self, first: int, limit: int, ready: Callable[[], None]) -> list[bytes] | None:
        """Return up to `limit` visible entries of one block from `first` on, or [] behind the last visible entry.

        Return None while the block is being loaded; `ready()` is called afterwards. Raise the error of a failed load
        once. The next call tries again.
        """
        if first >= self.confirmed:
            return []
        block = self.block_of(first)
        if block.entries is None:
            if block.failure is not None:
                failure, block.failure = block.failure, None
                raise failure
            self._cache.load(block, ready)
            return None
        offset = first - block.first
        return block.entries[offset : offset + min(limit, self.confirmed - first)]

    def cannot_read(self, block: Block, error: Exception) -> None:
        """Note that the store failed to load a block. Split off the readable entries of the block."""
        if not self.blocks:  # the ledger was deleted meanwhile
            return
        if isinstance(error, DamagedEntriesError) and error.last - error.first + 1 < block.count:
            block = self._cut_out(block, error.first, error.last)
        block.failure = error

    def _cut_out(self, block: Block, first: int, last: int) -> Block:
        """Split these entries of an unloaded block into a block of their own, and return that block."""
        end, pieces = block.first + block.count, dict[int, Block]()
        for start, stop in ((block.first, first), (first, last + 1), (last + 1, end)):
            if start < stop:
                piece = pieces[start] = Block(self, start)
                piece.entries, piece.count = None, stop - start
                piece.size = block.size * piece.count // block.count
                piece.sealed = piece.stored = True
        index = self.blocks.index(block)
        self.blocks[index : index + 1] = pieces.values()
        self._firsts[index : index + 1] = pieces
        return pieces[first]

    def fetch(self, entry_id: int, done: Callable[[bytes | Exception], None]) -> None:
        """Fetch one entry. `done` receives the entry, or the error, maybe before this method returns."""
        block = self.block_of(entry_id)
        if block.entries is not None:
            done(block.entries[entry_id - block.first])
        else:
            self._cache.fetch(self.id, entry_id, done)

    def read_now(self, entry_id: int) -> bytes:
        """Return one entry, read from disk when it is not in memory."""
        block = self.block_of(entry_id)
        if block.entries is not None:
            return block.entries[entry_id - block.first]
        return self._cache.read_now(self.id, entry_id)

    def drop(self) -> None:
        """Release all blocks of a deleted ledger."""
        for block in self.blocks:
            self._cache.forget(block)
        self.blocks.clear()
        self._firsts.clear()


MINUTE_MS = 60_000
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Retention:
    """Retention of a topic: limits for entries that all subscriptions have acknowledged.

    -1 is no limit, and both 0 keep nothing. A policy with only one 0 is refused when it is set.
    """

    minutes: int = 0
    megabytes: int = 0


NO_RETENTION = Retention()


def first_needed(ledgers: Mapping[int, Ledger], slowest: Position | None) -> int:
    """Return the id of the first ledger that durable cursors still need.

    `slowest` is the lowest mark-delete position, or None without durable cursors.
    """
    if slowest is None:
        return LATEST.ledger_id
    ledger = ledgers.get(slowest.ledger_id)
    done = ledger is not None and ledger.closed and slowest.entry_id + 1 >= ledger.count
    return slowest.ledger_id + 1 if done else slowest.ledger_id


def consumed(ledgers: Mapping[int, Ledger], slowest: Position | None) -> Iterator[Ledger]:
    """Return the closed ledgers that no durable cursor needs, oldest first. Skip ledgers with uncommitted entries."""
    needed = first_needed(ledgers, slowest)
    return takewhile(
        lambda each: each.closed and each.confirmed == each.count and each.id < needed, iter(ledgers.values())
    )


def not_retained(ledgers: Iterable[Ledger], total_size: int, retention: Retention, now_ms: int) -> list[Ledger]:
    """Return the ledgers to delete, from consumed ledgers in order of age.

    A ledger goes when its close is longer ago than the retention time, or when the remaining ledgers still fill the
    retention size. The first ledger that stays keeps all later ones. `total_size` is the bytes of all ledgers of the
    topic.
    """
    gone: list[Ledger] = []
    left = total_size
    for ledger in ledgers:
        left -= ledger.size
        expired = 0 <= retention.minutes * MINUTE_MS < now_ms - ledger.rolled_ms
        too_much = 0 <= retention.megabytes * MEGABYTE <= left
        if not (expired or too_much):
            break
        gone.append(ledger)
    return gone
