"""Deleting ledgers a slice at a time, so that no commit waits for more than one slice.

A ledger is marked deleted by the commit that deletes it, which hides it at once and for good. Its rows go afterwards;
a process that ends before that goes on when the store is opened again. Freed pages are used again; the file does not
shrink.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable

from pulsarium.broker.logs import Log
from pulsarium.broker.storage import segments
from pulsarium.broker.storage.database import transaction
from pulsarium.broker.storage.persist import Hook, PersistPoint, pass_by

log = Log("storage")


class Deletions:
    """The ledgers marked deleted in a database, which still have rows."""

    def __init__(self, connection: sqlite3.Connection, at: Hook = pass_by) -> None:
        self._connection = connection
        self._at = at
        self._left = deque(segments.marked_deleted(connection))
        self._next_key = 0  # of the first of them
        self._paused = False

    def add(self, ledger_ids: Iterable[int]) -> None:
        """Ledgers were marked."""
        self._left.extend(ledger_ids)

    def resume(self) -> None:
        """A transaction went well: one of ours may, too."""
        self._paused = False

    def step(self) -> bool:
        """Delete one slice. False: there was none to delete, or it failed and waits for `resume`.

        Damaged rows stay, and so does a ledger that is damaged otherwise; both are tried again by the next start.
        """
        if self._paused or not self._left:
            return False
        ledger_id = self._left[0]
        try:
            rows = segments.next_slice(self._connection, ledger_id, self._next_key)
            with transaction(self._connection):
                segments.delete_slice(self._connection, rows)
                self._at(PersistPoint.DELETION)
        except sqlite3.OperationalError as error:
            log.warning("deleting has to wait", ledger=ledger_id, reason=error)
            self._paused = True
            return False
        except Exception as error:  # also what is no database error, an id too large: the thread must live on
            log.error("a ledger cannot be deleted", ledger=ledger_id, reason=error)
            self._go_on(None)
            return True
        if rows.damaged:
            log.error("damaged rows of a deleted ledger stay", ledger=ledger_id, rows=rows.damaged)
        self._go_on(rows.next_key)
        return True

    def _go_on(self, next_key: int | None) -> None:
        if next_key is None:
            self._left.popleft()
        self._next_key = next_key or 0
