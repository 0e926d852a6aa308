"""Where a reader is in one topic, or partition."""

from __future__ import annotations

from pulsarium.client.consumer.start import Start
from pulsarium.client.consumer.topic_consumer import TopicConsumer
from pulsarium.client.message_id import MessageId


class Place:
    """What was read, what the broker may count as done, and whether there is more."""

    def __init__(self, consumer: TopicConsumer, acknowledge_every: int, *, inclusive: bool) -> None:
        """`inclusive`: a start at the latest message includes it."""
        self._consumer = consumer
        self._receiver = consumer.receiver
        self._acknowledge_every = acknowledge_every
        self._inclusive = inclusive
        self._last_read: MessageId | None = None
        self._read = 0

    def passed(self, message_id: MessageId) -> None:
        """This message was read."""
        previous, self._last_read = self._last_read, message_id
        self._read += 1
        if not self._receiver:
            self._done_with(message_id)
        elif previous is not None and self._read >= self._acknowledge_every and previous.entry != message_id.entry:
            self._done_with(previous)

    def _done_with(self, message_id: MessageId) -> None:
        self._read = 0
        self._consumer.read_through(message_id)

    def moved(self) -> None:
        """A seek begins anew."""
        self._last_read = None
        self._read = 0

    async def has_more(self) -> bool:
        """Whether there is a message to be read now: asks the broker for the last one, unless something waits here."""
        receiver = self._receiver
        if receiver:
            return True
        last, done = await self._consumer.last_message()
        start = receiver.start
        untouched = not receiver and receiver.last_seen is None and start is not None
        if untouched and self._inclusive and last.entry_id >= 0 and _is_latest(start):
            self.moved()  # from the last message on: only now is it known
            await self._consumer.seek(last)
            return True
        return self.is_before(last, done)

    def is_before(self, last: MessageId, done: MessageId | None) -> bool:
        """Whether something up to `last` is still to come or to be taken; `done` as the broker said with it."""
        receiver = self._receiver
        if receiver:
            return True
        if last.entry_id < 0:
            return False
        start, seen = receiver.start, receiver.last_seen
        if seen is not None and not (start is not None and start.is_behind(seen)):
            return last.entry > seen
        if start is None or start.rollback_duration or _is_latest(start):
            return done is None or last.entry > done.entry
        return start.is_before(last)


def _is_latest(start: Start | None) -> bool:
    return start is not None and start.message_id.entry == MessageId.latest.entry
