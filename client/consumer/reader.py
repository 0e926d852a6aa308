"""Read a topic from a position of the application's choice, without a durable subscription."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Generic

import anyio.lowlevel

from pulsarium.client.blocks import Closing
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ReaderOptions, TableViewOptions
from pulsarium.client.consumer.receiver import Onlooker
from pulsarium.client.consumer.start import Start
from pulsarium.client.consumer.topic_consumer import TopicConsumer
from pulsarium.client.core import Core
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.schema.schema import T


class ReaderPosition:
    """The position of a reader in one topic or partition."""

    def __init__(self, consumer: TopicConsumer, acknowledge_every: int, *, inclusive: bool) -> None:
        """Track the position of a consumer. With `inclusive`, a start at the latest message includes that message.

        The reader acknowledges at least every `acknowledge_every` messages.
        """
        self._consumer = consumer
        self._receiver = consumer.receiver
        self._acknowledge_every = acknowledge_every
        self._inclusive = inclusive
        self._last_read: MessageId | None = None
        self._read = 0

    def passed(self, message_id: MessageId) -> None:
        """Note that a message was read."""
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
        """Forget the position, because of a seek."""
        self._last_read = None
        self._read = 0

    async def has_more(self) -> bool:
        """Return whether a message can be read. Ask the broker for the last message, unless one is in the queue."""
        receiver = self._receiver
        if receiver:
            return True
        last, done = await self._consumer.last_message()
        start = receiver.start
        untouched = not receiver and receiver.last_seen is None and start is not None
        if untouched and self._inclusive and last.entry_id >= 0 and _is_latest(start):
            self.moved()  # the start is the last message, which is known only now
            await self._consumer.seek(last)
            return True
        return self.is_before(last, done)

    def is_before(self, last: MessageId, done: MessageId | None) -> bool:
        """Return whether the position is before the message `last`.

        `done` is the mark-delete position that the broker reported with `last`.
        """
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


TOGETHER = 32
"""The number of messages that are read without a checkpoint."""


class Reader(Closing, Generic[T]):
    """Read the messages of a topic in order, or in order for each partition. Made by `Client.create_reader`.

    A reader is open inside its `async with` block. When a connection is lost, the reader continues at its position.
    """

    def __init__(
        self, core: Core, options: ReaderOptions[T] | TableViewOptions[T], onlooker: Onlooker | None = None
    ) -> None:
        """Make a reader, without sending anything. Raise `InvalidTopicName` when `topic` is no topic name."""
        self._options = options
        self._consumer = Consumer(core, options.consumer_options(), options.start(), onlooker)
        self._places: dict[str, ReaderPosition] = {}

    async def __aenter__(self) -> Reader[T]:
        await self._consumer.__aenter__()
        return self

    def __aiter__(self) -> Reader[T]:
        return self

    async def __anext__(self) -> Message[T]:
        return self._passed(await self._consumer.__anext__())

    def __repr__(self) -> str:
        return f"<Reader of {self.topic()}>"

    def topic(self) -> str:
        """Return the full name of the topic."""
        return self._consumer.topic()

    async def read_next(self) -> Message[T]:
        """Return the next message, and wait for one if necessary.

        Raises:
            PulsarError: The errors of `Consumer.receive`.
        """
        return self._passed(await self._consumer.receive())

    async def _some(self) -> list[Message[T]]:
        """Return the messages that can be read now, at most TOGETHER, and wait for the first one."""
        found, inbox = [await self.read_next()], self._consumer._inbox
        while len(found) < TOGETHER and inbox and isinstance(inbox.head, Message):
            found.append(self._passed(self._consumer._take()))
        return found

    def _passed(self, message: Message[T]) -> Message[T]:
        places = self._places if message.topic_name() in self._places else self._all_places()
        places[message.topic_name()].passed(message.message_id())
        return message

    def _all_places(self) -> dict[str, ReaderPosition]:
        """Return the positions in all topics and partitions, new partitions included."""
        for part in self._consumer._parts.all:
            if part.topic not in self._places:
                every = max(1, self._options.receiver_queue_size // 2)
                self._places[part.topic] = ReaderPosition(
                    part, every, inclusive=self._options.start_message_id_inclusive
                )
        return self._places

    async def has_message_available(self) -> bool:
        """Return whether `read_next` returns a message at once (PIP-429).

        The reader asks the broker for the last message, unless one is in the queue. Messages that compaction removed do
        not count.

        Raises:
            PulsarError: The broker refused the request.
            Exception: Any exception of a `payload_to_message_id_converter`.
        """
        await anyio.lowlevel.checkpoint()
        if self._consumer._inbox:
            return True
        for place in list(self._all_places().values()):
            if await place.has_more():
                return True
        return False

    async def get_last_message_ids(self) -> list[MessageId]:
        """Return the id of the last message of each partition, as `Consumer.get_last_message_ids` does."""
        return await self._consumer.get_last_message_ids()

    async def seek(self, target: MessageId | datetime | int) -> None:
        """Move the reader to another position.

        The next message is the one after the target, or the target itself with `start_message_id_inclusive`. At a time,
        it is the first message that was published then or later.

        Args:
            target: A message id, a datetime, or milliseconds since the epoch.

        Raises:
            PulsarError: The broker refused the seek.
        """
        with self._moving():
            await self._consumer.seek(target)

    async def seek_to_index(self, index: int) -> None:
        """Move the reader to the message with this index.

        Args:
            index: An index, as `Message.index` returns it.

        Raises:
            PulsarError: The errors of `Consumer.seek_to_index`.
        """
        with self._moving():
            await self._consumer.seek_to_index(index)

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """Forget the positions before and after a seek, because another task may read during the seek."""
        for place in self._places.values():
            place.moved()
        yield
        for place in self._places.values():
            place.moved()

    async def aclose(self) -> None:
        """Close the reader. A second call does nothing."""
        await self._consumer.aclose()
