"""Where a lab may reach into connections; without one nothing of this is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from pulsarium.proto.commands import Direction

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session
    from pulsarium.proto.generated import PulsarApi_pb2 as pb

Frame = tuple[bytes, bytes]  # a serialized command, and what follows it


class Tap(Protocol):
    """Stands between a session and its transport; every frame of both ways goes through it."""

    def incoming(self, frames: Iterable[Frame]) -> Iterable[Frame]:
        """Frames of the client, as they came, to those that are handled now."""
        ...

    def outgoing(self, data: bytes) -> bytes:
        """Whole frames of the broker, one after the other, to the bytes that are written now."""
        ...

    @property
    def may_read(self) -> bool:
        """Whether more frames of the client are taken."""
        ...

    @property
    def held(self) -> int:
        """Bytes for the client that it keeps."""
        ...

    def ended(self) -> None:
        """The client sends nothing more: what was kept of it is handled now, or never."""
        ...

    def closed(self, sender: Direction, reason: str) -> None:
        """The connection ended, by `sender`; without a reason in order."""
        ...


class Hooks(Protocol):
    """What is asked of a lab."""

    def opened(self, session: Session) -> None:
        """A connection was accepted. May give it a tap."""
        ...

    def connecting(self, session: Session, connect: pb.CommandConnect) -> None:
        """Its CONNECT was accepted and is about to be answered. May give the session another profile, and change what
        the client says of itself."""
        ...
