"""A reader: goes through a topic from a place of its own choice, without a subscription that lasts."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING
from uuid import uuid4

from pulsarium.client.consumer import Consumer
from pulsarium.client.consumer_options import ConsumerOptions
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.receiver import Receiver

if TYPE_CHECKING:
    from pulsarium.client.client import Client


class Reader:
    """Reads the messages of a topic in their order; made by `Client.create_reader`, open inside its `async with`.

    When its connection is lost it goes on where it was.
    """

    def __init__(
        self, client: Client, topic: str, start_message_id: MessageId, options: ConsumerOptions, name: str | None = None
    ) -> None:
        """Begins behind `start_message_id`, or with `start_message_id_inclusive` at it."""
        subscription = f"reader-{uuid4().hex[:10]}"
        options = replace(options, durable=False, start_message_id=start_message_id, consumer_name=name or "")
        self._inclusive = options.start_message_id_inclusive
        self._ack_every = max(1, options.receiver_queue_size // 2)
        self._consumer = Consumer(client, topic, subscription, options)
        self._last_read: MessageId | None = None
        self._read = 0

    async def __aenter__(self) -> Reader:
        await self._consumer.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._consumer.aclose()

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Message:
        if not await self._receiver.arrival(until_end=True):
            raise StopAsyncIteration
        return await self.read_next()

    @property
    def _receiver(self) -> Receiver:
        return self._consumer.receiver

    def topic(self) -> str:
        """The topic, in full."""
        return self._consumer.topic()

    async def read_next(self) -> Message:
        """The next message, as soon as there is one; raises as `Consumer.receive` does."""
        message = await self._consumer.receive()
        previous, self._last_read = self._last_read, message.message_id()
        self._read += 1
        if not self._receiver:
            self._done_with(self._last_read)
        elif previous is not None and self._read >= self._ack_every and previous.entry != self._last_read.entry:
            self._done_with(previous)
        return message

    def _done_with(self, message_id: MessageId) -> None:
        self._read = 0
        self._consumer.read_through(message_id)

    async def has_message_available(self) -> bool:
        """Whether `read_next` would find a message now, so that `while await has_message_available()` ends (PIP-429).

        Asks the broker for the last message, unless something waits here already. What is compacted out does not count.
        Raises the broker's refusal, and what a `payload_to_message_id_converter` raises.
        """
        receiver = self._receiver
        if receiver:
            return True
        last, done = await self._consumer.last_message()
        if receiver:
            return True
        if last.entry_id < 0:
            return False
        if receiver.last_seen is not None:
            return last.entry > receiver.last_seen
        start = receiver.start
        if start is not None and start.message_id.entry != MessageId.latest.entry:
            return start.is_before(last)
        if start is not None and self._inclusive:  # from the last message on: only now is it known
            await self.seek(last)
            return True
        return done is None or last.entry > done.entry

    async def get_last_message_ids(self) -> list[MessageId]:
        """The last message of the topic, as `Consumer.get_last_message_ids` gives it."""
        return await self._consumer.get_last_message_ids()

    async def seek(self, target: MessageId | datetime | int) -> None:
        """Go on behind a message (or at it, as the start was chosen), or at a time: see `Consumer.seek`."""
        self._last_read = None
        self._read = 0
        await self._consumer.seek(target)

    async def aclose(self) -> None:
        """End it; a second call does nothing."""
        await self._consumer.aclose()
