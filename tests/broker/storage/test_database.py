from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pulsarium.broker.config.options import Durability
from pulsarium.broker.storage.database import (
    DATABASE_NAME,
    PAGE_SIZE,
    SCHEMA_VERSION,
    WAL_BYTES,
    open_database,
    open_reader,
)
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.place import DirectoryLock
from pulsarium.broker.storage.sqlite import SqliteStorage


@pytest.mark.parametrize(("durability", "synchronous", "full"), [("none", 0, 0), ("os", 1, 0), ("fsync", 1, 1)])
def test_each_durability_syncs_as_it_says(tmp_path: Path, durability: Durability, synchronous: int, full: int) -> None:
    expected = {
        "synchronous": synchronous,
        "fullfsync": full,
        "checkpoint_fullfsync": full,
        "journal_mode": "wal",
        "page_size": PAGE_SIZE,
        "wal_autocheckpoint": WAL_BYTES // PAGE_SIZE,
        "secure_delete": 0,
    }
    for _ in ("new", "opened again"):
        connection = open_database(tmp_path / "db", durability)
        assert {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in expected} == expected
        connection.close()


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    writer = open_database(tmp_path / "db", "os")
    reader = open_reader(tmp_path / "db")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM metadata")
    reader.close()
    writer.close()


def text_file(path: Path) -> None:
    path.write_text("dear diary\n" * 100)


def other_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE diary (day)")
    connection.close()


def newer_store(path: Path) -> None:
    connection = open_database(path, "os")
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    connection.close()


def directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [text_file, other_database, newer_store, directory])
def test_a_foreign_file_is_refused_and_left_unchanged(tmp_path: Path, make: object) -> None:
    path = tmp_path / DATABASE_NAME
    assert callable(make)
    make(path)
    before = None if path.is_dir() else path.read_bytes()
    with pytest.raises(StorageError, match=str(path)):
        SqliteStorage(tmp_path)
    assert before is None or path.read_bytes() == before
    DirectoryLock(tmp_path).release()
