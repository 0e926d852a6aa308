"""A position in all segments of a scalable topic."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pulsarium.client.errors import InvalidMessage
from pulsarium.client.message_id import MessageId
from pulsarium.client.scalable.layout import Layout

_REGULAR, _EARLIEST, _LATEST = 0, 1, 2  # the first byte
_HEAD = struct.Struct(">bqi")  # kind, creation in milliseconds since the epoch, number of segments
_ENTRY = struct.Struct(">qi")  # segment id, length of the serialized message id


@dataclass(frozen=True)
class Checkpoint:
    """A position in all segments of a topic, to store and to continue from. Applications need not know its content.

    `Checkpoint.earliest` is in front of all messages, `Checkpoint.latest` behind all messages.
    """

    _positions: Mapping[int, MessageId]
    created_at: int = field(default=0, compare=False)
    """Time of the checkpoint, in milliseconds since the epoch."""

    earliest: ClassVar[Checkpoint]
    latest: ClassVar[Checkpoint]

    def serialize(self) -> bytes:
        """Return the checkpoint as bytes to store, in the format of Pulsar's Java client."""
        if self is Checkpoint.earliest:
            return bytes([_EARLIEST])
        if self is Checkpoint.latest:
            return bytes([_LATEST])
        parts = [_HEAD.pack(_REGULAR, self.created_at, len(self._positions))]
        for segment_id, position in sorted(self._positions.items()):
            data = position.serialize()
            parts += [_ENTRY.pack(segment_id, len(data)), data]
        return b"".join(parts)

    @staticmethod
    def deserialize(data: bytes) -> Checkpoint:
        """Return the checkpoint in the bytes of `serialize`.

        Raises:
            InvalidMessage: The bytes are no checkpoint.
        """
        if data in (bytes([_EARLIEST]), bytes([_LATEST])):
            return Checkpoint.earliest if data[0] == _EARLIEST else Checkpoint.latest
        try:
            kind, created_at, count = _HEAD.unpack_from(data)
            at, positions = _HEAD.size, {}
            for _ in range(count):
                segment_id, size = _ENTRY.unpack_from(data, at)
                at += _ENTRY.size
                if size < 0 or at + size > len(data):
                    raise ValueError("it is cut off")
                positions[segment_id] = MessageId.deserialize(data[at : at + size])
                at += size
            if kind != _REGULAR or count < 0 or at != len(data):
                raise ValueError("its length or its kind is wrong")
        except (struct.error, ValueError) as error:
            raise InvalidMessage(f"the bytes are no checkpoint: {error}") from None
        return Checkpoint(positions, created_at)

    @staticmethod
    def at(positions: Mapping[int, MessageId]) -> Checkpoint:
        """Return a checkpoint of this moment."""
        return Checkpoint(dict(positions), time.time_ns() // 1_000_000)

    def start_of(self, segment_id: int, layout: Layout) -> MessageId | None:
        """Return the position in a segment, or None for a segment that was read to its end before the checkpoint.

        A segment that the checkpoint does not know is younger, unless the checkpoint knows one that came from it.
        """
        if self is Checkpoint.earliest:
            return MessageId.earliest
        if self is Checkpoint.latest:
            return MessageId.latest if layout.segments[segment_id].is_active else None
        if segment_id in self._positions:
            return self._positions[segment_id]
        was_before = layout.descendants(segment_id) & self._positions.keys()
        return None if was_before else MessageId.earliest


Checkpoint.earliest = Checkpoint({-1: MessageId.earliest})
Checkpoint.latest = Checkpoint({-1: MessageId.latest})
