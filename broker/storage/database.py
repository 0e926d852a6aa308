"""The database file of a data directory: how it is opened, and what each durability asks of SQLite.

Durability, in WAL mode (a commit appends to the log; a checkpoint copies the log into the database file):

    none    synchronous=OFF     never syncs. Survives the process; a dead machine may leave a broken file.
    os      synchronous=NORMAL  syncs around checkpoints. Survives the process; a dead machine loses the last commits,
                                but what is left is a whole state of the store.
    fsync   synchronous=FULL    syncs the log on every commit, before anybody is told.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pulsarium.broker.config.version import VERSION
from pulsarium.broker.storage import segments
from pulsarium.broker.storage.interface import WRITTEN_BY, Durability, StorageError, code_of
from pulsarium.proto.entry import crc32c

DATABASE_NAME = "pulsarium.db"
PAGE_SIZE = 16384  # smaller: more CPU for runs; larger: more to write for a lone entry
CACHE_KIB = 1024  # a connection. Entries have their own cache, and the system has one of the file.
WAL_KEPT_BYTES = 64 << 20  # a log that a slow reader made longer is cut back to this
BUSY_MS = 5000  # somebody looks at the file with another tool

APPLICATION_ID = 0x50554C53  # "PULS"
SCHEMA_VERSION = 2  # older.py has those before
TABLES = f"""{segments.SCHEMA}
CREATE TABLE IF NOT EXISTS metadata
    (path TEXT PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
"""
_MAKE = f"{TABLES}PRAGMA application_id={APPLICATION_ID};PRAGMA user_version={SCHEMA_VERSION};"

_SYNCHRONOUS: dict[Durability, str] = {"none": "OFF", "os": "NORMAL", "fsync": "FULL"}


def open_database(path: Path, durability: Durability) -> sqlite3.Connection:
    """The one connection that writes, of a file that it makes if need be. Raises StorageError. What is in a file that
    was there, `probe` has looked at."""
    try:
        connection = _connect(path)
        try:
            _prepare(connection, path, durability)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise StorageError(f"cannot use {path}: {error}; {advice(error)}") from error
    return connection


def advice(error: sqlite3.Error) -> str:
    """What can be done about a database that cannot be opened."""
    return _ADVICE.get(code_of(error), "nothing in it was changed")


ELSEWHERE = "move it and its -wal away, then start with --restore SNAPSHOT, or empty"
_ADVICE = {
    sqlite3.SQLITE_NOTADB: "it is damaged, or no store: move it away, then start with --restore SNAPSHOT, or empty",
    sqlite3.SQLITE_CORRUPT: f"it is damaged: {ELSEWHERE}",
    sqlite3.SQLITE_CANTOPEN: "this user must be able to write the directory and all files in it",
    sqlite3.SQLITE_READONLY: "this user must be able to write the directory and all files in it",
    sqlite3.SQLITE_PERM: "this user must be able to write the directory and all files in it",
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_IOERR: "look after the disk, or for room on it; nothing in it was changed",
    sqlite3.SQLITE_BUSY: "another program has it open",
    sqlite3.SQLITE_LOCKED: "another program has it open",
}


def open_reader(path: Path) -> sqlite3.Connection:
    """One more connection to an open database. It can only read, and waits for no commit."""
    try:
        connection = _connect(path)
        connection.execute("PRAGMA query_only=ON")
    except sqlite3.Error as error:
        raise StorageError(f"cannot use {path}: {error}") from error
    return connection


def open_copier(path: Path, durability: Durability) -> sqlite3.Connection:
    """Open one more connection to an open database, which writes nothing of its own, but checkpoints."""
    try:
        connection = _connect(path)
        _sync(connection, durability)
        connection.execute(
            "SELECT count(*) FROM deleted_ledger"
        ).fetchone()  # it knows that there is a log from here on
    except sqlite3.Error as error:
        raise StorageError(f"cannot use {path}: {error}") from error
    return connection


def open_to_look(path: Path) -> sqlite3.Connection:
    """A connection to a database that nobody uses, which writes nothing, not even what the log holds."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)


def new_database(path: Path, page_size: int | None = None) -> sqlite3.Connection:
    """A database that is filled once, and of no use before it is whole: nothing is synced, nothing rolled back."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        if page_size is not None:
            connection.execute(f"PRAGMA page_size={page_size}")
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        connection.executescript(_MAKE)
    except BaseException:
        connection.close()
        raise
    return connection


def newer(connection: sqlite3.Connection, version: int) -> str:
    """Why a database of a newer format is refused; it may still say where today's does who wrote it."""
    try:
        row = connection.execute("SELECT value FROM metadata WHERE path = ?", (WRITTEN_BY,)).fetchone()
        writer = f"pulsarium {row[0].decode('ascii')}"
    except (sqlite3.Error, TypeError, AttributeError, ValueError):
        writer = "a newer pulsarium"
    return f"has format {version}, written by {writer}, and this one, {VERSION}, reads formats up to {SCHEMA_VERSION}"


def has_tables(connection: sqlite3.Connection, script: str) -> bool:
    """Return whether a database has the tables that a script makes, word for word."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(script)
        there, wanted = (set(each.execute("SELECT name, sql FROM sqlite_master")) for each in (connection, made))
    return there >= wanted


def metadata(connection: sqlite3.Connection) -> dict[str, bytes]:
    """All of it, by path. Raises StorageError for a damaged one."""
    kept: dict[str, bytes] = {}
    for path, value, checksum in connection.execute("SELECT path, value, checksum FROM metadata"):
        if not (isinstance(path, str) and isinstance(value, bytes)) or checksum != checksum_of(path, value):
            raise StorageError(f"what is kept at {path!r} is damaged")
        kept[path] = value
    return kept


def put_metadata(connection: sqlite3.Connection, kept: Iterable[tuple[str, bytes]]) -> None:
    """Keep these values, each in the place of what is at its path."""
    rows = ((path, value, checksum_of(path, value)) for path, value in kept)
    connection.executemany("INSERT OR REPLACE INTO metadata VALUES (?, ?, ?)", rows)


def checksum_of(path: str, value: bytes) -> int:
    """Of a piece of metadata and its path."""
    return crc32c(value, crc32c(path.encode()))


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


def _sync(connection: sqlite3.Connection, durability: Durability) -> None:
    connection.execute(f"PRAGMA synchronous={_SYNCHRONOUS[durability]}")
    if durability == "fsync":  # macOS syncs to the drive's own cache only, unless asked
        connection.execute("PRAGMA fullfsync=ON")
        connection.execute("PRAGMA checkpoint_fullfsync=ON")


def _prepare(connection: sqlite3.Connection, path: Path, durability: Durability) -> None:
    _sync(connection, durability)
    connection.execute(f"PRAGMA page_size={PAGE_SIZE}")  # has a say in a new file only
    is_new = not connection.execute("PRAGMA application_id").fetchone()[0]
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise StorageError(
            f"{path} is on a file system without shared memory maps, which the log needs: use a local one"
        )
    connection.execute("PRAGMA wal_autocheckpoint=0")  # would happen inside a commit; see committer.py
    connection.execute(f"PRAGMA journal_size_limit={WAL_KEPT_BYTES}")
    # A page that stands in the log would be written over when it changes again: killed then, that looks like damage.
    connection.execute("PRAGMA cache_spill=OFF")
    connection.execute("PRAGMA secure_delete=OFF")  # some builds overwrite what they delete, at 100 times the cost
    if is_new:
        connection.executescript(f"BEGIN;{_MAKE}COMMIT;")
