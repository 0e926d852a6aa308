"""A process that commits numbered batches, and prints the number of each, until it is killed or kills itself.

    python crash_child.py DIRECTORY DURABILITY WINDOW [POINT OCCURRENCE]

The process begins behind the last batch in the directory, and keeps WINDOW batches in flight. It kills itself at the
given occurrence of a persist point.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path

import trio

from pulsarium.broker.storage import applier, entry_log, index, segments
from pulsarium.broker.storage.interface import Batch, EntryRun
from pulsarium.broker.storage.persist import PersistPoint, pass_by
from pulsarium.broker.storage.sqlite import SqliteStorage

LEDGER = 1
LAST = "last"
LIFETIME = 5  # batches until a batch's own ledger is deleted


def entry_count(number: int) -> int:
    return 1 + number * 7 % 13


def first_entry(number: int) -> int:
    return sum(map(entry_count, range(number)))


def entries(number: int) -> list[bytes]:
    return [b"%d/%d " % (number, index) * (1 + number * 31 % 400) for index in range(entry_count(number))]


def own_ledger(number: int) -> int:
    return 1000 + number


def batch(number: int) -> Batch:
    """Build batch `number`: entries of the common ledger and of a ledger of its own, the deletion of an earlier batch's
    ledger, and its number as metadata."""
    kept = entries(number)
    return Batch(
        {
            LEDGER: [EntryRun(first_entry(number), kept)],
            own_ledger(number): [EntryRun(100 * each, kept) for each in range(4)],
        },
        {LAST: b"%d" % number},
        [own_ledger(number - LIFETIME)] if number >= LIFETIME else [],
    )


class KillAt:
    def __init__(self, point: PersistPoint, occurrence: int) -> None:
        self._point = point
        self._left = occurrence

    def __call__(self, point: PersistPoint) -> None:
        if point is self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


async def main(directory: str, durability: str, window: str, *kill_at: str) -> None:
    applier.APPLY_BYTES = 1 << 19
    applier.SOON_SECONDS = 0.001
    entry_log.LOG_BYTES = 1 << 18
    segments.SLICE_ROWS = 3
    index.ROW_PIECES = 1
    kill = KillAt(PersistPoint[kill_at[0]], int(kill_at[1])) if kill_at else pass_by
    assert durability in ("none", "os", "fsync")
    store = SqliteStorage(Path(directory), durability, at=kill)  # type: ignore[arg-type]
    next_number = int(store.load_metadata().get(LAST, b"-1")) + 1

    def commit_next() -> None:
        nonlocal next_number
        number = next_number
        next_number += 1

        def done(error: Exception | None) -> None:
            assert error is None
            os.write(1, b"%d\n" % number)
            commit_next()

        store.commit(batch(number), done)

    for _ in range(int(window)):
        commit_next()
    await store.run()


if __name__ == "__main__":
    trio.run(partial(main, *sys.argv[1:]))
