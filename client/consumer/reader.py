"""A reader: goes through a topic from a place of its own choice, without a subscription that lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Generic

import anyio.lowlevel

from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.inbox import Onlooker
from pulsarium.client.consumer.options import ReaderOptions, TableViewOptions
from pulsarium.client.consumer.start import Start
from pulsarium.client.consumer.topic_consumer import TopicConsumer
from pulsarium.client.core import Core
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.schema.schema import T


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


TOGETHER = 32
"""Messages after which others have their turn."""


class Reader(Generic[T]):
    """Reads the messages of a topic in their order, of each partition in its own; made by `Client.create_reader`.

    It is open inside its `async with`. When its connection is lost it goes on where it was.
    """

    def __init__(
        self, core: Core, options: ReaderOptions[T] | TableViewOptions[T], onlooker: Onlooker | None = None
    ) -> None:
        """Nothing is sent yet. InvalidTopicName if `topic` is no name."""
        self._options = options
        self._consumer = Consumer(core, options.consumer_options(), options.start(), onlooker)
        self._places: dict[str, Place] = {}

    async def __aenter__(self) -> Reader[T]:
        await self._consumer.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._consumer.aclose()

    def __aiter__(self) -> Reader[T]:
        return self

    async def __anext__(self) -> Message[T]:
        return self._passed(await self._consumer.__anext__())

    def topic(self) -> str:
        """The topic, in full."""
        return self._consumer.topic()

    async def read_next(self) -> Message[T]:
        """The next message, as soon as there is one; raises as `Consumer.receive` does."""
        return self._passed(await self._consumer.receive())

    async def _some(self) -> list[Message[T]]:
        """Return what can be read now, for which one checkpoint is enough; wait for the first message."""
        found, inbox = [await self.read_next()], self._consumer._inbox
        while len(found) < TOGETHER and inbox and isinstance(inbox.head, Message):
            found.append(self._passed(self._consumer._take()))
        return found

    def _passed(self, message: Message[T]) -> Message[T]:
        places = self._places if message.topic_name() in self._places else self._all_places()
        places[message.topic_name()].passed(message.message_id())
        return message

    def _all_places(self) -> dict[str, Place]:
        """With those of partitions that came since."""
        for part in self._consumer._parts.all:
            if part.topic not in self._places:
                every = max(1, self._options.receiver_queue_size // 2)
                self._places[part.topic] = Place(part, every, inclusive=self._options.start_message_id_inclusive)
        return self._places

    async def has_message_available(self) -> bool:
        """Whether `read_next` would find a message now, so that `while await has_message_available()` ends (PIP-429).

        Asks the broker for the last message, unless something waits here already. What is compacted out does not count.
        Raises the broker's refusal, and what a `payload_to_message_id_converter` raises.
        """
        await anyio.lowlevel.checkpoint()
        if self._consumer._inbox:
            return True
        for place in list(self._all_places().values()):
            if await place.has_more():
                return True
        return False

    async def get_last_message_ids(self) -> list[MessageId]:
        """The last message of the topic, as `Consumer.get_last_message_ids` gives it."""
        return await self._consumer.get_last_message_ids()

    async def seek(self, target: MessageId | datetime | int) -> None:
        """Go on behind a message (or at it, as the start was chosen), or at a time: see `Consumer.seek`."""
        with self._moving():
            await self._consumer.seek(target)

    async def seek_to_index(self, index: int) -> None:
        """Go on at the message of this index: see `Consumer.seek_to_index`."""
        with self._moving():
            await self._consumer.seek_to_index(index)

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """What was read before is not to be acknowledged behind a seek, also what another task read during it."""
        for place in self._places.values():
            place.moved()
        yield
        for place in self._places.values():
            place.moved()

    async def aclose(self) -> None:
        """End it; a second call does nothing."""
        await self._consumer.aclose()
