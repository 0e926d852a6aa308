"""Rewrite the URLs of brokers in a stream, so that clients stay on the proxy. Sans-IO."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

Through = Callable[[str], str]
"""Map the URL of a broker to the URL of the proxy for that broker."""

_MOST_FRAME = 128 << 20  # bytes; brokers may allow more than 5 MB, and only bytes that arrived take memory
_URLS = {"brokerServiceUrl", "assignedBrokerServiceUrl", "broker_service_url", "broker_url", "controller_broker_url"}


class Rewriter:
    """Rewrite one direction of a connection. Bytes that are no frame pass unchanged, with all bytes behind them."""

    def __init__(self, through: Through | None = None) -> None:
        """Create a rewriter. `through` maps the URLs of brokers; None changes nothing."""
        self._decoder = FrameDecoder(_MOST_FRAME)
        self._through = through
        self._held = bytearray()
        self._broken = False

    @property
    def held(self) -> bytes:
        """Return the beginning of a frame that is not complete yet."""
        return bytes(self._held)

    def feed(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the complete frames as they came, and the bytes to send now."""
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
        """Return the bytes to send at the end of the stream."""
        return b"" if self._through is None else self.held


def rewritten(head: bytes, through: Through) -> bytes | None:
    """Return the command with each broker URL mapped by `through`, or None for a command without one."""
    if head[:1] == b"\x08" and head[1:2] < b"\x80" and int.from_bytes(head[1:2]) not in _TYPES:
        return None
    command = BaseCommand()
    try:
        command.ParseFromString(head)
    except DecodeError:
        return None
    # With proxy_through_service_url clients stay on the URL that they know, and name the broker's URL in CONNECT.
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
