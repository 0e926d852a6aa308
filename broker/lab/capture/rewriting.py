"""What a proxy has to change in a stream so that clients stay on it: where brokers say that a topic is. Sans-IO."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

Through = Callable[[str], str]
"""From the URL of a broker to that of the proxy for it."""

_MOST_FRAME = 128 << 20  # bytes; brokers may allow more than 5 MB, and memory follows what has arrived
_URLS = {"brokerServiceUrl", "assignedBrokerServiceUrl", "broker_service_url", "broker_url", "controller_broker_url"}


class Rewriter:
    """One way of a connection. What is no frame passes as it is, and so does everything behind it."""

    def __init__(self, through: Through | None = None) -> None:
        """`through`: for what brokers say; None: nothing is changed."""
        self._decoder = FrameDecoder(_MOST_FRAME)
        self._through = through
        self._held = bytearray()
        self._broken = False

    @property
    def held(self) -> bytes:
        """The beginning of a frame that has no end yet."""
        return bytes(self._held)

    def feed(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Whole frames as they came, and the bytes that go on now."""
        if self._broken:
            return [], data
        frames: list[bytes] = []
        going: list[bytes] = []
        for head, trailing in self._decoder.feed(data):
            changed = None if self._through is None else rewritten(head, self._through)
            frames.append(frame(head, trailing))
            going.append(frames[-1] if changed is None else frame(changed, trailing))
        self._held += data
        del self._held[: sum(map(len, frames))]
        if self._decoder.error is not None:
            self._broken = True
            frames.append(self.held)
            going.append(self.held)
            self._held.clear()
        return frames, data if self._through is None else b"".join(going)

    def end(self) -> bytes:
        """What goes on once nothing more comes."""
        return b"" if self._through is None else self.held


def rewritten(head: bytes, through: Through) -> bytes | None:
    """The command with each broker's URL in it led through; None if it has none."""
    if head[:1] == b"\x08" and head[1:2] < b"\x80" and int.from_bytes(head[1:2]) not in _TYPES:
        return None
    command = BaseCommand()
    try:
        command.ParseFromString(head)
    except DecodeError:
        return None
    # With proxy_through_service_url clients stay on the URL that they know, and name this one in their CONNECT.
    if command.lookupTopicResponse.proxy_through_service_url or not _lead(command, through):
        return None
    return command.SerializePartialToString()


def _lead(message: Any, through: Through) -> bool:
    changed = False
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                changed |= _lead(each, through)
        elif field.name in _URLS and isinstance(value, str) and value.startswith("pulsar://"):
            setattr(message, field.name, through(value))
            changed = True
    return changed


def _has_urls(described: Any, inside: frozenset[str] = frozenset()) -> bool:
    inside |= {described.full_name}
    return any(
        field.name in _URLS
        or (
            field.message_type is not None
            and field.message_type.full_name not in inside
            and _has_urls(field.message_type, inside)
        )
        for field in described.fields
    )


_TYPES = {
    field.number
    for field in BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None and _has_urls(field.message_type)
}
