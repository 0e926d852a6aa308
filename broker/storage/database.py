"""The database file of a data directory: how it is opened, and what each durability asks of SQLite.

Durability, in WAL mode (a commit appends to the log; a checkpoint copies the log into the database file):

    none    synchronous=OFF     never syncs. Survives the process; a dead machine may leave a broken file.
    os      synchronous=NORMAL  syncs around checkpoints. Survives the process; a dead machine loses the last commits,
                                but what is left is a whole state of the store.
    fsync   synchronous=FULL    syncs the log on every commit, before anybody is told.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.errors import StorageError
from pulsarium.broker.storage.interface import Durability

DATABASE_NAME = "pulsarium.db"
PAGE_SIZE = 16384  # smaller: more CPU for runs; larger: more to write for a lone entry
CACHE_KIB = 1024  # a connection. Entries have their own cache, and the system has one of the file.
WAL_KEPT_BYTES = 64 << 20  # a log that a slow reader made longer is cut back to this
BUSY_MS = 5000  # somebody looks at the file with another tool

APPLICATION_ID = 0x50554C53  # "PULS"
SCHEMA_VERSION = 1
SCHEMA = "CREATE TABLE IF NOT EXISTS metadata (path TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"

_SYNCHRONOUS: dict[Durability, str] = {"none": "OFF", "os": "NORMAL", "fsync": "FULL"}


def open_database(path: Path, durability: Durability) -> sqlite3.Connection:
    """The one connection that writes, of a file that it makes if need be. Raises StorageError, also for a file that is
    not ours."""
    try:
        connection = _connect(path)
        try:
            _prepare(connection, path, durability)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise StorageError(f"cannot use {path}: {error}") from error
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """One more connection to an open database. It can only read, and waits for no commit."""
    try:
        connection = _connect(path)
        connection.execute("PRAGMA query_only=ON")
    except sqlite3.Error as error:
        raise StorageError(f"cannot use {path}: {error}") from error
    return connection


def metadata(connection: sqlite3.Connection) -> dict[str, bytes]:
    """All of it, by path."""
    return dict(connection.execute("SELECT path, value FROM metadata"))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is done inside is committed, or nothing of it."""
    if connection.in_transaction:  # the last one could not even be rolled back
        connection.execute("ROLLBACK")
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back some errors by itself
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def _connect(path: Path) -> sqlite3.Connection:
    # isolation_level: transactions are begun and committed where one can see it. check_same_thread: a connection is
    # opened by the event loop, where errors have somebody to go to, then handed over to the one thread that uses it.
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, durability: Durability) -> None:
    connection.execute(f"PRAGMA synchronous={_SYNCHRONOUS[durability]}")
    if durability == "fsync":  # macOS syncs to the drive's own cache only, unless asked
        connection.execute("PRAGMA fullfsync=ON")
        connection.execute("PRAGMA checkpoint_fullfsync=ON")
    connection.execute(f"PRAGMA page_size={PAGE_SIZE}")  # has a say in a new file only
    application, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _HEADER)
    if (application, version) not in ((0, 0), (APPLICATION_ID, SCHEMA_VERSION)) or (
        application == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    ):
        raise StorageError(f"{path} is not a store of this pulsarium (version {version}, expected {SCHEMA_VERSION})")
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise StorageError(f"{path} is on a file system without shared memory maps, which the log needs")
    connection.execute("PRAGMA wal_autocheckpoint=0")  # would happen inside a commit; see committer.py
    connection.execute(f"PRAGMA journal_size_limit={WAL_KEPT_BYTES}")
    connection.execute("PRAGMA secure_delete=OFF")  # some builds overwrite what they delete, at 100 times the cost
    if application == 0:
        connection.executescript(
            f"BEGIN;{segments.SCHEMA}{SCHEMA}"
            f"PRAGMA application_id={APPLICATION_ID};PRAGMA user_version={SCHEMA_VERSION};COMMIT;"
        )


_HEADER = ("application_id", "user_version")
