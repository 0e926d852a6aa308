"""Reclaiming of log files whose entries are deleted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio

from pulsarium.broker.storage import applier, entry_log, index
from pulsarium.broker.storage.interface import Batch, EntryRun
from pulsarium.broker.storage.log_files import LogFiles
from pulsarium.broker.storage.record import ROW_HEAD_BYTES, RowPlace
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.loopback import until
from tests.broker.storage.asking import ask


@pytest.fixture
async def store(tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> SqliteStorage:
    """Start a store with small log files, each of which begins with a large entry of ledger 1."""
    monkeypatch.setattr(entry_log, "LOG_BYTES", 1000)
    monkeypatch.setattr(applier, "APPLY_CHANGES", 1)
    store = SqliteStorage(tmp_path)
    await nursery.start(store.run)
    for number in range(10):
        await ask(
            store.commit, Batch({1: [EntryRun(number, [bytes(600)])], 2: [EntryRun(number, [b"%d" % number] * 1)]})
        )
    return store


def files(directory: Path) -> list[int]:
    return LogFiles(directory).numbers()


async def test_files_without_entries_are_deleted(store: SqliteStorage, tmp_path: Path) -> None:
    assert len(files(tmp_path)) == 5
    await ask(store.commit, Batch(deleted_ledgers=[1, 2]))
    await until(lambda: len(files(tmp_path)) == 1)


async def test_the_rest_of_a_mostly_dead_file_is_moved(store: SqliteStorage, tmp_path: Path) -> None:
    await ask(store.commit, Batch(deleted_ledgers=[1]))
    await until(lambda: len(files(tmp_path)) == 1)
    assert store.read_now(2, 0, 9) == [b"%d" % number for number in range(10)]
    assert sum(count for _, count, _ in store.stored_runs(2)) == 10
    shutil.copytree(tmp_path, tmp_path / "copy")
    again = SqliteStorage(tmp_path / "copy")
    assert again.read_now(2, 0, 9) == [b"%d" % number for number in range(10)]
    again.close()


async def test_an_entry_that_is_moved_while_a_topic_is_loaded_counts_once(
    store: SqliteStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await until(lambda: store._unapplied.changes == 0)
    places = index.pieces_of(store._connection, 2, 0, 9)

    def from_before_the_move(*_: object) -> list[RowPlace]:
        return places

    await ask(store.commit, Batch(deleted_ledgers=[1]))
    await until(lambda: len(files(tmp_path)) == 1)
    monkeypatch.setattr(index, "pieces_of", from_before_the_move)
    runs = store.stored_runs(2)
    assert [entry for first, count, _ in runs for entry in range(first, first + count)] == [*range(10)]


async def test_a_file_with_damaged_entries_stays(
    store: SqliteStorage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await until(lambda: store._unapplied.changes == 0)
    path = tmp_path / "entries-00000001.log"
    content = bytearray(path.read_bytes())
    place = content.index(b"\x01\0\0\0\x01\0\0\x000", ROW_HEAD_BYTES)
    content[place + 8] ^= 1
    path.write_bytes(content)
    await ask(store.commit, Batch(deleted_ledgers=[1]))
    await until(lambda: len(files(tmp_path)) == 2)
    assert "an entry log file with damaged entries stays" in caplog.text
    assert store.read_now(2, 1, 9) == [b"%d" % number for number in range(1, 10)]


async def test_a_file_with_enough_entries_stays(store: SqliteStorage, tmp_path: Path) -> None:
    await ask(store.commit, Batch(deleted_ledgers=[2]))
    for _ in range(2):
        store._applier.do()
    assert files(tmp_path)[:5] == [1, 2, 3, 4, 5]
