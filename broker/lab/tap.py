"""A connection as the lab sees it: every frame of both ways, for observers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import frame

if TYPE_CHECKING:
    from pulsarium.broker.lab.lab import Lab
    from pulsarium.broker.session.hooks import Frame
    from pulsarium.broker.session.session import Session

UNTOUCHED: Mapping[str, Any] = {}


class Observer(Protocol):
    """Is shown what happens on connections; must not change anything."""

    def opened(self, tap: SessionTap) -> None:
        """A connection was opened, or was open when the observer came."""
        ...

    def frame(self, tap: SessionTap, sender: Direction, data: bytes, note: Mapping[str, Any]) -> None:
        """A frame went over the wire, from its length word on; `note`: what a fault did to it, or nothing."""
        ...

    def closed(self, tap: SessionTap, sender: Direction, reason: str) -> None:
        """A connection ended."""
        ...


class SessionTap:
    """Between one session and its transport."""

    def __init__(self, lab: Lab, session: Session, number: int) -> None:
        self.lab = lab
        self.session = session
        self.number = number
        """Of the connection, never used before in this cluster."""

    def incoming(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        for head, trailing in frames:
            self._show(Direction.CLIENT, frame(head, trailing))
            yield head, trailing

    def outgoing(self, data: bytes) -> bytes:
        for each in split(data):
            self._show(Direction.BROKER, each)
        return data

    def closed(self, sender: Direction, reason: str) -> None:
        for observer in self.lab.observers:
            observer.closed(self, sender, reason)

    def remove(self) -> None:
        """Let frames pass by from now on."""
        self.session.outgoing.tap = None

    def _show(self, sender: Direction, data: bytes, note: Mapping[str, Any] = UNTOUCHED) -> None:
        for observer in self.lab.observers:
            observer.frame(self, sender, data, note)


def split(data: bytes) -> Iterator[bytes]:
    """Whole frames, one after the other."""
    start = 0
    while start < len(data):
        stop = start + 4 + int.from_bytes(data[start : start + 4], "big")
        yield data[start:stop]
        start = stop
