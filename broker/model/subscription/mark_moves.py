"""Tell how the mark-delete position of a subscription went past entries that nobody acknowledged one by one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum

from pulsarium.broker.model.ledger.position import Position

KEPT = 64  # the newest ones


class MovedBy(Enum):
    """Name who moved it."""

    CUMULATIVE = "a cumulative acknowledgement"
    EXPIRED = "TTL or a request to expire messages"
    SKIPPED = "a request to skip messages, or to clear the backlog"
    EVICTED = "backlog quota or truncation"
    SEEK = "a seek or a reset of the cursor"


CUMULATIVE = MovedBy.CUMULATIVE  # an enumeration is slow to ask


@dataclass(slots=True)
class MarkMove:
    """Tell that it went from `after` to `through`. `ms`: when, in ms since the epoch; 0 where nobody looked."""

    by: MovedBy
    after: Position
    through: Position
    ms: int


class MarkMoves:
    """Remember those since the topic was loaded, where the mark stood at `start`. In memory only, for "why"."""

    __slots__ = ("_known", "forgotten", "start")

    def __init__(self, start: Position) -> None:
        self.start = start
        self.forgotten = start  # of nothing up to here is known how
        self._known: deque[MarkMove] = deque()

    def note(self, by: MovedBy, after: Position, through: Position, ms: int = 0) -> None:
        """The mark moved. Cumulative acknowledgements in a row are one."""
        known = self._known
        if known and by is CUMULATIVE is known[-1].by:
            known[-1].through = through
        elif through > after:
            known.append(MarkMove(by, after, through, ms))
            if len(known) > KEPT:
                self.forgotten = known.popleft().through

    def sought(self, mark: Position, ms: int) -> None:
        """The cursor was reset: what was before it means nothing any more."""
        self._known.clear()
        self.start = self.forgotten = Position(-1, -1)
        self.note(MovedBy.SEEK, self.start, mark, ms)

    def of(self, position: Position) -> MarkMove | None:
        """The one that went past an entry."""
        return next((each for each in reversed(self._known) if each.after < position <= each.through), None)
