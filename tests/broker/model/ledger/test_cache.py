"""The cache of entries: blocks leave memory, and are loaded again from the data directory or from spilled entries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.ledger import BLOCK_BYTES, BLOCK_ENTRIES, MOST_FORGOTTEN, EntryCache, Ledger
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.storage.interface import DamagedEntriesError, Done, EntryRun, ReadDone, StorageError
from tests.broker.held import HeldStorage
from tests.broker.model.stores import NAME, append, cluster_of
from tests.broker.wire import TOPIC, Exclusive, Shared, plain, serving

MB = 1 << 20


class SpillStorage(HeldStorage):
    """A store that keeps only spilled entries. A test can hold the spills back."""

    keeps_entries = False

    def __init__(self) -> None:
        super().__init__()
        self.spills: list[tuple[int, EntryRun, Done]] = []
        self.holding_spills = False

    def spill(self, ledger_id: int, run: EntryRun, done: Done) -> None:
        self.spills.append((ledger_id, EntryRun(run.first_entry_id, list(run.entries)), done))
        if not self.holding_spills:
            self.finish_spills()

    def finish_spills(self, error: Exception | None = None) -> None:
        spills, self.spills = self.spills, []
        for ledger_id, run, done in spills:
            if error is None:
                self.entries.setdefault(ledger_id, {}).update(enumerate(run.entries, run.first_entry_id))
            done(error)


def resident(ledger: ManagedLedger) -> list[bool]:
    """Return for each block of a ledger whether the block is in memory."""
    return [block.entries is not None for each in ledger.ledgers.values() for block in each.blocks]


async def test_blocks_end_by_count_or_by_size() -> None:
    cluster = cluster_of()
    ledger = ManagedLedger(NAME, cluster)
    append(ledger, cluster, *[b"x"] * (BLOCK_ENTRIES + 1))
    append(ledger, cluster, *[bytes(BLOCK_BYTES // 2)] * 3)
    (only,) = ledger.ledgers.values()
    assert [block.count for block in only.blocks] == [BLOCK_ENTRIES, 3, 1]
    assert [block.first for block in only.blocks] == [0, BLOCK_ENTRIES, BLOCK_ENTRIES + 3]


async def test_the_oldest_blocks_go_first_once_they_are_kept() -> None:
    store = HeldStorage()
    cluster = cluster_of(store, managedLedgerCacheSizeMB=3)
    ledger = ManagedLedger(NAME, cluster)
    cluster.turn.finish()
    store.holding = True
    for number in range(6):
        append(ledger, cluster, bytes([number]) * MB)
    assert resident(ledger) == [True] * 6  # no block is stored yet
    store.release(2)
    assert resident(ledger) == [False, False, True, True, True, True]
    store.release()
    cluster.turn.finish()
    assert resident(ledger) == [False] * 4 + [True] * 2
    assert cluster.cache.size <= 3 * MB
    assert ledger.read_now(Position(ledger.last_confirmed.ledger_id, 0)) == bytes(MB)


async def test_single_entries_are_fetched_and_nothing_is_brought_back() -> None:
    store = SpillStorage()
    cluster = cluster_of(store, managedLedgerCacheSizeMB=2)
    ledger = ManagedLedger(NAME, cluster)
    for number in range(3):
        append(ledger, cluster, bytes([number]) * MB)
    cluster.turn.finish()
    assert resident(ledger) == [False, False, True]
    got: list[bytes | Exception] = []
    first, last = (Position(ledger.last_confirmed.ledger_id, number) for number in (0, 2))
    store.holding_reads = True
    ledger.fetch(first, got.append)
    ledger.fetch(last, got.append)
    assert got == [b"\2" * MB]  # an entry in memory is returned at once
    store.release_reads()
    assert got[1:] == [bytes(MB)]
    assert resident(ledger) == [False, False, True]


async def test_readers_of_one_entry_share_one_read() -> None:
    store = HeldStorage()
    cluster = cluster_of(store, managedLedgerCacheSizeMB=1)
    ledger = ManagedLedger(NAME, cluster)
    append(ledger, cluster, *[b"%d" % i + bytes(200_000) for i in range(20)])
    first = ledger.next(ledger.first_position())
    assert not resident(ledger)[0]
    store.holding_reads = True
    ready: list[str] = []
    assert ledger.read(first, 2, lambda: ready.append("a")) is None
    assert ledger.read(first, 2, lambda: ready.append("b")) is None
    assert (ready, cluster.cache.loads) == ([], 1)
    store.release_reads()
    assert ready == ["a", "b"]
    entries = ledger.read(first, 2, lambda: None)
    assert entries is not None
    assert [entry[:1] for entry in entries] == [b"0", b"1"]
    cluster.turn.finish()
    cluster.turn.finish()
    assert cluster.cache.size <= MB


async def test_a_failed_read_may_be_repeated() -> None:
    store = HeldStorage()
    cluster = cluster_of(store, managedLedgerCacheSizeMB=0)
    ledger = ManagedLedger(NAME, cluster)
    append(ledger, cluster, b"x")
    cluster.turn.finish()
    first = ledger.next(ledger.first_position())
    reading, ready = store.read, list[bool]()

    def failing(ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        done(StorageError("bad disk"))

    store.read = failing  # type: ignore[method-assign]
    for _ in range(2):
        assert ledger.read(first, 1, lambda: ready.append(True)) is None
        assert ready == [True]  # a reader that is not told would wait for ever
        with pytest.raises(StorageError, match="bad disk"):
            ledger.read(first, 1, ready.clear)
        ready.clear()
    store.read = reading  # type: ignore[method-assign]
    assert ledger.read(first, 1, lambda: ready.append(True)) is None
    assert ready == [True]
    assert ledger.read(first, 1, ready.clear) == [b"x"]


class DamagedStorage(HeldStorage):
    """A store that cannot read some entries, as when their rows are damaged."""

    def __init__(self, *damaged: tuple[int, int]) -> None:
        super().__init__()
        self.damaged = damaged  # the first and last entry of each damaged row

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        for start, end in self.damaged:
            if start <= last and first <= end:
                done(DamagedEntriesError("damaged", ledger_id, max(start, first), min(end, last)))
                return
        super().read(ledger_id, first, last, done)


@pytest.mark.parametrize("damaged", [((3, 4),), ((0, 1), (8, 9)), ((0, 0), (2, 5)), ((4, 4), (5, 5)), ((0, 9),)])
async def test_damaged_entries_take_no_others_of_their_block_with_them(damaged: tuple[tuple[int, int], ...]) -> None:
    cluster = cluster_of(DamagedStorage(*damaged), managedLedgerCacheSizeMB=0)
    ledger = ManagedLedger(NAME, cluster)
    append(ledger, cluster, *[b"%d" % number for number in range(10)])
    cluster.turn.finish()
    assert resident(ledger) == [False]
    first = ledger.next(ledger.first_position())
    found: dict[int, bytes | None] = {}
    ready: list[int] = []
    for number in range(10):
        entries = None
        while entries is None and number not in found:
            try:
                entries = ledger.read(Position(first.ledger_id, number), 1, lambda: ready.append(1))
                if entries is None:
                    assert ready.pop() == 1
            except DamagedEntriesError:
                found[number] = None
        if entries:
            (found[number],) = entries
    lost = {number for start, end in damaged for number in range(start, end + 1)}
    assert found == {number: None if number in lost else b"%d" % number for number in range(10)}
    blocks = [(block.first, block.count) for block in ledger.ledgers[first.ledger_id].blocks]
    assert sum(count for _, count in blocks) == 10
    assert set(damaged) <= {(start, start + count - 1) for start, count in blocks}
    cluster.turn.finish()
    assert cluster.cache.size == 0


async def test_without_a_data_directory_blocks_are_spilled() -> None:
    store = SpillStorage()
    cluster = cluster_of(store, managedLedgerCacheSizeMB=2)
    ledger = ManagedLedger(NAME, cluster)
    store.holding_spills = True
    for number in range(4):
        append(ledger, cluster, bytes([number]) * MB)
    assert resident(ledger) == [True] * 4  # no spill is finished
    assert [run.first_entry_id for _, run, _ in store.spills] == [0, 1, 2][: len(store.spills)]
    store.finish_spills()
    assert resident(ledger)[0] is False
    assert cluster.cache.size <= 2 * MB
    first = ledger.next(ledger.first_position())
    assert ledger.read(first, 1, lambda: None) is None
    assert ledger.read(first, 1, lambda: None) == [bytes(MB)]
    store.holding_spills = False
    cluster.turn.finish()
    assert store.spills == []  # blocks that are stored already are not spilled again
    assert cluster.cache.size <= 2 * MB


async def test_a_spill_that_fails_is_tried_again() -> None:
    store = SpillStorage()
    cluster = cluster_of(store, managedLedgerCacheSizeMB=1)
    ledger = ManagedLedger(NAME, cluster)
    store.holding_spills = True
    append(ledger, cluster, bytes(2 * MB))
    store.finish_spills(StorageError("no room"))
    assert resident(ledger) == [True]
    store.holding_spills = False
    cluster.turn.finish()
    assert resident(ledger) == [False]
    assert cluster.cache.size == 0


async def test_appending_goes_on_while_the_last_block_is_spilled() -> None:
    store = SpillStorage()
    cluster = cluster_of(store, managedLedgerCacheSizeMB=0)
    ledger = ManagedLedger(NAME, cluster)
    store.holding_spills = True
    for number in range(5):
        append(ledger, cluster, b"%d" % number)
    store.finish_spills()
    store.holding_spills = False
    for number in range(5, 8):
        append(ledger, cluster, b"%d" % number)
    cluster.turn.finish()
    first = ledger.next(ledger.first_position())
    found = [ledger.read_now(Position(first.ledger_id, number)) for number in range(8)]
    assert found == [b"%d" % number for number in range(8)]
    assert cluster.cache.size == 0


async def test_a_deleted_ledger_gives_its_memory_back() -> None:
    store = HeldStorage()
    cluster = cluster_of(store)
    ledger = ManagedLedger(NAME, cluster)
    append(ledger, cluster, *[bytes(100_000)] * 30)
    assert cluster.cache.size > 2 * MB
    ledger.delete()
    assert cluster.cache.size > 2 * MB  # the deletion may still fail
    ledger.forget()
    assert cluster.cache.size == 0


async def test_a_block_loaded_while_its_ledger_is_deleted() -> None:
    store = HeldStorage()
    cluster = cluster_of(store, managedLedgerCacheSizeMB=0)
    ledger = ManagedLedger(NAME, cluster)
    append(ledger, cluster, b"x")
    cluster.turn.finish()
    store.holding_reads = True
    ready: list[bool] = []
    assert ledger.read(ledger.next(ledger.first_position()), 1, lambda: ready.append(True)) is None
    ledger.delete()
    store.release_reads()
    cluster.turn.finish()
    assert cluster.cache.size == 0


@pytest.mark.parametrize(
    ("store", "config", "megabytes"),
    [(HeldStorage, {}, 56), (SpillStorage, {}, 256), (HeldStorage, {"managedLedgerCacheSizeMB": 1000}, 1000)],
)
async def test_the_cache_is_smaller_over_a_data_directory_unless_the_key_is_set(
    store: type[HeldStorage], config: dict[str, int], megabytes: int
) -> None:
    """The process stays below 120 MB, however much is published."""
    assert cluster_of(store(), **config).cache.limit == megabytes * MB


COUNT, SIZE = 600, 20_000


@pytest.mark.parametrize("on_disk", [False, True])
async def test_a_backlog_far_beyond_the_memory_is_read_in_order(on_disk: bool, tmp_path: Path) -> None:
    """The stores have real threads, so the test runs on the real clock."""
    data = tmp_path if on_disk else None
    async with serving(Config(managedLedgerCacheSizeMB=1), data=data) as bed:
        cache = bed.broker.cluster.cache
        wire = await bed.connect()
        await wire.producer()
        for name, each in (("ex", Exclusive), ("sh", Shared)):
            await wire.subscribe(name=name, type=each, consumer_id=each)
        for start in range(0, COUNT, 20):
            await wire.publish(*[plain(b"%06d" % (start + i) + bytes(SIZE)) for i in range(20)])
        while cache.size > 2 * MB:
            await trio.testing.wait_all_tasks_blocked(0.001)  # threads spill the entries
        for each in (Exclusive, Shared):
            most, seen = 0, list[int]()
            for _ in range(COUNT // 50):
                await wire.flow(50, consumer_id=each)
                seen += [int(message.payload[:6]) for message in await wire.messages(50)]
                most = max(most, cache.size)
            assert seen == list(range(COUNT))
            assert most < 4 * MB
        await wire.redeliver([Position(0, 0)], consumer_id=Shared)
        await wire.redeliver(consumer_id=Shared)
        await wire.flow(COUNT, consumer_id=Shared)
        again = [int(message.payload[:6]) for message in await wire.messages(COUNT)]
        assert again == list(range(COUNT))
        assert list(bed.broker.topics.loaded) == [TOPIC]
    assert on_disk or os.listdir(tmp_path) == []


def test_blocks_of_deleted_ledgers_go_from_a_cache_that_is_never_full() -> None:
    cache = EntryCache(HeldStorage(), MB)
    for number in range(1000):
        ledger = Ledger(number, cache, 0)
        ledger.append(b"x")
        ledger.drop()
        assert len(cache._resident) <= MOST_FORGOTTEN + 1
    assert cache.size == 0
    kept = Ledger(1000, cache, 0)
    kept.append(b"x")
    for number in range(100):
        gone = Ledger(number, cache, 0)
        gone.append(b"x")
        gone.drop()
    assert kept.blocks[0] in cache._resident
