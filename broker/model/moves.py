"""The topics whose messages or clients moved, for whoever draws them over time. Without a listener, nothing is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Moving(Protocol):
    """A topic, which notes each of its moves once until somebody takes the note."""

    moved: bool


class Moves:
    """Topics that moved since they were taken, and names of topics that were deleted. A topic at rest costs nothing."""

    def __init__(self) -> None:
        self._moved: list[Moving] = []
        self._deleted: list[str] = []
        self._first: Callable[[], None] | None = None
        self.names = 0
        """A number that changes when a topic comes or goes."""

    def listen(self, first: Callable[[], None]) -> None:
        """Keep notes from now on. `first` is called with the first note after each `take`."""
        self._first = first

    def ignore(self) -> None:
        """Keep no more notes."""
        self._first = None
        self.take()

    def note(self, topic: Moving) -> None:
        """Note a topic, whose `moved` stays True until it is taken."""
        topic.moved = True
        self._noted()
        if self._first is not None:
            self._moved.append(topic)

    def meet(self, topic: Moving) -> None:
        """Note a topic that was loaded, and may be new."""
        self.names += 1
        self.note(topic)

    def forget(self, name: str) -> None:
        """Note that a topic was deleted."""
        self.names += 1
        self._noted()
        if self._first is not None:
            self._deleted.append(name)

    @property
    def are_noted(self) -> bool:
        """Return whether there is something to take."""
        return bool(self._moved or self._deleted)

    def _noted(self) -> None:
        if self._first is not None and not self.are_noted:
            self._first()

    def take(self) -> tuple[list[Moving], list[str]]:
        """Return the topics that moved, and the names of those that were deleted, since the last call."""
        moved, self._moved = self._moved, []
        deleted, self._deleted = self._deleted, []
        for each in moved:
            each.moved = False
        return moved, deleted
