"""Damaged files of a data directory: the store refuses them and keeps them as they are, or serves what is sound."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from pulsarium.broker.config.version import VERSION
from pulsarium.broker.storage import index
from pulsarium.broker.storage.database import DATABASE_NAME, PAGE_SIZE, SCHEMA_VERSION, newest
from pulsarium.broker.storage.interface import WRITTEN_BY, Batch, DamagedEntriesError, EntryRun, StorageError
from pulsarium.broker.storage.log_files import file_name
from pulsarium.broker.storage.place import LOCK_NAME
from pulsarium.broker.storage.record import ROW_HEAD_BYTES
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.loopback import until
from tests.broker.storage.asking import ask, batch_of

WAL_NAME = f"{DATABASE_NAME}-wal"
LEDGERS, COMMITS = 5, 60
NEW_LEDGER = LEDGERS + 1
HEAVY_SEEDS = 200

Contents = dict[int, list[bytes]]


class Kept(NamedTuple):
    """A data directory as `kill -9` leaves it, with all entries, and the metadata after each commit."""

    directory: Path
    entries: Contents
    metadata: list[dict[str, bytes]]

    def copy(self, to: Path) -> Path:
        shutil.copytree(self.directory, to)
        return to


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Return a data directory. Half of its commits are in the index, the others only in the newest log file."""
    chance = random.Random(1)
    directory, copy = tmp_path_factory.mktemp("store"), tmp_path_factory.mktemp("kept") / "data"
    entries: Contents = {ledger: [] for ledger in range(LEDGERS)}
    metadata: list[dict[str, bytes]] = [{}]

    async def fill(store: SqliteStorage, commits: int) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            for _ in range(commits):
                ledger = chance.randrange(LEDGERS)
                added = [chance.randbytes(chance.choice((10, 1000, 40_000))) for _ in range(chance.randrange(1, 9))]
                run = EntryRun(len(entries[ledger]), added)
                changes: dict[str, bytes | None] = {"/last": b"%d" % len(metadata)}
                changes[f"/path/{chance.randrange(400)}"] = chance.randbytes(chance.choice((20, 300)))
                await ask(store.commit, Batch({ledger: [EntryRun(run.first_entry_id, list(added))]}, changes))
                entries[ledger] += added
                metadata.append({**metadata[-1], **{path: value for path, value in changes.items() if value}})
            if not copy.exists() and len(metadata) > COMMITS:
                with closing(sqlite3.connect(directory / DATABASE_NAME)) as reader:
                    await until(lambda: file_name(newest(reader)) == newest_file(directory).name)
                shutil.copytree(directory, copy)
            nursery.cancel_scope.cancel()

    for _ in range(2):  # closing the first store brings its half into the index
        trio.run(fill, SqliteStorage(directory), COMMITS // 2)
    return Kept(copy, entries, metadata)


# kinds of damage


def truncated(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def cut_at_a_page(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data) // PAGE_SIZE) * PAGE_SIZE :]


def bits_flipped(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 2, 20, 500))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def header_flipped(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(100)] ^= 1 << chance.randrange(8)


def page_header_flipped(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data) // PAGE_SIZE) * PAGE_SIZE + chance.randrange(40)] ^= 1 << chance.randrange(8)


def overwritten(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data))
    stop = min(len(data), start + chance.choice((1, 16, 512, PAGE_SIZE, 5 * PAGE_SIZE)))
    data[start:stop] = chance.randbytes(stop - start) if chance.random() < 0.5 else bytes(stop - start)


