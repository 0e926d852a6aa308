"""Replacement of all that a store keeps, and snapshots of a store."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from pulsarium.broker.storage import segments, snapshot
from pulsarium.broker.storage.database import DATABASE_NAME
from pulsarium.broker.storage.interface import Batch, EntryRun, Storage, StorageError
from pulsarium.broker.storage.lasting import LastingStorage
from pulsarium.broker.storage.memory import MemoryStorage
from pulsarium.broker.storage.persist import PersistPoint
from pulsarium.broker.storage.snapshot import Snapshot
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.loopback import until
from tests.broker.storage.asking import ask, batch_of


@pytest.fixture(params=["memory", "lasting", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    makers: dict[str, Callable[[], Storage]] = {
        "memory": MemoryStorage,
        "lasting": LastingStorage,
        "sqlite": lambda: SqliteStorage(tmp_path / "data"),
    }
    made = makers[request.param]()
    async with trio.open_nursery() as nursery:
        await nursery.start(made.run)
        yield made
        nursery.cancel_scope.cancel()


async def test_the_store_has_exactly_the_new_state(store: Storage) -> None:
    await ask_commit(store, batch_of(1, 0, b"a", b"b", path=b"value"))
    await ask_commit(store, Batch(deleted_ledgers=[1]))
    for content in (b"x", b"y"):  # the second time, the ids are in use; before the first time, ledger 1 was deleted
        store.replace(
            {"new": content}, [(1, EntryRun(0, [content])), (1, EntryRun(1, [b"2"])), (7, EntryRun(3, [b"3"]))]
        )
        assert store.load_metadata() == {"new": content}
        assert await ask(store.read, 1, 0, 1) == [content, b"2"]
        assert store.read_now(7, 3, 3) == [b"3"]
        assert store.stored_runs(1)[0][0] == 0
    await ask_commit(store, Batch(metadata={"later": b"1"}))
    store.replace({}, [])
    assert (store.load_metadata(), store.stored_runs(1), store.stored_runs(7)) == ({}, [], [])


async def test_a_failed_replacement_changes_nothing(store: Storage) -> None:
    store.replace({"old": b"1"}, [(1, EntryRun(0, [b"old"]))])

    def failing() -> Iterator[tuple[int, EntryRun]]:
        yield 1, EntryRun(0, [b"new"])
        raise StorageError("damaged")

    with pytest.raises(StorageError, match="damaged"):
        store.replace({"new": b"1"}, failing())
    assert (store.load_metadata(), store.read_now(1, 0, 0)) == ({"old": b"1"}, [b"old"])


async def ask_commit(store: Storage, batch: Batch) -> None:
    done = trio.Event()
    store.commit(batch, lambda error: done.set())
    await done.wait()


async def test_settling_stores_all_commits_that_were_handed_over(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path)
    answers: list[Exception | None] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        for number in range(50):
            store.commit(batch_of(1, number, b"a", path=b"%d" % number), answers.append)
        store.settle()
        assert (store.load_metadata(), answers) == ({"path": b"49"}, [])
        await until(lambda: len(answers) == 50)
        assert answers == [None] * 50
        nursery.cancel_scope.cancel()
    with pytest.raises(StorageError, match="closed"):
        store.settle()


@pytest.mark.parametrize("point", [PersistPoint.WRITTEN, PersistPoint.COMMITTED])
def test_a_crash_in_the_middle_leaves_the_old_or_the_new(tmp_path: Path, point: PersistPoint) -> None:
    """The test copies the files at that moment, as a machine that stops would leave them."""
    copy = tmp_path / "copy"
    armed = False

    def at(reached: PersistPoint) -> None:
        if armed and reached is point:
            copy.mkdir()
            for each in (tmp_path / "data").iterdir():
                (copy / each.name).write_bytes(each.read_bytes())

    async def main() -> None:
        nonlocal armed
        store = SqliteStorage(tmp_path / "data", at=at)
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            await ask_commit(store, batch_of(1, 0, b"old", path=b"old"))
            armed = True
            store.replace({"path": b"new"}, [(1, EntryRun(0, [b"new"])), (2, EntryRun(0, [bytes(5_000_000)]))])
            armed = False
            nursery.cancel_scope.cancel()

    trio.run(main)
    store = SqliteStorage(copy)
    try:
        wanted = b"old" if point is PersistPoint.WRITTEN else b"new"
        assert (store.load_metadata(), store.read_now(1, 0, 0)) == ({"path": wanted}, [wanted])
        assert bool(store.stored_runs(2)) is (wanted == b"new")
    finally:
        store.close()


# snapshot files


def test_a_snapshot_is_a_database(tmp_path: Path) -> None:
    path = tmp_path / "s"
    snapshot.write(path, {"a": b"1"}, [(3, EntryRun(0, [b"x", b"y"]))], {"by": "me"})
    with Snapshot(path) as found:
        assert (found.metadata, found.about["by"]) == ({"a": b"1"}, "me")
        assert list(found.entries()) == [(3, EntryRun(0, [b"x", b"y"]))]
    data = tmp_path / "data"
    data.mkdir()
    path.rename(data / DATABASE_NAME)
    store = SqliteStorage(data)
    assert store.read_now(3, 1, 1) == [b"y"]
    store.close()


def test_a_later_version(tmp_path: Path) -> None:
    path = tmp_path / "s"
    snapshot.write(path, {}, [], {})
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(StorageError, match=r"has format 99, .*: restore it with that one"):
        Snapshot(path)


def test_ledgers_that_are_being_deleted_stay_behind(tmp_path: Path) -> None:
    path = tmp_path / "s"
    snapshot.write(path, {}, [(3, EntryRun(0, [b"x"])), (4, EntryRun(0, [b"y"]))], {})
    with sqlite3.connect(path) as connection:
        segments.mark_deleted(connection, [3])
        connection.execute("UPDATE segment SET checksum = 0 WHERE key >> 32 = 3")  # a damaged row of ledger 3 stays
    connection.close()
    with Snapshot(path) as found:
        assert [ledger for ledger, _ in found.entries()] == [4]


WITHOUT_CHECKSUM = "DELETE FROM metadata WHERE path = '/snapshot';"


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO metadata VALUES ('/x', 'a text', 0)",
        "INSERT INTO metadata VALUES (x'ff', x'00', 0)",
        "UPDATE metadata SET value = CAST('[3]' AS BLOB)",
        f"{WITHOUT_CHECKSUM} INSERT INTO segment VALUES (1, 1, 'a text', 0)",
        f"{WITHOUT_CHECKSUM} INSERT INTO segment VALUES (1, 'a text', x'00', 0)",
        f"{WITHOUT_CHECKSUM} INSERT INTO segment VALUES (1, 1, zeroblob(1000000), 0)",
        "DROP TABLE deleted_ledger",
        f"{WITHOUT_CHECKSUM} DROP TABLE segment",
        """DROP TABLE metadata; CREATE VIEW metadata AS
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'p' || i AS path, x'' AS value FROM n""",
    ],
)
def test_a_file_of_a_stranger(tmp_path: Path, change: str) -> None:
    path = tmp_path / "s"
    snapshot.write(path, {}, [], {})
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(change)
    with pytest.raises(StorageError, match=r"damaged|not a snapshot"), Snapshot(path) as found:
        list(found.entries())


async def test_all_of_one_moment(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path)
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        await ask_commit(store, batch_of(1, 0, b"a"))
        with Snapshot(tmp_path / DATABASE_NAME) as found:
            await ask_commit(store, batch_of(1, 1, b"b"))
            assert list(found.entries()) == [(1, EntryRun(0, [b"a"]))]
        nursery.cancel_scope.cancel()


def test_a_leftover_file_of_an_earlier_process_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / f"s.{os.getpid()}.part").write_bytes(b"SQLite format 3")
    snapshot.write(tmp_path / "s", {"a": b"1"}, [], {})
    with Snapshot(tmp_path / "s") as found:
        assert found.metadata == {"a": b"1"}


def test_the_new_state_is_on_disk_before_it_replaces_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that dies leaves the old snapshot or the new one."""
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(file: int) -> None:
        done.append(f"synced {os.fstat(file).st_ino}")
        sync(file)

    def replaced(old: Path, new: Path) -> None:
        done.append(f"replaced by {old.stat().st_ino}")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    snapshot.write(tmp_path / "s", {"a": b"1"}, [], {})
    written = (tmp_path / "s").stat().st_ino
    assert done == [f"synced {written}", f"replaced by {written}"]
