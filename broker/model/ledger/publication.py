"""An entry on its way into a managed ledger, and who waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pulsarium.broker.model.ledger.position import Position


class Pending(NamedTuple):
    """An appended entry that is not committed yet."""

    publication: Publication
    position: Position
    sequence_id: int
    highest_sequence_id: int


class Publication(Protocol):
    """What waits for entries to be committed. Each call answers a run of its own entries, in order."""

    def persisted(self, entries: Sequence[Pending]) -> None: ...

    def failed(self, entries: Sequence[Pending], error: Exception) -> None: ...

    def forgotten(self, entries: Sequence[Pending]) -> None:
        """They are committed, but their topic is being deleted: nobody waits for the answers any more."""
        ...


class Unwatched:
    """Nobody waits for the single entry: whoever wrote it waits for the commit, or does not care."""

    def persisted(self, entries: Sequence[Pending]) -> None:
        """There is nobody to tell."""

    def forgotten(self, entries: Sequence[Pending]) -> None:
        """The same."""

    def failed(self, entries: Sequence[Pending], error: Exception) -> None:
        """The turn tells of it."""


class LedgerFencedError(Exception):
    """A commit failed; the managed ledger takes no more entries until its topic is loaded again."""


class LedgerTerminatedError(Exception):
    """The managed ledger was terminated: it takes no more entries, ever."""