def pages_swapped(data: bytearray, chance: random.Random) -> None:
    one, other = (slice(n * PAGE_SIZE, (n + 1) * PAGE_SIZE) for n in chance.sample(range(1, len(data) // PAGE_SIZE), 2))
    data[one], data[other] = data[other], data[one]


def emptied(data: bytearray, chance: random.Random) -> None:
    data.clear()


KINDS = (
    truncated,
    cut_at_a_page,
    bits_flipped,
    header_flipped,
    page_header_flipped,
    overwritten,
    pages_swapped,
    emptied,
)


def damage(path: Path, kind: Callable[[bytearray, random.Random], None], chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    kind(data, chance)
    path.write_bytes(data)


def files(directory: Path) -> dict[str, bytes]:
    """Return the files that a refusal may not change: all but the lock and SQLite's index, which every process makes
    anew."""
    left_out = (LOCK_NAME, f"{DATABASE_NAME}-shm")
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name not in left_out}


def readable(store: SqliteStorage, kept: Kept) -> set[tuple[int, int]]:
    """Return the entries that can be read, which must be as they were stored. All others must be refused."""
    found = set()
    for ledger, entries in kept.entries.items():
        with suppress(StorageError):
            runs = store.stored_runs(ledger)
            assert all(isinstance(number, int) for run in runs for number in run)
        for number, entry in enumerate(entries):
            with suppress(StorageError):
                assert store.read_now(ledger, number, number) == [entry]
                found.add((ledger, number))
    return found


async def go_on(store: SqliteStorage) -> None:
    """Make one more commit, if the store takes it, and close the store."""
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        with suppress(StorageError), trio.fail_after(30):
            await ask(store.commit, batch_of(NEW_LEDGER, len(store.stored_runs(NEW_LEDGER)), b"new"))
        nursery.cancel_scope.cancel()


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(HEAVY_SEEDS))
def test_nothing_damaged_is_taken_for_good(kept: Kept, tmp_path: Path, seed: int) -> None:
    check_damage(kept, tmp_path, seed)


@pytest.mark.parametrize("seed", range(HEAVY_SEEDS, HEAVY_SEEDS + 4 * len(KINDS)))
def test_each_kind_of_damage(kept: Kept, tmp_path: Path, seed: int) -> None:
    check_damage(kept, tmp_path, seed)


def check_damage(kept: Kept, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    directory = kept.copy(tmp_path / "data")
    chosen = (directory / DATABASE_NAME, directory / WAL_NAME, *sorted(directory.glob("entries-*.log")))
    path = chosen[seed // len(KINDS) % len(chosen)]
    damage(path if path.stat().st_size > 5 * PAGE_SIZE else chosen[0], KINDS[seed % len(KINDS)], chance)
    before = files(directory)
    said, store = "", None
    try:
        store = SqliteStorage(directory)
    except StorageError as error:
        said = str(error)
    if store is None:
        after = files(directory)
        assert {name: after[name] for name in before} == before
        assert str(directory) in said
        assert "\n" not in said
        return
    assert store.load_metadata() in kept.metadata
    found = readable(store, kept)
    trio.run(go_on, store)
    with suppress(StorageError):  # SQLite finds more damage when it writes
        again = SqliteStorage(directory)
        try:
            assert readable(again, kept) == found
        finally:
            again.close()


# outcomes, by the kind of damage


def refusal(directory: Path) -> str:
    """Return the error of a store that does not open, and check that no file has changed."""
    before = files(directory)
    with pytest.raises(StorageError) as refused:
        SqliteStorage(directory)
    after = files(directory)
    assert {name: after[name] for name in before} == before
    return str(refused.value)


def changed(directory: Path, statement: str) -> Path:
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as connection:
        connection.executescript(statement)
    return directory


def test_an_empty_database_with_a_log(kept: Kept, tmp_path: Path) -> None:
    directory = kept.copy(tmp_path / "data")
    (directory / DATABASE_NAME).write_bytes(b"")
    assert "is empty, but its log is there" in refusal(directory)
    (directory / DATABASE_NAME).unlink()
    assert "is missing, but its log is there" in refusal(directory)


def test_an_empty_file_is_a_new_store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / DATABASE_NAME).touch()
    SqliteStorage(tmp_path).close()
    assert "was empty" in caplog.text


def unborn(directory: Path, pages_before: int) -> Path:
    """Return the directory as `kill -9` leaves it while SQLite creates a database. The file had `pages_before` pages
    before."""
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as connection:
        connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode=WAL")
    assert (directory / DATABASE_NAME).stat().st_size == PAGE_SIZE
    header = struct.pack(">8s5I", bytes.fromhex("d9d505f920a163d7"), 0, 1, pages_before, 512, PAGE_SIZE)
    (directory / f"{DATABASE_NAME}-journal").write_bytes(header.ljust(512, b"\0"))
    return directory


async def test_a_file_that_was_not_yet_a_database_is_a_new_store(tmp_path: Path, nursery: trio.Nursery) -> None:
    store = SqliteStorage(unborn(tmp_path, 0))
    await nursery.start(store.run)
    await ask(store.commit, batch_of(1, 0, b"x"))
    assert store.read_now(1, 0, 0) == [b"x"]
    assert not (tmp_path / f"{DATABASE_NAME}-journal").exists()


def test_a_file_that_was_one_before_its_journal(tmp_path: Path) -> None:
    assert "cannot use" in refusal(unborn(tmp_path, 1))


def test_a_newer_format_is_refused_with_the_version_that_wrote_it(kept: Kept, tmp_path: Path) -> None:
    newer = f"PRAGMA user_version={SCHEMA_VERSION + 1};"
    unnamed = changed(kept.copy(tmp_path / "unnamed"), newer)
    assert f"has format {SCHEMA_VERSION + 1}, written by a newer pulsarium, and this one, " in refusal(unnamed)
    named = f"{newer} INSERT INTO metadata VALUES ('{WRITTEN_BY}', CAST('9.9.1' AS BLOB), 0)"
    said = refusal(changed(kept.copy(tmp_path / "named"), named))
    assert f"written by pulsarium 9.9.1, and this one, {VERSION}, reads format {SCHEMA_VERSION}: start" in said
    moved = f"{newer} DROP TABLE metadata"
    assert "written by a newer pulsarium" in refusal(changed(kept.copy(tmp_path / "moved"), moved))


@pytest.mark.parametrize("version", range(SCHEMA_VERSION))
def test_an_older_format_is_refused(kept: Kept, tmp_path: Path, version: int) -> None:
    directory = changed(kept.copy(tmp_path / "data"), f"PRAGMA user_version={version}")
    said = f"has format {version}, written by a pulsarium before version 0.1.0, and this one, {VERSION}, reads format"
    assert said in refusal(directory)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE metadata SET value = x'00' WHERE path = '/last'",
        "UPDATE metadata SET path = '/lost' WHERE path = '/last'",
        "UPDATE metadata SET value = 'a text'",
        "DROP TABLE segment",
        "DROP TABLE metadata",
    ],
)
def test_damaged_metadata_are_refused_with_what_can_be_done(kept: Kept, tmp_path: Path, statement: str) -> None:
    directory = changed(kept.copy(tmp_path / "data"), statement)
    said = refusal(directory)
    assert said.startswith(f"{directory / DATABASE_NAME} is damaged: ")
    assert "--restore SNAPSHOT" in said


def test_a_damaged_entry_takes_no_other_commit_with_it(kept: Kept, tmp_path: Path) -> None:
    directory = kept.copy(tmp_path / "data")
    store = SqliteStorage(directory)
    pieces = [(ledger, each) for ledger in kept.entries for each in index.pieces_of(store._connection, ledger, 0, 9999)]
    store.close()
    ledger, piece = min(pieces, key=lambda each: each[1][2:])
    with (directory / file_name(piece.file)).open("r+b") as file:
        file.seek(piece.offset + ROW_HEAD_BYTES + piece.size - 1)
        (last,) = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([last ^ 1]))
    store = SqliteStorage(directory)
    everything = {(each, number) for each, entries in kept.entries.items() for number in range(len(entries))}
    damaged = range(piece.first, piece.first + piece.entries)
    assert everything - readable(store, kept) == {(ledger, number) for number in damaged}
    with pytest.raises(DamagedEntriesError, match=f"ledger {ledger}: damaged entries from {piece.first} on") as raised:
        store.read_now(ledger, 0, len(kept.entries[ledger]) - 1)
    assert (raised.value.first, raised.value.last) == (damaged[0], damaged[-1])
    store.close()


