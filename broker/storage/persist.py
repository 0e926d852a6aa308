"""Declare the persist points: the moments between which a crash makes a difference.

A store calls its hook at each point, on the thread that writes. Crash tests kill the process in a hook, and fault tests
raise an error there.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto


class PersistPoint(Enum):
    """A point in the life of a commit, in order, and of the work that follows later."""

    BEGUN = auto()
    """The record of a group of batches is about to be written. A crash loses all changes. An error fails the group, and
    every later batch of its era."""

    WRITTEN = auto()
    """The record of a group of batches is in the entry log, and no caller has an answer. With --durability fsync, the
    record is not synced yet. A crash may keep the record or not. An error cuts the record off, and fails the group as
    above. A crash before the cut is on the disk restores the record, although callers were told otherwise."""

    COMMITTED = auto()
    """The changes are durable, as the durability promises. No caller has an answer yet, but they survive a crash."""

    ACKNOWLEDGED = auto()
    """The event loop has the `done` calls. From here on, a loss would break a promise."""

    APPLYING = auto()
    """The open transaction brings commits of the log into the database. A crash leaves them to the next start."""

    DELETION = auto()
    """The open transaction deletes a slice of a deleted ledger. A crash only delays it: see `deletions.py`."""

    MOVING = auto()
    """The open transaction moves entries of a mostly dead log file into the database. A crash only delays it."""

    REMOVING = auto()
    """A log file of which nothing is needed is about to be deleted. A crash only delays it: see `reclaiming.py`."""


Hook = Callable[[PersistPoint], None]


def pass_by(point: PersistPoint) -> None:
    """Do nothing, as the hook of every store outside of tests."""
