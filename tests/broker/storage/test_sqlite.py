from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path
from typing import NoReturn

import pytest
import trio

from pulsarium.broker.storage import applier, database, entries
from pulsarium.broker.storage.interface import Batch, EntryRun, Storage, StorageError
from pulsarium.broker.storage.persist import PersistPoint
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.storage.asking import ask, batch_of


@pytest.fixture
async def store(tmp_path: Path, nursery: trio.Nursery) -> Storage:
    store = SqliteStorage(tmp_path)
    await nursery.start(store.run)
    return store


def reopened(directory: Path) -> SqliteStorage:
    return SqliteStorage(directory)


async def test_committed_entries_can_be_read_at_once(store: Storage) -> None:
    assert store.keeps_entries
    await ask(store.commit, batch_of(1, 0, b"a", b"b", b"c"))
    await ask(store.commit, batch_of(1, 3, b"d"))
    assert await ask(store.read, 1, 1, 3) == [b"b", b"c", b"d"]
    assert store.read_now(1, 0, 3) == [b"a", b"b", b"c", b"d"]
    assert store.stored_runs(1) == [(0, 4, 4)]


async def test_metadata_is_set_changed_and_deleted(store: Storage) -> None:
    await ask(store.commit, batch_of(1, 0, a=b"1", b=b"2", c=b""))
    await ask(store.commit, batch_of(1, 0, a=b"3", b=None, never=None))
    assert store.load_metadata() == {"a": b"3", "c": b""}


