"""How a consumer that asked for read_compacted gets its entries: retained ones up to the horizon, then the topic's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import Position


class CompactedTopic(Protocol):
    """The retained entries of a topic up to its horizon, with the positions that they had there."""

    @property
    def horizon(self) -> Position | None:
        """The last entry that compaction has seen; None when there was no compaction."""
        ...

    def read(self, start: Position, limit: int, ready: Callable[[], None]) -> list[tuple[Position, bytes]] | None:
        """At most `limit` retained entries from `start` on; [] when there are none.

        None: they are being loaded, `ready()` is called when they are there.
        """
        ...

    def last_entry(self) -> tuple[Position, bytes] | None:
        """The last retained entry; None when nothing was retained."""
        ...


def read_compacted(
    compacted: CompactedTopic, cursor: ManagedCursor, limit: int, ready: Callable[[], None]
) -> list[tuple[Position, bytes]] | None:
    """As `ManagedCursor.read`. Entries keep their positions, so the cursor stands where it would in the topic."""
    while (horizon := compacted.horizon) is not None and cursor.read_position <= horizon:
        entries = compacted.read(cursor.read_position, limit, ready)
        if entries is None:
            return None
        last = entries[-1][0] if entries else horizon
        cursor.read_position = Position(last.ledger_id, last.entry_id + 1)
        holes = cursor.holes
        found = [each for each in entries if each[0] not in holes] if holes else entries
        if found:
            return found
    return cursor.read(limit, ready)


def is_compacted_away(compacted: CompactedTopic, position: Position) -> bool:
    """Whether compaction saw an entry and did not keep it. False while nobody knows: that is being loaded."""
    if compacted.horizon is None or position > compacted.horizon:
        return False
    found = compacted.read(position, 1, lambda: None)
    return found is not None and (not found or found[0][0] != position)
