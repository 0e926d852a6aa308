"""Data directories that vanish under a running store: the store takes no more commits, and touches no other files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from errno import EIO
from math import inf
from pathlib import Path

import pytest
import trio

from pulsarium.broker.storage import committer
from pulsarium.broker.storage.database import DATABASE_NAME
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.persist import PersistPoint
from pulsarium.broker.storage.place import OpenedFiles
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.storage.asking import ask, batch_of

WAL_NAME = f"{DATABASE_NAME}-wal"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def store(data: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> SqliteStorage:
    """Start a store that checks the place of its files before each commit, and has one entry."""
    monkeypatch.setattr(committer, "PLACE_SECONDS", 0)
    store = SqliteStorage(data)
    await nursery.start(store.run)
    await ask(store.commit, batch_of(1, 0, b"kept", at=b"1"))
    return store


def removed(data: Path) -> None:
    shutil.rmtree(data)


def moved(data: Path) -> None:
    data.rename(data.with_name("away"))


def put_back(data: Path) -> None:
    data.with_name("away").rename(data)


def contents(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in data.iterdir()}


def database_deleted(data: Path) -> None:
    (data / DATABASE_NAME).unlink()


def log_deleted(data: Path) -> None:
    (data / WAL_NAME).unlink()


def replaced(data: Path) -> None:
    moved(data)
    shutil.copytree(data.with_name("away"), data)


def newest_file_deleted(data: Path) -> None:
    max(data.glob("entries-*.log")).unlink()


def made_a_file(data: Path) -> None:
    shutil.rmtree(data)
    data.touch()


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (removed, f"{DATABASE_NAME} is gone"),
        (moved, f"{DATABASE_NAME} is gone"),
        (database_deleted, f"{DATABASE_NAME} is gone"),
        (log_deleted, f"{WAL_NAME} is gone"),
        (replaced, f"{DATABASE_NAME} was replaced by another file"),
        (made_a_file, f"{DATABASE_NAME} is gone"),
    ],
)
async def test_nothing_is_taken_any_more(
    store: SqliteStorage, data: Path, caplog: pytest.LogCaptureFixture, happens: Callable[[Path], None], said: str
) -> None:
    happens(data)
    for era in range(3):
        with pytest.raises(StorageError, match=f"commit failed: {data}/{said}"):
            await ask(store.commit, batch_of(1, 1, b"lost", era=era))
        assert store.refusal == f"The broker refuses messages: {data}/{said}"
    with pytest.raises(StorageError, match=f"replacing failed: {data}/{said}"):
        store.replace({}, [])
    assert await ask(store.read, 1, 0, 0) == [b"kept"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("the data directory is lost: put it back, or restart the broker")
    assert said in line


async def test_a_deleted_log_that_is_put_back_is_written_again(store: SqliteStorage, data: Path) -> None:
    moved(data)
    with pytest.raises(StorageError, match="is gone"):
        await ask(store.commit, batch_of(1, 1, b"lost"))
    put_back(data)
    assert store.refusal  # the result of the last check; reading it starts another check
    store.settle()
    assert not store.refusal
    await ask(store.commit, batch_of(1, 1, b"next", era=1))
    assert await ask(store.read, 1, 0, 1) == [b"kept", b"next"]


async def test_entries_survive_the_deletion_of_the_log_while_the_store_runs(data: Path) -> None:
    store = SqliteStorage(data)
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        await ask(store.commit, batch_of(1, 0, b"kept"))
        (data / WAL_NAME).unlink()
        nursery.cancel_scope.cancel()
    again = SqliteStorage(data)
    assert again.read_now(1, 0, 0) == [b"kept"]
    again.close()


async def test_another_directory_in_its_place_stays_as_it_is(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite removes the log with the database's name when the last connection closes, even in another directory."""
    monkeypatch.setattr(committer, "PLACE_SECONDS", 0)
    store = SqliteStorage(data)
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        await ask(store.commit, batch_of(1, 0, b"kept"))
        replaced(data)
        other = contents(data)
        assert other[WAL_NAME]
        with suppress(StorageError):
            await ask(store.commit, batch_of(1, 1, b"lost"))
        nursery.cancel_scope.cancel()
    assert contents(data) == other
    again = SqliteStorage(data)
    assert again.read_now(1, 0, 0) == [b"kept"]
    again.close()


async def test_an_error_of_the_database_makes_it_look_at_once(
    data: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "PLACE_SECONDS", inf)

    def fail(point: PersistPoint) -> None:
        if armed and point is PersistPoint.WRITTEN:
            raise OSError(EIO, "disk I/O error")

    armed = False
    store = SqliteStorage(data, at=fail)
    await nursery.start(store.run)
    await ask(store.commit, batch_of(1, 0, b"kept"))
    armed = True
    monkeypatch.setattr(OpenedFiles, "has_changed", lambda place: False)
    shutil.rmtree(data)
    with pytest.raises(StorageError, match="disk I/O error"):
        await ask(store.commit, batch_of(1, 1, b"lost"))
    assert store.refusal.endswith("is gone")


@pytest.mark.parametrize("happens", [database_deleted, log_deleted, newest_file_deleted, removed])
async def test_no_commit_goes_into_a_deleted_file(
    data: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, happens: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(committer, "PLACE_SECONDS", inf)
    store = SqliteStorage(data)
    await nursery.start(store.run)
    await ask(store.commit, batch_of(1, 0, b"kept"))
    happens(data)
    with pytest.raises(StorageError, match="is gone"):
        await ask(store.commit, batch_of(1, 1, b"lost"))


async def test_a_file_of_others_in_the_data_directory_disturbs_no_commit(data: Path, store: SqliteStorage) -> None:
    (data / "notes.txt").touch()
    await ask(store.commit, batch_of(1, 1, b"next"))
    assert not store.refusal


async def test_the_data_directory_is_looked_at_once_a_second(
    data: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, looks = 1000.0, list[float]()

    def look(place: OpenedFiles) -> str:
        looks.append(now)
        return ""

    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr(OpenedFiles, "problem", look)
    store = SqliteStorage(data)
    await nursery.start(store.run)
    for number in range(25):
        await ask(store.commit, batch_of(1, number, b"x"))
        now += 0.125
    assert looks == [1001.0, 1002.0, 1003.0]
