"""Sets of numbers and positions that follow each other: memory for the gaps, not for the members."""

from __future__ import annotations

from bisect import bisect_right

Position = tuple[int, int]


class Ranges:
    """A set of whole numbers."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []  # of the ranges that begin there, not part of them

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._starts)

    def __contains__(self, number: int | None) -> bool:
        if number is None:
            return False
        at = bisect_right(self._starts, number)
        return at > 0 and number < self._stops[at - 1]

    def add(self, number: int) -> None:
        if number in self:
            return
        starts, stops = self._starts, self._stops
        at = bisect_right(starts, number)
        follows, leads = at > 0 and stops[at - 1] == number, at < len(starts) and starts[at] == number + 1
        if follows and leads:
            del starts[at], stops[at - 1]
        elif follows:
            stops[at - 1] = number + 1
        elif leads:
            starts[at] = number
        else:
            starts.insert(at, number)
            stops.insert(at, number + 1)

    def discard(self, number: int) -> None:
        if number not in self:
            return
        starts, stops = self._starts, self._stops
        at = bisect_right(starts, number) - 1
        start, stop = starts[at], stops[at]
        parts = [part for part in ((start, number), (number + 1, stop)) if part[0] < part[1]]
        starts[at : at + 1] = [part[0] for part in parts]
        stops[at : at + 1] = [part[1] for part in parts]

    def forget_first(self) -> None:
        """The lowest range."""
        del self._starts[0], self._stops[0]


class Positions:
    """A set of (ledger id, entry id). last: the greatest there ever was, (-1, -1) before there is one."""

    def __init__(self) -> None:
        self._ledgers: dict[int, Ranges] = {}
        self.last: Position = (-1, -1)

    def __contains__(self, position: Position) -> bool:
        return position[1] in self._ledgers.get(position[0], ())

    def add(self, position: Position) -> None:
        self._ledgers.setdefault(position[0], Ranges()).add(position[1])
        self.last = max(self.last, position)

    def discard(self, position: Position) -> None:
        ranges = self._ledgers.get(position[0])
        if ranges is not None:
            ranges.discard(position[1])
            if not len(ranges):
                del self._ledgers[position[0]]
