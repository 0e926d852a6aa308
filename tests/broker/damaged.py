"""Damage entries of a data directory, and wait in real time for the threads of its store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from pulsarium.broker.storage import index
from pulsarium.broker.storage.database import DATABASE_NAME, applied
from pulsarium.broker.storage.entry_log import Tail
from pulsarium.broker.storage.log_files import LogFiles
from pulsarium.broker.storage.record import ROW_HEAD_BYTES
from pulsarium.broker.storage.unapplied import recovered


def flip(data: Path, entry: int) -> None:
    """Change a bit of an entry of the first ledger, in the entry log. A second call mends the entry again."""
    with closing(sqlite3.connect(f"{(data / DATABASE_NAME).absolute().as_uri()}?mode=ro", uri=True)) as connection:
        files = LogFiles(data)
        unapplied = recovered(Tail(files, applied(connection)))
        ledger_id = min(unapplied.ledgers() | {key >> 32 for key, *_ in index.all_rows(connection)})
        indexed = index.pieces_of(connection, ledger_id, entry, entry)
    newest = unapplied.pieces(ledger_id, entry, entry)
    (piece,) = {each for each in (*indexed, *newest) if each.first <= entry < each.first + each.entries}
    with files.path(piece.file).open("r+b") as file:
        file.seek(piece.offset + ROW_HEAD_BYTES + piece.size - 1)
        (last,) = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([last ^ 1]))


def forget(data: Path, ledger_id: int, entry: int, *, count_only: bool = False) -> None:
    """Remove the row of an entry from the index. With `count_only`, only count one entry less in the row."""
    with closing(sqlite3.connect(data / DATABASE_NAME)) as connection, connection:
        kept = index.pieces_of(connection, ledger_id, 0, 1000)
        connection.execute("DELETE FROM run WHERE key >> 32 = ?", (ledger_id,))
        changed = [each._replace(entries=each.entries - 1) if each.first == entry else each for each in kept]
        index.add(connection, ledger_id, [each for each in changed if count_only or each.first != entry])
