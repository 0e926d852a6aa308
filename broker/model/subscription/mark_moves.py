"""Remember the moves of a subscription's mark-delete position, and their causes, for `pulsarium why`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pulsarium.broker.model.ledger.position import Position

KEPT_MOVES = 64  # moves of the mark-delete position that each subscription remembers


class MovedBy(Enum):
    """The cause of a move of the mark-delete position."""

    CUMULATIVE = "a cumulative acknowledgement"
    EXPIRED = "TTL or a request to expire messages"
    SKIPPED = "a request to skip messages, or to clear the backlog"
    EVICTED = "backlog quota or truncation"
    SEEK = "a seek or a reset of the cursor"
    UNREADABLE = "autoSkipNonRecoverableData, because the broker cannot read it,"


CUMULATIVE = MovedBy.CUMULATIVE  # a module constant, because access to an enumeration's member is slow


@dataclass(slots=True)
class MarkMove:
    """A move of the mark-delete position from `after` to `through`, at `ms` since the epoch.

    `ms` is 0 for an unknown time. With `some_acked`, consumers may have acknowledged some of the entries before.
    """

    by: MovedBy
    after: Position
    through: Position
    ms: int = 0
    some_acked: bool = False


class MarkMoves:
    """Moves of the mark-delete position since the topic was loaded. Kept in memory, for `pulsarium why`.

    Individual acknowledgements are no moves: a passed entry without a move was acknowledged.
    """

    __slots__ = ("_known", "forgotten", "start")

    def __init__(self, start: Position) -> None:
        self.start = start
        self.forgotten = start  # moves up to here are unknown
        self._known: deque[MarkMove] = deque()

    def note(self, by: MovedBy, after: Position, through: Position, ms: int = 0, *, some_acked: bool = False) -> None:
        """Record a move. Consecutive cumulative acknowledgements are one move."""
        known = self._known
        if known and by is CUMULATIVE is known[-1].by:
            known[-1].through = through
            known[-1].some_acked |= some_acked
        elif through > after:
            known.append(MarkMove(by, after, through, ms, some_acked))
            if len(known) > KEPT_MOVES:
                self.forgotten = known.popleft().through

    def sought(self, before: Position, mark: Position, ms: int, *, some_acked: bool = False) -> None:
        """Record a reset of the cursor from `before` to `mark`. A reset to the past forgets the moves behind `mark`."""
        if mark >= before:
            self.note(MovedBy.SEEK, before, mark, ms, some_acked=some_acked)
            return
        self.start, self.forgotten = min(self.start, mark), min(self.forgotten, mark)
        self._known = deque(each for each in self._known if each.after < mark)
        for each in self._known:
            each.through = min(each.through, mark)

    @property
    def known(self) -> Sequence[MarkMove]:
        """Return the remembered moves, the last one last."""
        return tuple(self._known)

    def of(self, position: Position) -> MarkMove | None:
        """Return the move that passed an entry, or None."""
        return next((each for each in reversed(self._known) if each.after < position <= each.through), None)
