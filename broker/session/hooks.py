"""Hooks by which a lab changes connections. Without a lab they cost nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from pulsarium.proto.commands import Direction

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session
    from pulsarium.proto.generated import PulsarApi_pb2 as pb

Frame = tuple[bytes, bytes]  # a serialized command, and the bytes behind it


class Tap(Protocol):
    """A tap between a session and its transport, through which every frame of both directions passes."""

    def incoming(self, frames: Iterable[Frame]) -> Iterable[Frame]:
        """Return the client's frames to handle now, given those that arrived."""
        ...

    def outgoing(self, data: bytes) -> bytes:
        """Return the bytes to write now, given whole frames of the broker."""
        ...

    @property
    def may_read(self) -> bool:
        """Return whether more frames of the client may be read."""
        ...

    @property
    def held(self) -> int:
        """Return the number of bytes for the client that the tap holds back."""
        ...

    def ended(self) -> None:
        """Handle or drop held frames, because the client sends no more."""
        ...

    def closed(self, sender: Direction, reason: str) -> None:
        """Note that `sender` ended the connection. "" as the reason is an orderly end."""
        ...


class Hooks(Protocol):
    """The calls from the broker to a lab."""

    def opened(self, session: Session) -> None:
        """Handle a new connection. The lab may give it a tap."""
        ...

    def connecting(self, session: Session, connect: pb.CommandConnect) -> None:
        """Handle an accepted CONNECT before its answer.

        The lab may give the session another profile, and change the client's fields in `connect`.
        """
        ...
