"""Migration of a store of an older format to today's. A migration that fails leaves the old store as it was."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio

from pulsarium.broker.config import ServeOptions
from pulsarium.broker.server import open_core
from pulsarium.broker.storage import migration, older
from pulsarium.broker.storage.database import (
    APPLICATION_ID,
    DATABASE_NAME,
    PAGE_SIZE,
    SCHEMA_VERSION,
    new_database,
    open_to_look,
)
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.migration import Step
from pulsarium.broker.storage.place import LOCK_NAME, DirectoryLock
from pulsarium.broker.storage.segments import key_of, pack
from pulsarium.broker.storage.snapshot import Snapshot
from pulsarium.broker.storage.sqlite import SqliteStorage

KEPT_AS = f"{DATABASE_NAME}.format-1"
METADATA = {f"/path/{number}": b"%d" % number * number for number in range(50)}
ENTRIES = {ledger: [b"%d/%d " % (ledger, number) * 300 for number in range(120)] for ledger in (0, 3, 7)}
DELETED = 5
RUN = 8

Contents = tuple[dict[str, bytes], dict[int, list[bytes]]]


def fill(connection: sqlite3.Connection, ledger: int, entries: list[bytes]) -> None:
    for first in range(0, len(entries), RUN):
        run = entries[first : first + RUN]
        connection.execute("INSERT INTO segment VALUES (?, ?, ?)", (key_of(ledger, first), len(run), pack(run)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Create a folder of format 1 as `kill -9` leaves it: a part of the rows is only in the log."""
    made, directory = tmp_path / "made", tmp_path / "data"
    made.mkdir()
    with closing(sqlite3.connect(made / DATABASE_NAME, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(older.TABLES)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute("PRAGMA user_version=1")
        for ledger in ENTRIES:
            fill(connection, ledger, ENTRIES[ledger][:80])
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for ledger in ENTRIES:
            for first in range(80, 120, RUN):
                run = ENTRIES[ledger][first : first + RUN]
                connection.execute("INSERT INTO segment VALUES (?, ?, ?)", (key_of(ledger, first), RUN, pack(run)))
        fill(connection, DELETED, ENTRIES[0])
        connection.execute("INSERT INTO deleted_ledger VALUES (?)", (DELETED,))
        connection.executemany("INSERT INTO metadata VALUES (?, ?)", METADATA.items())
        shutil.copytree(made, directory)
    return directory


def files(directory: Path) -> dict[str, bytes]:
    """Return the files that a failed migration may not change, without the index and the empty log that a reader
    leaves."""
    left_out = (LOCK_NAME, f"{DATABASE_NAME}-shm")
    found = {path.name: path.read_bytes() for path in directory.iterdir() if path.name not in left_out}
    return {name: content for name, content in found.items() if content}


def served(directory: Path) -> Contents:
    """Return the metadata and the entries that the store has after the migration."""
    store = SqliteStorage(directory)
    try:
        entries = {ledger: store.read_now(ledger, 0, len(ENTRIES[ledger]) - 1) for ledger in ENTRIES}
        assert store.stored_runs(DELETED) == []
        return store.load_metadata(), entries
    finally:
        store.close()


def names(directory: Path) -> set[str]:
    """Return the names of the files, except for those that every reader of a database leaves."""
    return {path.name for path in directory.iterdir() if not path.name.endswith(("-wal", "-shm"))}


def format_of(path: Path) -> int:
    with closing(open_to_look(path)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version


def old_rows(path: Path) -> list[object]:
    """Return all metadata and all rows of a database of format 1."""
    with closing(open_to_look(path)) as connection:
        return [sorted(older.metadata(connection).items()), *older.rows(connection)]


def test_all_of_an_older_store_is_served(data: Path) -> None:
    before = old_rows(data / DATABASE_NAME)
    for _ in ("migrated", "opened again"):
        assert served(data) == (METADATA, ENTRIES)
    assert format_of(data / DATABASE_NAME) == SCHEMA_VERSION
    assert old_rows(data / KEPT_AS) == before
    assert names(data) == {DATABASE_NAME, KEPT_AS, LOCK_NAME}


KILLED = """
import os, signal, sys
from pathlib import Path
from pulsarium.broker.storage import migration
from pulsarium.broker.storage.sqlite import SqliteStorage
migration.SLICE_BYTES = 1
left = int(sys.argv[3])
def kill(step):
    global left
    left -= step.name == sys.argv[2]
    if step.name == sys.argv[2] and left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
SqliteStorage(Path(sys.argv[1]), migrating=kill)
"""


@pytest.mark.parametrize(("step", "nth"), [*((step, 1) for step in Step), (Step.SLICE, 20), (Step.SLICE, 60)])
def test_killed_anywhere_the_next_start_has_it_all(data: Path, step: Step, nth: int) -> None:
    before = old_rows(data / DATABASE_NAME)
    child = subprocess.run([sys.executable, "-P", "-c", KILLED, data, step.name, str(nth)], check=False, timeout=60)
    assert child.returncode == -signal.SIGKILL
    if step is not Step.REPLACED:
        assert format_of(data / DATABASE_NAME) == 1
        assert old_rows(data / DATABASE_NAME) == before
    assert served(data) == (METADATA, ENTRIES)
    assert old_rows(data / KEPT_AS) == before
    assert names(data) == {DATABASE_NAME, KEPT_AS, LOCK_NAME}


@pytest.mark.parametrize("step", [Step.BEGUN, Step.SLICE, Step.COPIED, Step.COMPARED])
def test_an_error_on_the_way_leaves_everything_as_it_was(
    data: Path, step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "SLICE_BYTES", 1)
    before = files(data)

    def fail(at: Step) -> None:
        if at is step:
            raise sqlite3.OperationalError("out of luck")

    with pytest.raises(StorageError, match=f"cannot migrate {data / DATABASE_NAME}: out of luck; nothing in it"):
        SqliteStorage(data, migrating=fail)
    assert files(data) == before
    DirectoryLock(data).release()


def test_a_disk_without_room_is_told_before_anything_is_written(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(data)
    size = sum(map(len, before.values()))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 40, 0, size))
    steps: list[Step] = []
    with pytest.raises(StorageError, match=r"takes \d+ MB of room on its disk, which has \d+ MB: make room, and start"):
        SqliteStorage(data, migrating=steps.append)
    assert (steps, files(data)) == ([], before)


def test_a_directory_in_use_is_not_migrated(data: Path) -> None:
    lock, before = DirectoryLock(data), files(data)
    with pytest.raises(StorageError, match="is in use by another pulsarium"):
        SqliteStorage(data)
    assert files(data) == before
    lock.release()


def test_a_database_that_another_program_reads_is_not_replaced(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "BUSY_MS", 0)
    with closing(sqlite3.connect(data / DATABASE_NAME, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM metadata").fetchone()
        with pytest.raises(StorageError, match="another program has it open; close that program, and start again"):
            SqliteStorage(data)
    assert format_of(data / DATABASE_NAME) == 1
    assert served(data) == (METADATA, ENTRIES)


ROW = key_of(3, RUN)


def swapped_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    one, other = (slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE) for page in (5, 9))
    content[one], content[other] = content[other], content[one]
    path.write_bytes(content)


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 3 * PAGE_SIZE)


def altered(statement: str) -> Callable[[Path], None]:
    def alter(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)

    return alter


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (altered(f"UPDATE segment SET data = x'0100' WHERE key = {ROW}"), "from ledger 3, entry 8 on are damaged"),
        (altered(f"UPDATE segment SET count = 7 WHERE key = {ROW}"), "from ledger 3, entry 8 on are damaged: not 7"),
        (altered(f"UPDATE segment SET data = 'text' WHERE key = {ROW}"), "from ledger 3, entry 8 on are damaged"),
        (altered("UPDATE metadata SET value = 'text' WHERE path = '/path/7'"), "the value at '/path/7' is damaged"),
        (swapped_pages, "is damaged: "),
        (cut_off, "is damaged: "),
    ],
    ids=["short", "miscounted", "no bytes", "metadata", "swapped", "cut off"],
)
def test_a_damaged_older_store_is_refused_and_left_alone(data: Path, damage: Callable[[Path], None], said: str) -> None:
    damage(data / DATABASE_NAME)
    before = files(data)
    with pytest.raises(StorageError) as refused:
        SqliteStorage(data)
    assert said in str(refused.value)
    assert "nothing in it was changed: start the pulsarium that wrote it" in str(refused.value)
    assert files(data) == before


