"""The messages that a stream consumer has delivered and the application has not acknowledged. Without tasks."""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.client.message_id import MessageId


class _Delivery(NamedTuple):
    number: int
    message_id: MessageId


class Deliveries:
    """Number the deliveries of all segments, so that one number is a position in each of them."""

    def __init__(self) -> None:
        self.last: int = 0
        """The number of the last delivery."""
        self._segments: dict[str, list[_Delivery]] = {}

    def add(self, segment: str, message_id: MessageId) -> int:
        """Note a delivery, and return its number."""
        self.last += 1
        self._segments.setdefault(segment, []).append(_Delivery(self.last, message_id))
        return self.last

    def through(self, number: int) -> dict[str, list[MessageId]]:
        """Return the messages of each segment that were delivered up to a number, in the order of their ids."""
        found = {
            segment: sorted(one.message_id for one in deliveries if one.number <= number)
            for segment, deliveries in self._segments.items()
        }
        return {segment: ids for segment, ids in found.items() if ids}

    def done(self, number: int, segment: str) -> None:
        """Forget the deliveries of a segment up to a number, because they are acknowledged."""
        left = [one for one in self._segments.get(segment, ()) if one.number > number]
        if left:
            self._segments[segment] = left
        else:
            self._segments.pop(segment, None)

    def forget(self, segment: str) -> None:
        """Forget the deliveries of a segment that the consumer has left."""
        self._segments.pop(segment, None)

    def __contains__(self, segment: str) -> bool:
        """Return whether a delivery of the segment is not acknowledged."""
        return segment in self._segments
