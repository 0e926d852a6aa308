"""Open the database file of a data directory, which has the metadata and the index of the entry log.

The durability of commits is that of the entry log:

    none    Never sync. Data survives the process; a machine crash may leave a damaged database.
    os      Data survives the process. A machine crash loses the last commits, and leaves a consistent earlier state.
    fsync   Sync the entry log on every commit, before any answer.

For `os` and `fsync`, the applier syncs the entry log before it brings commits into the database. So the database never
names entries that a machine crash has taken. SQLite syncs around its checkpoints (synchronous=NORMAL). A transaction
that a machine crash takes is still in the entry log, because no file of the log is deleted before SQLite's log is
synced.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pulsarium.broker.config.options import Durability
from pulsarium.broker.config.version import VERSION
from pulsarium.broker.storage import index, segments
from pulsarium.broker.storage.entry_log import RecordEnd
from pulsarium.broker.storage.interface import WRITTEN_BY, StorageError, code_of
from pulsarium.proto.entry import crc32c

DATABASE_NAME = "pulsarium.db"
PAGE_SIZE = 16384  # smaller pages take more CPU for runs; larger ones write more for a single entry
CACHE_KIB = 1024  # for each connection: entries have their own cache, and the system caches the file
WAL_BYTES = 8 << 20  # of SQLite's own log, after which a transaction copies it into the database
WAL_KEPT_BYTES = 64 << 20  # a log that a slow reader made longer is cut back to this size
BUSY_MS = 5000  # for another tool that has the file open

APPLICATION_ID = 0x50554C53  # "PULS"
SCHEMA_VERSION = 3
APPLIED = "/pulsarium/entry-log"  # the path of the applied file, offset and number of the next record
NEWEST = "/pulsarium/newest-log-file"  # the path of the number of the newest file of the log
TABLES = f"""{segments.SCHEMA}
CREATE TABLE IF NOT EXISTS metadata
    (path TEXT PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
{index.SCHEMA}"""
_MAKE = f"{TABLES}PRAGMA application_id={APPLICATION_ID};PRAGMA user_version={SCHEMA_VERSION};"


def open_database(path: Path, durability: Durability) -> sqlite3.Connection:
    """Open the one connection that writes, and create the file if needed. Raise `StorageError` on failure.

    `probe` has checked the contents of an existing file.
    """
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
    """Return advice about a database that cannot be opened."""
    return _ADVICE.get(code_of(error), "nothing in it was changed")


ELSEWHERE = "move it and its -wal away, then start with --restore SNAPSHOT, or empty"
_ADVICE = {
    sqlite3.SQLITE_NOTADB: "it is damaged, or no store: move it away, then start with --restore SNAPSHOT, or empty",
    sqlite3.SQLITE_CORRUPT: f"it is damaged: {ELSEWHERE}",
    sqlite3.SQLITE_CANTOPEN: "this user must be able to write the directory and all files in it",
    sqlite3.SQLITE_READONLY: "this user must be able to write the directory and all files in it",
    sqlite3.SQLITE_PERM: "this user must be able to write the directory and all files in it",
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_IOERR: "check the disk, and the room on it; nothing in it was changed",
    sqlite3.SQLITE_BUSY: "another program has it open: close that program",
    sqlite3.SQLITE_LOCKED: "another program has it open: close that program",
}


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a further connection that only reads, and waits for no commit."""
    try:
        connection = _connect(path)
        connection.execute("PRAGMA query_only=ON")
    except sqlite3.Error as error:
        raise StorageError(f"cannot use {path}: {error}") from error
    return connection


def open_to_look(path: Path, *, still: bool = False) -> sqlite3.Connection:
    """Open a connection to an unused database. It writes nothing, and does not copy the log either.

    With `still`, SQLite believes that nobody changes the file, and creates no files beside it.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if still else ''}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)


def new_database(path: Path) -> sqlite3.Connection:
    """Create a database that is filled once, and useless before it is complete: without syncs and rollbacks."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        connection.executescript(_MAKE)
    except BaseException:
        connection.close()
        raise
    return connection


def other_format(connection: sqlite3.Connection, version: int) -> str:
    """Return why a database of another format is refused, with the version that wrote it if readable."""
    try:
        row = connection.execute("SELECT value FROM metadata WHERE path = ?", (WRITTEN_BY,)).fetchone()
        writer = f"pulsarium {row[0].decode('ascii')}"
    except (sqlite3.Error, TypeError, AttributeError, ValueError):
        writer = "a newer pulsarium" if version > SCHEMA_VERSION else "a pulsarium before version 0.1.0"
    return f"has format {version}, written by {writer}, and this one, {VERSION}, reads format {SCHEMA_VERSION}"


def has_tables(connection: sqlite3.Connection, script: str) -> bool:
    """Return whether a database has exactly the tables that a script creates."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(script)
        there, wanted = (set(each.execute("SELECT name, sql FROM sqlite_master")) for each in (connection, made))
    return there >= wanted


def metadata(connection: sqlite3.Connection) -> dict[str, bytes]:
    """Return all metadata of the broker by path. Raise `StorageError` for a damaged value."""
    kept = _all_metadata(connection)
    for path in (APPLIED, NEWEST):
        kept.pop(path, None)
    return kept


def applied(connection: sqlite3.Connection) -> RecordEnd:
    """Return the place of the entry log up to which the database has the commits."""
    value = _value(connection, APPLIED)
    return RecordEnd() if value is None else RecordEnd(*map(int, value.split()))


def set_applied(connection: sqlite3.Connection, end: RecordEnd) -> None:
    put_metadata(connection, [(APPLIED, b"%d %d %d" % end)])


def newest(connection: sqlite3.Connection) -> int:
    """Return the number of the newest file of the entry log that the database knows, or 0."""
    return int(_value(connection, NEWEST) or b"0")


def set_newest(connection: sqlite3.Connection, number: int) -> None:
    put_metadata(connection, [(NEWEST, b"%d" % number)])


def _value(connection: sqlite3.Connection, path: str) -> bytes | None:
    row = connection.execute("SELECT path, value, checksum FROM metadata WHERE path = ?", (path,)).fetchone()
    if row is None:
        return None
    _check(*row)
    return bytes(row[1])


def _all_metadata(connection: sqlite3.Connection) -> dict[str, bytes]:
    kept: dict[str, bytes] = {}
    for path, value, checksum in connection.execute("SELECT path, value, checksum FROM metadata"):
        _check(path, value, checksum)
        kept[path] = value
    return kept


def _check(path: object, value: object, checksum: object) -> None:
    if not (isinstance(path, str) and isinstance(value, bytes)) or checksum != checksum_of(path, value):
        raise StorageError(f"the value at {path!r} is damaged")


def change_metadata(connection: sqlite3.Connection, changes: Mapping[str, bytes | None]) -> None:
    """Store these values, and delete the paths without one."""
    put_metadata(connection, ((path, value) for path, value in changes.items() if value is not None))
    gone = ((path,) for path, value in changes.items() if value is None)
    connection.executemany("DELETE FROM metadata WHERE path = ?", gone)


def put_metadata(connection: sqlite3.Connection, kept: Iterable[tuple[str, bytes]]) -> None:
    """Store these values, and replace earlier ones at their paths."""
    rows = ((path, value, checksum_of(path, value)) for path, value in kept)
    connection.executemany("INSERT OR REPLACE INTO metadata VALUES (?, ?, ?)", rows)


def checksum_of(path: str, value: bytes) -> int:
    """Return the checksum of a piece of metadata and its path."""
    return crc32c(value, crc32c(path.encode()))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything that happens inside, or nothing."""
    if connection.in_transaction:  # an earlier rollback failed
        connection.execute("ROLLBACK")
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite rolls back some errors by itself
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def _connect(path: Path) -> sqlite3.Connection:
    # isolation_level: transactions begin and end in visible statements. check_same_thread: the event loop opens a
    # connection, because it can report errors, and then hands it over to the one thread that uses it.
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    return connection


def _sync(connection: sqlite3.Connection, durability: Durability) -> None:
    connection.execute(f"PRAGMA synchronous={'OFF' if durability == 'none' else 'NORMAL'}")
    if durability == "fsync":  # without this, macOS syncs only to the cache of the drive
        connection.execute("PRAGMA fullfsync=ON")
        connection.execute("PRAGMA checkpoint_fullfsync=ON")


def _prepare(connection: sqlite3.Connection, path: Path, durability: Durability) -> None:
    _sync(connection, durability)
    connection.execute(f"PRAGMA page_size={PAGE_SIZE}")  # only a new file takes this
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise StorageError(
            f"{path} is on a file system without shared memory maps, which the log needs: use a local disk"
        )
    connection.execute(f"PRAGMA wal_autocheckpoint={WAL_BYTES // PAGE_SIZE}")
    connection.execute(f"PRAGMA journal_size_limit={WAL_KEPT_BYTES}")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens SQLite's log, under its current name
    # With cache spill, a changed page in the log would be overwritten, and a crash then would look like damage.
    connection.execute("PRAGMA cache_spill=OFF")
    connection.execute("PRAGMA secure_delete=OFF")  # some builds overwrite deleted data, which takes 100 times as long
    if not version:  # a new file
        connection.executescript(f"BEGIN;{_MAKE}COMMIT;")
