"""Where a cursor stands after so many entries more."""

from __future__ import annotations

from pyroaring import BitMap

from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import Position


def nth_position(cursor: ManagedCursor, count: int, *, with_acked: bool = False) -> Position | None:
    """The `count`th unacknowledged entry, the last one when there are fewer; None when there is none.

    `with_acked` counts what was acknowledged behind the mark-delete position too.
    """
    mark = cursor.mark_delete
    found: Position | None = None
    for ledger in cursor.ledger.ledgers.values():
        if count <= 0:
            break
        if ledger.id < mark.ledger_id:
            continue
        waiting = BitMap(range(mark.entry_id + 1 if ledger.id == mark.ledger_id else 0, ledger.confirmed))
        acked = None if with_acked else cursor.holes.of(ledger.id)
        if acked is not None:
            waiting -= acked
        if waiting:
            found = Position(ledger.id, waiting[min(count, len(waiting)) - 1])
            count -= len(waiting)
    return found
