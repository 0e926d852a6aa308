"""Contents of a data directory, as `pulsarium storage show` prints them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from pulsarium.broker.storage import applier, entry_log
from pulsarium.broker.storage.inspection import DirectoryContents, InspectedLedger, inspect
from pulsarium.broker.storage.interface import Batch, EntryRun, StorageError
from pulsarium.broker.storage.log_files import LogFiles
from pulsarium.broker.storage.record import MAGIC
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.loopback import until
from tests.broker.storage.asking import ask

Changed = Callable[[Path], object]


@pytest.fixture
async def store(tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> SqliteStorage:
    """Start a store, make four commits in one log file, and wait until the database has all four."""
    monkeypatch.setattr(applier, "APPLY_CHANGES", 1)
    store = SqliteStorage(tmp_path / "data")
    await nursery.start(store.run)
    for number in range(4):
        await ask(store.commit, Batch({1: [EntryRun(number, [bytes(600)])], 2: [EntryRun(2 * number, [b"a", b"b"])]}))
    await until(lambda: inspect(tmp_path / "data").applied.sequence == 4)
    return store


def only_file(contents: DirectoryContents) -> tuple[int, int, str]:
    (file,) = contents.files
    return file.records, file.entries, file.state


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


async def test_a_running_store_is_shown_and_not_touched(store: SqliteStorage, tmp_path: Path) -> None:
    before = bytes_in(tmp_path / "data")
    contents = inspect(tmp_path / "data")
    assert only_file(contents) == (4, 12, "sound")
    assert [(each.ledger_id, each.entries, each.garbage) for each in contents.ledgers] == [(1, 4, 0), (2, 8, 0)]
    assert bytes_in(tmp_path / "data") == before


async def test_each_row_has_its_place(store: SqliteStorage, tmp_path: Path) -> None:
    (file,) = inspect(tmp_path / "data").files
    assert [(row.ledger_id, row.piece.first, row.piece.entries, row.needed) for row in file.rows][:4] == [
        (1, 0, 1, True),
        (2, 0, 2, True),
        (1, 1, 1, True),
        (2, 2, 2, True),
    ]


async def test_entries_of_deleted_ledgers_are_garbage(store: SqliteStorage, tmp_path: Path) -> None:
    await ask(store.commit, Batch(deleted_ledgers=[2]))
    await until(lambda: inspect(tmp_path / "data").applied.sequence == 5)
    contents = inspect(tmp_path / "data")
    ledger = next(each for each in contents.ledgers if each.ledger_id == 2)
    assert (ledger.entries, ledger.bytes) == (0, 0)
    assert ledger.garbage > 0
    assert 0 < contents.files[0].garbage < 0.1


async def test_moved_entries_are_counted_once(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_log, "LOG_BYTES", 1000)
    monkeypatch.setattr(applier, "APPLY_CHANGES", 1)
    store = SqliteStorage(tmp_path)
    await nursery.start(store.run)
    for number in range(10):
        await ask(store.commit, Batch({1: [EntryRun(number, [bytes(600)])], 2: [EntryRun(number, [b"%d" % number])]}))
    await ask(store.commit, Batch(deleted_ledgers=[1]))
    await until(lambda: len(LogFiles(tmp_path).numbers()) == 1)
    ledger = next(each for each in inspect(tmp_path).ledgers if each.ledger_id == 2)
    assert ledger == InspectedLedger(2, 10, ledger.bytes, ledger.moved, ledger.garbage)
    assert 0 < ledger.moved <= ledger.bytes


def _cut(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-5])


def _torn(log: Path) -> None:
    log.write_bytes(log.read_bytes() + MAGIC)


def _zeros_behind(log: Path) -> None:
    log.write_bytes(log.read_bytes() + bytes(99))


def _emptied(log: Path) -> None:
    log.write_bytes(b"")


def _damaged(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)


def _headless(log: Path) -> None:
    log.write_bytes(b"x" * 8 + log.read_bytes()[8:])


@pytest.mark.parametrize(
    ("change", "records", "state"),
    [
        (_cut, 3, "cut at "),
        (_torn, 4, "an unfinished record at "),
        (_zeros_behind, 4, "damaged at "),
        (_emptied, 0, "the head of the file is damaged"),
        (Path.unlink, 0, "missing"),
        (_damaged, 3, "damaged at "),
        (_headless, 0, "the head of the file is damaged"),
    ],
)
async def test_a_damaged_copy_says_where(
    store: SqliteStorage, tmp_path: Path, change: Changed, records: int, state: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "data", copy)
    change(next(copy.glob("entries-*.log")))
    found = only_file(inspect(copy))
    assert found[0] == records
    assert found[2].startswith(state)


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="holds no data of a broker; name the folder of serve --data"):
        inspect(tmp_path)