def newest_file(directory: Path) -> Path:
    return max(directory.glob("entries-*.log"))


def test_commits_that_a_damaged_log_loses_are_told_and_kept(
    kept: Kept, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = kept.copy(tmp_path / "data")
    log = newest_file(directory)
    SqliteStorage(kept.copy(tmp_path / "whole")).close()
    assert "damaged" not in caplog.text
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    store = SqliteStorage(directory)
    assert store.load_metadata() in kept.metadata[:-1]
    store.close()
    assert "the entry log is damaged: commits are lost" in caplog.text
    assert log.with_name(f"{log.name}.damaged").read_bytes() == data


def test_a_commit_that_was_being_written_is_no_damage(
    kept: Kept, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = kept.copy(tmp_path / "data")
    log = newest_file(directory)
    log.write_bytes(log.read_bytes()[:-1])
    store = SqliteStorage(directory)
    assert store.load_metadata() == kept.metadata[-2]
    store.close()
    assert "damaged" not in caplog.text
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("the entry log ends with an unfinished record: nothing is lost, unless the file was cut")
    assert f"file={log} offset=" in line


def emptied_file(log: Path) -> None:
    log.write_bytes(b"")


def zeroed(log: Path) -> None:
    log.write_bytes(bytes(log.stat().st_size))


def last_byte_flipped(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)


@pytest.mark.parametrize("happens", [Path.unlink, emptied_file, zeroed, last_byte_flipped])
async def test_commits_that_the_newest_file_loses_are_told_at_the_next_start_and_not_again(
    kept: Kept,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    happens: Callable[[Path], None],
) -> None:
    directory = kept.copy(tmp_path / "data")
    happens(newest_file(directory))
    for told in (1, 0):
        caplog.clear()
        store = SqliteStorage(directory)
        assert store.has_lost_commits == bool(told)
        assert caplog.text.count("commits are lost") == told
        assert store.load_metadata() in kept.metadata[:-1]
        await go_on(store)


@pytest.mark.parametrize("name", [DATABASE_NAME, WAL_NAME, ""])
def test_a_file_without_write_permission_is_refused(
    kept: Kept, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = kept.copy(tmp_path / "data")
    read_only = directory / name  # root may write despite the permission bits
    monkeypatch.setattr("os.access", lambda path, mode: path != read_only)
    assert f"cannot write {read_only}; let this user write it: sudo chown -R {os.getuid()} {directory}" in refusal(
        directory
    )
