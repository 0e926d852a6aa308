"""What the rest of the broker sees of a compacted topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

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
