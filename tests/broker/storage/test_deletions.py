from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
import trio

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.database import DATABASE_NAME
from pulsarium.broker.storage.errors import StorageError
from pulsarium.broker.storage.interface import Batch, Run
from pulsarium.broker.storage.persist import PersistPoint
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.storage.asking import ask, batch_of


@pytest.fixture(autouse=True)
def one_row_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SLICE_ROWS", 2)


def rows_left(directory: Path) -> list[tuple[int, int]]:
    """(ledger id, rows) as the file has them, whatever is marked."""
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as connection:
        return connection.execute("SELECT key >> 32, count(*) FROM segment GROUP BY 1 ORDER BY 1").fetchall()


def ten_rows(ledger_id: int) -> Batch:
    return Batch({ledger_id: [Run(2 * number, [b"x"]) for number in range(10)]})


class Slices:
    """Lets the event loop wait for a number of slices; holds the thread at the first if asked to."""

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
        for ledger_id in (1, 2, 3):
            await ask(store.commit, ten_rows(ledger_id))
        slices.go_on.clear()
        await ask(store.commit, Batch(deleted_ledgers=[2, 77]))
        assert store.stored_runs(2) == []
        with pytest.raises(StorageError, match="not stored"):
            await ask(store.read, 2, 0, 0)
        assert dict(rows_left(tmp_path))[2] == 10
        slices.go_on.set()
        await slices.enough.wait()
        await ask(store.commit, batch_of(4, 0, b"x"))  # the last slice is over when this is
        assert rows_left(tmp_path) == [(1, 10), (3, 10), (4, 1)]
        nursery.cancel_scope.cancel()


async def test_a_commit_waits_for_one_slice_at_most(tmp_path: Path, nursery: trio.Nursery) -> None:
    slices = Slices(expected=2)
    store = SqliteStorage(tmp_path, at=slices)
    await nursery.start(store.run)
    await ask(store.commit, ten_rows(1))
    slices.go_on.clear()
    await ask(store.commit, Batch(deleted_ledgers=[1]))
    answers: list[Exception | None] = []
    store.commit(batch_of(2, 0, b"x"), answers.append)
    slices.go_on.set()
    await slices.enough.wait()
    assert answers == [None]
    first = slices.points.index(PersistPoint.DELETION)
    assert slices.points[first : first + 2] == [PersistPoint.DELETION, PersistPoint.WRITTEN]


async def test_deleting_goes_on_after_a_restart(tmp_path: Path) -> None:
    for expected, failure in ((1, sqlite3.OperationalError("disk I/O error")), (6, None)):
        slices = Slices(expected)
        slices.failure = failure
        store = SqliteStorage(tmp_path, at=slices)
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            if failure:
                await ask(store.commit, ten_rows(1))
                await ask(store.commit, Batch(deleted_ledgers=[1]))
            assert store.stored_runs(1) == []
            await slices.enough.wait()
            nursery.cancel_scope.cancel()
        assert rows_left(tmp_path) == ([(1, 10)] if failure else [])


async def test_deleting_that_fails_waits_for_the_next_commit(
    tmp_path: Path, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    slices = Slices(expected=1)
    slices.failure = sqlite3.OperationalError("disk I/O error")
    store = SqliteStorage(tmp_path, at=slices)
    await nursery.start(store.run)
    await ask(store.commit, ten_rows(1))
    await ask(store.commit, Batch(deleted_ledgers=[1]))
    await slices.enough.wait()
    await ask(store.commit, Batch())  # of which nothing is learned
    assert slices.points.count(PersistPoint.DELETION) == 1
    assert "deleting has to wait" in caplog.text
    slices.failure = None
    for number in range(8):
        await ask(store.commit, batch_of(2, number, b"x"))
    assert rows_left(tmp_path) == [(2, 8)]
