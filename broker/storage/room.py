"""How much room a disk has left: a little is kept for what is not a message.

As a bookie that is almost full takes no entries but goes on reading and deleting (diskUsageThreshold): deleting topics,
acknowledging and loading a topic are commits too, and need room for the log.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

NO_ROOM = "The disk is almost full: no message is taken until there is room"
RESERVE_BYTES = 32 << 20  # a log, what a checkpoint adds to the database, and as much again
RESERVE_SHARE = 8  # of a small disk no more than this part


class Room:
    """The disk of a database file. Of the thread that has `connection`."""

    def __init__(self, connection: sqlite3.Connection, path: Path, page_size: int) -> None:
        self._connection = connection
        self._path = path
        self._page_size = page_size

    def is_short(self) -> bool:
        """Whether the reserve is touched. Pages of the database that are free are room, too, while the log has them."""
        try:
            disk = shutil.disk_usage(self._path.parent)
            pages, unused = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _COUNTS)
            to_grow = max(0, pages * self._page_size - _size(self._path))  # still in the log alone
        except (OSError, sqlite3.Error):  # no answer is no reason to refuse anything
            return False
        room = disk.free - to_grow
        again = min(unused * self._page_size, _size(self._path.with_name(f"{self._path.name}-wal")))
        reserve = min(RESERVE_BYTES, disk.total // RESERVE_SHARE)
        return bool(room + again < reserve)


_COUNTS = ("page_count", "freelist_count")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
