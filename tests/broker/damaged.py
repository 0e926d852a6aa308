"""A data directory with a damaged row. Real stores have threads, which take real time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import trio.testing

from pulsarium.broker.storage.database import DATABASE_NAME


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(5000):
        if condition():
            return
        await trio.testing.wait_all_tasks_blocked(0.001)
    raise AssertionError("it does not come to that")


def flip(data: Path, entry: int) -> None:
    """Damage the row of an entry, or mend it again."""
    with closing(sqlite3.connect(data / DATABASE_NAME)) as connection, connection:
        key = f"(SELECT min(key) + {entry} FROM segment)"
        row = connection.execute(f"SELECT data FROM segment WHERE key = {key}").fetchone()[0]
        flipped = row[:-1] + bytes([row[-1] ^ 1])
        assert connection.execute(f"UPDATE segment SET data = ? WHERE key = {key}", (flipped,)).rowcount == 1
