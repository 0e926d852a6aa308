"""Deletion of ledgers in rows of the database. Such rows hold entries that outlived their log file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.database import DATABASE_NAME, PAGE_SIZE
from pulsarium.broker.storage.interface import Batch, EntryRun, StorageError
from pulsarium.broker.storage.persist import PersistPoint
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.loopback import until
from tests.broker.storage.asking import ask, batch_of


@pytest.fixture(autouse=True)
def one_row_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SLICE_ROWS", 2)


def rows_left(directory: Path) -> list[tuple[int, int]]:
    """Return the number of rows of each ledger in the file, including those that are marked as deleted."""
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as connection:
        return connection.execute("SELECT key >> 32, count(*) FROM segment GROUP BY 1 ORDER BY 1").fetchall()


def ten_rows(*ledger_ids: int) -> list[tuple[int, EntryRun]]:
    return [(ledger_id, EntryRun(2 * number, [b"x"])) for ledger_id in ledger_ids for number in range(10)]


class Slices:
    """A hook that waits for a number of slices. It can hold the thread at each slice, or make a slice fail."""

    def __init__(self, expected: int) -> None:
        self.points: list[PersistPoint] = []
        self.enough = trio.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self.failure: sqlite3.Error | None = None
        self._expected = expected
        self._token = trio.lowlevel.current_trio_token()

    def __call__(self, point: PersistPoint) -> None:
        self.points.append(point)
        if point is PersistPoint.DELETION:
            assert self.go_on.wait(30)
            if self.points.count(point) == self._expected:
                self._token.run_sync_soon(self.enough.set)
            if self.failure is not None:
                raise self.failure


async def test_a_deleted_ledger_is_gone_at_once_and_its_rows_soon(tmp_path: Path) -> None:
    slices = Slices(expected=6)
    store = SqliteStorage(tmp_path, at=slices)
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        store.replace({}, ten_rows(1, 2, 3))
        slices.go_on.clear()
        await ask(store.commit, Batch(deleted_ledgers=[2, 77]))
        assert store.stored_runs(2) == []
        with pytest.raises(StorageError, match="not stored"):
            await ask(store.read, 2, 0, 0)
        assert dict(rows_left(tmp_path))[2] == 10
        slices.go_on.set()
        await slices.enough.wait()
        await until(lambda: rows_left(tmp_path) == [(1, 10), (3, 10)])
        nursery.cancel_scope.cancel()


async def test_a_commit_waits_for_no_deletion(tmp_path: Path, nursery: trio.Nursery) -> None:
    slices = Slices(expected=2)
    store = SqliteStorage(tmp_path, at=slices)
    await nursery.start(store.run)
    store.replace({}, ten_rows(1))
    slices.go_on.clear()
    await ask(store.commit, Batch(deleted_ledgers=[1]))
    await ask(store.commit, batch_of(2, 0, b"x"))
    slices.go_on.set()
    await slices.enough.wait()


async def test_deleting_goes_on_after_a_restart(tmp_path: Path) -> None:
    for expected, failure in ((1, sqlite3.OperationalError("disk I/O error")), (6, None)):
        slices = Slices(expected)
        slices.failure = failure
        store = SqliteStorage(tmp_path, at=slices)
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            if failure:
                store.replace({}, ten_rows(1))
                await ask(store.commit, Batch(deleted_ledgers=[1]))
            assert store.stored_runs(1) == []
            await slices.enough.wait()
            slices.failure = failure
            nursery.cancel_scope.cancel()
        assert rows_left(tmp_path) == ([(1, 10)] if failure else [])


async def test_deleting_that_fails_waits_for_the_next_deletion(
    tmp_path: Path, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    slices = Slices(expected=1)
    slices.failure = sqlite3.OperationalError("disk I/O error")
    store = SqliteStorage(tmp_path, at=slices)
    await nursery.start(store.run)
    store.replace({}, ten_rows(1, 2))
    await ask(store.commit, Batch(deleted_ledgers=[1]))
    await slices.enough.wait()
    await until(lambda: "a deletion has to wait for the next one" in caplog.text)
    assert slices.points.count(PersistPoint.DELETION) == 1
    slices.failure = None
    await ask(store.commit, Batch(deleted_ledgers=[2]))
    await until(lambda: rows_left(tmp_path) == [])


# damaged rows

Pages = Callable[[int], list[int]]
"""A function that returns the offsets of the pages that one ledger alone fills, in order."""


def zeroed(data: bytearray, pages: Pages) -> None:
    """Empty a page of a row of ledger 2, so that SQLite itself cannot follow the row's pages."""
    page = pages(2)[3]
    data[page : page + PAGE_SIZE] = bytes(PAGE_SIZE)