def test_damage_of_a_deleted_ledger_is_nothing(data: Path) -> None:
    altered(f"UPDATE segment SET data = x'0100' WHERE key = {key_of(DELETED, 0)}")(data / DATABASE_NAME)
    assert served(data) == (METADATA, ENTRIES)


def test_a_copy_that_is_another_one_takes_no_place(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(data)

    def alter(step: Step) -> None:
        if step is Step.COPIED:
            altered("UPDATE segment SET checksum = 0 WHERE rowid = 0")(data / f"{DATABASE_NAME}.migrating")

    with pytest.raises(StorageError, match="its copy differs; check the disk"):
        SqliteStorage(data, migrating=alter)
    assert files(data) == before


def test_an_older_copy_is_not_written_over(data: Path) -> None:
    (data / KEPT_AS).write_bytes(b"of an earlier migration")
    assert served(data) == (METADATA, ENTRIES)
    assert (data / KEPT_AS).read_bytes() == b"of an earlier migration"
    assert format_of(data / f"{KEPT_AS}.2") == 1


def test_a_file_system_without_links_keeps_no_copy(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*names: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    caplog.set_level("INFO")
    assert served(data) == (METADATA, ENTRIES)
    assert "the old database is not kept" in caplog.text
    assert not (data / KEPT_AS).exists()


def test_progress_is_told_at_most_once_a_second(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = iter(number / 10 for number in range(1000))  # each slice takes a tenth of a second
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    monkeypatch.setattr(migration, "SLICE_BYTES", 1)
    caplog.set_level("INFO")
    SqliteStorage(data).close()
    first, *lines, last = [record.getMessage() for record in caplog.records if record.name == "pulsarium.storage"]
    assert first.startswith("the data has an older format: the broker migrates it")
    assert f"format=1 to={SCHEMA_VERSION}" in first
    assert last.startswith("migrated; the old database is kept")
    assert f"kept_as={data / KEPT_AS}" in last
    percents = [int(line.partition("percent=")[2].partition(" ")[0]) for line in lines]
    rows = 2 * sum(len(entries) // RUN for entries in ENTRIES.values())
    assert len(percents) in (rows // 10, rows // 10 - 1)
    assert percents == sorted(percents)
    assert percents[-1] <= 99


def test_a_small_migration_is_told_without_percents(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    SqliteStorage(data).close()
    assert "percent" not in caplog.text


async def test_a_signal_ends_a_migration(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(data)
    monkeypatch.setattr(migration, "SLICE_BYTES", 1)

    def make_and_cancel(path: Path, page_size: int) -> sqlite3.Connection:
        trio.from_thread.run_sync(scope.cancel)
        return new_database(path, page_size)

    monkeypatch.setattr(migration, "new_database", make_and_cancel)
    with trio.CancelScope() as scope:
        async with open_core(ServeOptions(data=data)):
            raise AssertionError("it goes on")
    assert scope.cancelled_caught
    assert files(data) == before
    DirectoryLock(data).release()


def test_a_snapshot_of_an_older_format_is_read(data: Path) -> None:
    before = files(data)
    with Snapshot(data / DATABASE_NAME) as snapshot:
        assert snapshot.metadata == METADATA
        found: dict[int, list[bytes]] = {}
        for ledger, run in snapshot.entries():
            found.setdefault(ledger, []).extend(run.entries)
    assert found == ENTRIES
    assert files(data) == before


def test_a_damaged_snapshot_of_an_older_format_is_refused_by_name(data: Path) -> None:
    altered(f"UPDATE segment SET count = 7 WHERE key = {ROW}")(data / DATABASE_NAME)
    with (
        Snapshot(data / DATABASE_NAME) as snapshot,
        pytest.raises(StorageError, match=rf"{DATABASE_NAME} is damaged: the entries from ledger 3, entry 8 on are"),
    ):
        list(snapshot.entries())
