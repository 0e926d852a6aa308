"""The persist points: the moments between which a crash makes a difference.

A store calls its hook at each of them, on the thread that writes, or that copies the log. Crash tests kill the process
there, fault tests raise `sqlite3.Error` there.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto


class PersistPoint(Enum):
    """Where in the life of a transaction the committing thread is, in order."""

    WRITTEN = auto()
    """Everything is in the open transaction. A crash loses all of it, nobody was told; an error raised fails it, and
    every later batch of its era. But one whose sync failed (--durability fsync) stands in the log until the next is
    written over it: a crash before that brings it back, whatever was told."""

    COMMITTED = auto()
    """Durable as the durability promises. Nobody was told yet: after a crash here, it is there all the same."""

    ACKNOWLEDGED = auto()
    """The event loop has been handed the `done` calls. From here on, a loss would be a lie."""

    CHECKPOINT = auto()
    """The log is about to be copied into the database file. Changes nothing that can be read, before or after."""

    DELETION = auto()
    """A slice of a deleted ledger's rows is in the open transaction. Goes on after a crash; see `deletions.py`."""


Hook = Callable[[PersistPoint], None]


def pass_by(point: PersistPoint) -> None:
    """The hook of every store outside of tests."""
