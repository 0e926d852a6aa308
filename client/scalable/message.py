"""Messages of scalable topics."""

from __future__ import annotations

from typing import Any

from pulsarium.client.message import Message
from pulsarium.client.schema.schema import T


class ScalableMessage(Message[T]):
    """A message of a scalable topic. Its id is that in its segment. `topic_name` is the canonical name of the topic."""

    __slots__ = ("_delivery", "_segment_id")

    _delivery: int
    _segment_id: int

    @staticmethod
    def of(message: Message[Any], topic: str, segment_id: int, delivery: int) -> ScalableMessage[Any]:
        """Return a message of a segment as a message of the topic.

        `delivery` is the message's place among all deliveries of its consumer.
        """
        made: ScalableMessage[Any] = ScalableMessage.__new__(ScalableMessage)
        for name in Message.__slots__:
            setattr(made, name, getattr(message, name))
        made._topic = topic
        made._segment_id = segment_id
        made._delivery = delivery
        return made

    def segment_id(self) -> int:
        """Return the id of the segment that has the message."""
        return self._segment_id