async def test_loaded_metadata_has_changes_that_move_into_the_database_meanwhile(
    store: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(store, SqliteStorage)

    def load_while_changes_move(connection: sqlite3.Connection) -> dict[str, bytes]:
        loaded = database.metadata(connection)
        request = applier.AllWork()
        store._applier.submit(request)
        request.finished.wait(0.1)  # seconds: enough for the applier, unless it has to wait
        return loaded

    monkeypatch.setattr("pulsarium.broker.storage.sqlite.metadata", load_while_changes_move)
    await ask(store.commit, batch_of(1, 0, a=b"1"))
    assert store.load_metadata() == {"a": b"1"}


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    for restart in range(3):
        async with trio.open_nursery() as nursery:
            store = reopened(tmp_path)
            assert len(store.load_metadata()) == restart
            assert sum(count for _, count, _ in store.stored_runs(7)) == restart
            await nursery.start(store.run)
            await ask(store.commit, Batch({7: [EntryRun(restart, [b"entry"])]}, {f"path/{restart}": b"value"}))
            nursery.cancel_scope.cancel()


async def test_entries_of_five_megabytes(store: Storage) -> None:
    entries = [bytes([number]) * (5 << 20) for number in range(3)]
    await ask(store.commit, batch_of(1, 0, b"before", *entries, b"after"))
    assert await ask(store.read, 1, 0, 4) == [b"before", *entries, b"after"]


async def test_callbacks_come_on_the_event_loop(store: Storage) -> None:
    threads: list[threading.Thread] = []
    answered = trio.Event()

    def committed(error: Exception | None) -> None:
        threads.append(threading.current_thread())
        store.read(1, 0, 0, read)

    def read(result: list[bytes] | Exception) -> None:
        assert result == [b"a"]
        threads.append(threading.current_thread())
        answered.set()

    store.commit(batch_of(1, 0, b"a"), committed)
    await answered.wait()
    assert threads == [threading.current_thread()] * 2


async def test_a_callback_that_fails_keeps_no_other_from_its_answer(
    store: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(error: Exception | None) -> None:
        raise RuntimeError("a fault of the caller")

    store.commit(batch_of(1, 0, b"a"), fail)
    await ask(store.commit, batch_of(1, 1, b"b"))
    assert "a storage callback failed" in caplog.text
    assert "a fault of the caller" in caplog.text


async def test_a_read_that_fails_is_told_and_logged_once(store: Storage, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        with pytest.raises(StorageError, match=r"ledger 5: entry 0 of 0\.\.1 is not stored"):
            await ask(store.read, 5, 0, 1)
    assert caplog.text.count("ledger 5") == 1
    with pytest.raises(StorageError, match="ledger 5"):
        store.read_now(5, 0, 1)


async def test_a_read_waits_for_no_commit(tmp_path: Path, nursery: trio.Nursery) -> None:
    held = threading.Event()
    held.set()

    def hold(point: PersistPoint) -> None:
        if point is PersistPoint.WRITTEN:
            assert held.wait(30)

    store = SqliteStorage(tmp_path, at=hold)
    await nursery.start(store.run)
    await ask(store.commit, batch_of(1, 0, b"a"))
    held.clear()
    committed: list[Exception | None] = []
    store.commit(batch_of(1, 1, b"b"), committed.append)
    assert await ask(store.read, 1, 0, 0) == [b"a"]
    assert store.read_now(1, 0, 0) == [b"a"]
    with pytest.raises(StorageError, match=r"entry 1 of 1\.\.1 is not stored"):
        await ask(store.read, 1, 1, 1)
    assert committed == []
    held.set()


async def test_a_cancelled_store_finishes_what_it_was_handed(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path, grace=60)
    answers: list[Exception | None] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        for number in range(100):
            store.commit(batch_of(1, number, b"%d" % number), answers.append)
        nursery.cancel_scope.cancel()
    assert answers == [None] * 100
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("storage")]
    again = reopened(tmp_path)  # so the lock is free
    assert again.read_now(1, 0, 99) == [b"%d" % number for number in range(100)]
    again.close()
    assert sorted(os.listdir(tmp_path)) == ["entries-00000001.log", "pulsarium.db", "pulsarium.lock"]


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path)
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        nursery.cancel_scope.cancel()
    with pytest.raises(StorageError, match="closed"):
        await ask(store.commit, batch_of(1, 0, b"a"))
    with pytest.raises(StorageError, match="closed"):
        await ask(store.read, 1, 0, 0)
    with pytest.raises(StorageError, match="closed"):
        store.load_metadata()


async def test_a_commit_before_the_store_runs_waits_for_the_start(tmp_path: Path, nursery: trio.Nursery) -> None:
    store = SqliteStorage(tmp_path)
    answers: list[Exception | None] = []
    store.commit(batch_of(1, 0, b"a"), answers.append)
    await nursery.start(store.run)
    await ask(store.commit, Batch())
    assert answers == [None]


def test_a_store_that_never_ran_closes_and_answers(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path)
    answers: list[Exception | None] = []
    store.commit(batch_of(1, 0, b"a"), answers.append)
    store.close()
    store.close()
    assert isinstance(answers[0], StorageError)
    reopened(tmp_path).close()


async def test_two_stores_in_one_directory(store: Storage, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is in use by another pulsarium"):
        SqliteStorage(tmp_path)
    await ask(store.commit, batch_of(1, 0, b"undisturbed"))


async def test_spilling_makes_no_sense_here(store: Storage) -> None:
    with pytest.raises(NotImplementedError):
        store.spill(1, EntryRun(0, [b"a"]), lambda error: None)


class Bug(BaseException):
    """A bug that ends a thread."""


@pytest.mark.parametrize("point", [PersistPoint.COMMITTED, PersistPoint.APPLYING])
async def test_a_thread_that_dies_while_it_writes_ends_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, point: PersistPoint
) -> None:
    bugs = [point]

    def die(reached: PersistPoint) -> None:
        if reached in bugs:
            bugs.clear()
            raise Bug

    monkeypatch.setattr(applier, "APPLY_CHANGES", 1)
    store = SqliteStorage(tmp_path, at=die)
    store.commit(batch_of(1, 0, b"a"), lambda error: None)
    with pytest.raises(StorageError, match="a storage thread has died"):
        await store.run()
    assert "Bug" in caplog.text
    reopened(tmp_path).close()


async def test_a_thread_that_dies_while_it_reads_ends_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> NoReturn:
        raise Bug

    monkeypatch.setattr(entries, "read", die)
    store = SqliteStorage(tmp_path)
    store.read(1, 0, 0, lambda result: None)
    with pytest.raises(StorageError, match="a storage thread has died"):
        await store.run()
    assert "Bug" in caplog.text
