"""Delete ledgers one slice at a time, so that other work of the applier waits for one slice at most.

The commit that deletes a ledger hides the ledger at once and for good, and its application marks the ledger as deleted.
The places of its entries in the log, and its rows, are deleted afterwards, and after a restart if need be. The database
reuses freed pages, and does not shrink. `reclaiming.py` gives back files of the log.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable

from pulsarium.broker.logs import PartLog
from pulsarium.broker.storage import index, segments
from pulsarium.broker.storage.database import transaction
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.persist import Hook, PersistPoint, pass_by

log = PartLog("storage")


class Deletions:
    """The ledgers that are marked as deleted, and still have rows."""

    def __init__(self, connection: sqlite3.Connection, at: Hook = pass_by) -> None:
        self._connection = connection
        self._at = at
        self._left = deque(segments.marked_deleted(connection))
        self._next_key = 0  # of the first ledger
        self._paused = False

    def add(self, ledger_ids: Iterable[int]) -> None:
        """Add ledgers that were marked as deleted."""
        self._left.extend(ledger_ids)

    def resume(self) -> None:
        """Continue after a successful transaction, because deletions may work again."""
        self._paused = False

    def step(self) -> bool:
        """Delete one slice. Return False when none is left, or a failure waits for `resume`.

        Damaged rows stay, and so do ledgers with other damage. The next start tries them again.
        """
        if self._paused or not self._left:
            return False
        ledger_id = self._left[0]
        try:
            with transaction(self._connection):
                in_log = index.delete_slice(self._connection, ledger_id)
                if in_log:
                    self._at(PersistPoint.DELETION)
            if in_log:
                return True
            rows = segments.next_slice(self._connection, ledger_id, self._next_key)
            with transaction(self._connection):
                segments.delete_slice(self._connection, rows)
                if rows.next_key is None and index.has(self._connection, ledger_id):
                    raise StorageError("the index of its entries is damaged")
                self._at(PersistPoint.DELETION)
        except sqlite3.OperationalError as error:
            log.warning("a deletion has to wait for the next one", ledger=ledger_id, reason=error)
            self._paused = True
            return False
        except Exception as error:  # any error, such as of an id too large, because the thread has to live on
            log.error("a ledger cannot be deleted: the next start tries again", ledger=ledger_id, reason=error)
            self._go_on(None)
            return True
        if rows.damaged:
            log.error(
                "damaged rows of a deleted ledger stay: the next start tries again", ledger=ledger_id, rows=rows.damaged
            )
        self._go_on(rows.next_key)
        return True

    def _go_on(self, next_key: int | None) -> None:
        if next_key is None:
            self._left.popleft()
        self._next_key = next_key or 0
