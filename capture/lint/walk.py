"""All connections of a capture, record by record."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress

from pulsarium.capture.file import CaptureError, Kind, Record
from pulsarium.capture.lint.checker import Checker, Seen
from pulsarium.capture.lint.shared import Shared

_CLOSED_KEPT = 1000  # connections: what was under way may come after the close


class Walk:
    """Feed it the records of a capture, in order."""

    def __init__(self, *, judging: bool = False, whole: bool = True) -> None:
        """`judging`: whether rules are looked at. `whole`: see `all_opened`; what is not known yet is found later."""
        self._judging = judging
        self._checkers: dict[int, Checker] = {}
        self._closed: deque[tuple[int, Checker]] = deque()
        self._shared = Shared(whole=whole)

    def feed(self, record: Record) -> tuple[Checker, Seen]:
        """What there is to say of it, and of its connection."""
        checker = self._checkers.get(record.connection)
        if checker is None or record.kind is Kind.OPENED:
            checker = self._checkers[record.connection] = Checker(self._shared, judging=self._judging)
        seen = checker.feed(record)
        if record.kind is Kind.CLOSED:
            self._closed.append((record.connection, checker))
            if len(self._closed) > _CLOSED_KEPT:
                self._forget(*self._closed.popleft())
        return checker, seen

    def end(self) -> Iterator[tuple[Checker, Seen]]:
        """What still waits on each connection."""
        for checker in self._checkers.values():
            yield checker, Seen(exchanges=checker.end())

    def _forget(self, connection: int, checker: Checker) -> None:
        if self._checkers.get(connection) is checker:  # not one that was opened since
            del self._checkers[connection]


def all_opened(records: Iterable[Record]) -> bool:
    """Whether every connection of a capture is in it from its opening on. What one that is not was sent before may be
    acknowledged on another one, long before the first is seen."""
    opened: set[int] = set()
    with suppress(CaptureError):  # as far as it can be read
        for record in records:
            if record.kind is Kind.OPENED:
                opened.add(record.connection)
            elif record.connection not in opened:
                return False
    return True
