"""What a store can fail with."""

from __future__ import annotations


class StorageError(Exception):
    """The store could not do what was asked: disk full, I/O error, damaged or foreign file, directory in use."""


class DamagedEntriesError(StorageError):
    """These entries of a ledger cannot be read, now or later. Those before and behind them can."""

    def __init__(self, text: str, ledger_id: int, first: int, last: int) -> None:
        super().__init__(text)
        self.ledger_id = ledger_id
        self.first = first
        self.last = last


def code_of(error: BaseException) -> int:
    """SQLite's primary result code, as sqlite3.SQLITE_FULL; 0 for what is no error of SQLite itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
