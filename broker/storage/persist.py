"""Declare the persist points: the moments between which a crash makes a difference.

A store calls its hook at each point, on the thread that writes or copies the log. Crash tests kill the process in a
hook, and fault tests raise `sqlite3.Error` there.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto


class PersistPoint(Enum):
    """A point in the life of a transaction, in order."""

    WRITTEN = auto()
    """The open transaction has all changes, and no caller has an answer. A crash loses all changes. An error fails the
    transaction and every later batch of its era. But a transaction whose sync failed (--durability fsync) stays in the
    log until the next one overwrites it, and a crash before that restores it, although callers were told otherwise."""

    COMMITTED = auto()
    """The changes are durable, as the durability promises. No caller has an answer yet, but they survive a crash."""

    ACKNOWLEDGED = auto()
    """The event loop has the `done` calls. From here on, a loss would break a promise."""

    CHECKPOINT = auto()
    """The log is about to be copied into the database file, which changes nothing that can be read."""

    DELETION = auto()
    """The open transaction deletes a slice of a deleted ledger's rows. A crash only delays it: see `deletions.py`."""


Hook = Callable[[PersistPoint], None]


def pass_by(point: PersistPoint) -> None:
    """Do nothing, as the hook of every store outside of tests."""