def crossed(data: bytearray, pages: Pages) -> None:
    """Continue a row of ledger 2 with pages of ledger 4, which SQLite does not notice."""
    page, other = pages(2)[3], pages(4)[3]
    data[page : page + 4] = (other // PAGE_SIZE + 1).to_bytes(4, "big")


@pytest.mark.parametrize("damage", [zeroed, crossed])
async def test_a_damaged_row_stays_and_all_others_go(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[bytearray, Pages], None]
) -> None:
    def entries(ledger_id: int) -> list[bytes]:
        return [bytes([ledger_id]) * 60_000] * 4

    async with trio.open_nursery() as nursery:
        store = SqliteStorage(tmp_path)
        await nursery.start(store.run)
        rows = [(ledger_id, EntryRun(0, entries(ledger_id))) for ledger_id in range(1, 6)]
        store.replace({}, [*rows, (2, EntryRun(4, [b"sound"]))])
        nursery.cancel_scope.cancel()
    data = bytearray((tmp_path / DATABASE_NAME).read_bytes())

    def pages(ledger_id: int) -> list[int]:
        full = bytes([ledger_id]) * (PAGE_SIZE - 4)  # a page begins with the number of the next page
        return [start for start in range(0, len(data), PAGE_SIZE) if data[start + 4 : start + PAGE_SIZE] == full]

    damage(data, pages)
    (tmp_path / DATABASE_NAME).write_bytes(data)
    async with trio.open_nursery() as nursery:
        store = SqliteStorage(tmp_path)
        await nursery.start(store.run)
        await ask(store.commit, Batch(deleted_ledgers=[2, 3]))
        await until(lambda: rows_left(tmp_path) == [(1, 1), (2, 1), (4, 1), (5, 1)])
        await ask(store.commit, Batch({}, {f"{number}": b"n" * 100_000 for number in range(6)}))
        store._applier.do()  # uses the freed pages again
        for ledger_id in (1, 4, 5):
            assert store.read_now(ledger_id, 0, 3) == entries(ledger_id)
        nursery.cancel_scope.cancel()
    assert caplog.text.count("damaged rows") == 1
    async with trio.open_nursery() as nursery:
        store = SqliteStorage(tmp_path)
        assert store.stored_runs(2) == []
        await nursery.start(store.run)
        await ask(store.commit, Batch(deleted_ledgers=[5]))
        await until(lambda: rows_left(tmp_path) == [(1, 1), (2, 1), (4, 1)])
        nursery.cancel_scope.cancel()
    assert caplog.text.count("damaged rows") == 2  # one line for each start


async def test_a_ledger_whose_rows_cannot_be_listed_holds_nobody_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with trio.open_nursery() as nursery:
        store = SqliteStorage(tmp_path)
        await nursery.start(store.run)
        numbers = [(ledger_id, number) for ledger_id in range(1, 5) for number in range(10)]
        store.replace({}, [(each, EntryRun(2 * number, [bytes([each]) * 7_000])) for each, number in numbers])
        nursery.cancel_scope.cancel()
    data = bytearray((tmp_path / DATABASE_NAME).read_bytes())
    rows = bytes([2]) * 7_000
    leaf = next(start for start in range(0, len(data), PAGE_SIZE) if data[start : start + PAGE_SIZE].count(rows) == 2)
    data[leaf : leaf + PAGE_SIZE] = bytes(PAGE_SIZE)
    (tmp_path / DATABASE_NAME).write_bytes(data)
    async with trio.open_nursery() as nursery:
        store = SqliteStorage(tmp_path)
        await nursery.start(store.run)
        await ask(store.commit, Batch(deleted_ledgers=[2, 3]))
        await until(lambda: "cannot be deleted" in caplog.text)
        store._applier.do()
        assert store.read_now(4, 0, 0) == [bytes([4]) * 7_000]
        with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as connection:
            low, high = 3 << 32, (4 << 32) - 1
            assert not connection.execute("SELECT 1 FROM segment WHERE key BETWEEN ? AND ?", (low, high)).fetchall()
            assert connection.execute("SELECT ledger_id FROM deleted_ledger").fetchall() == [(2,)]
        nursery.cancel_scope.cancel()
    assert caplog.text.count("cannot be deleted") == 1


async def test_a_mark_that_nobody_can_work_on_holds_nobody_up(tmp_path: Path, nursery: trio.Nursery) -> None:
    SqliteStorage(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as connection, connection:
        connection.execute("INSERT INTO deleted_ledger VALUES (-1), (2147483648)")
    store = SqliteStorage(tmp_path)
    await nursery.start(store.run)
    store.replace({}, ten_rows(1))
    await ask(store.commit, Batch(deleted_ledgers=[1]))
    await until(lambda: rows_left(tmp_path) == [])
