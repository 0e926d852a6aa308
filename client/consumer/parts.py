"""The parts of a consumer: one `TopicConsumer` for each topic and partition."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from pulsarium.client.connection.waiting import shortened
from pulsarium.client.consumer.discovery import discovery
from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.intercepting import Interceptors
from pulsarium.client.consumer.letters import Letters
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.receiver import Onlooker
from pulsarium.client.consumer.start import Start
from pulsarium.client.consumer.topic_consumer import TopicConsumer
from pulsarium.client.core import Core
from pulsarium.client.errors import AlreadyClosed, InvalidConfiguration, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.statistics import ConsumerStatistics, ReceivedCounts
from pulsarium.client.together import together

logger: logging.Logger = logging.getLogger(__name__)

ENDS = (MessageId.earliest, MessageId.latest)


class Parts:
    """Open a topic consumer for each topic and partition of a consumer.

    Add those of new topics. For a pattern, close those of deleted topics.
    """

    def __init__(
        self,
        core: Core,
        options: ConsumerOptions[Any],
        letters: Letters,
        interceptors: Interceptors,
        reading_from: Start | None,
        onlooker: Onlooker | None,
    ) -> None:
        """Make the parts, without sending anything. Raise `InvalidTopicName` when a topic is no topic name.

        `reading_from` is the start of a reader.
        """
        self._brokers = core.brokers
        self._options = options
        self._letters = letters
        self._interceptors = interceptors
        self._reading_from = reading_from
        self._discovery = discovery(options)
        self.text: str = self._discovery.text
        """The full names of the topics, or the pattern."""
        versions = core.schemas if options.schema.reads_by_writer else None
        self.inbox: Inbox = Inbox(forgiving=self._discovery.forgets, versions=versions, onlooker=onlooker)
        """The queues of all parts."""
        self._parts: dict[str, TopicConsumer] = {}
        self._opening: set[TopicConsumer] = set()
        self._is_paused = options.start_paused
        self._scope = anyio.CancelScope()
        self._counts = ReceivedCounts()

    async def open(self) -> None:
        """Subscribe to the current topics. Raise a broker's refusal.

        Raise `InvalidConfiguration` for several topics or partitions, where the options are for one.
        """
        topics = await self._brokers.patiently(lambda: self._discovery.find(self._brokers, first=True))
        if self._reading_from is not None and len(topics) > 1 and self._reading_from.message_id not in ENDS:
            raise InvalidConfiguration(f"{self.text}: partitions are read from MessageId.earliest or MessageId.latest")
        if self._options.receiver_queue_size == 0 and topics != [self.text]:
            raise InvalidConfiguration(f"{self.text}: receiver_queue_size must be positive with partitions")
        await self._open(topics, self._reading_from, len(topics))
        if self._discovery.interval is not None:
            self._brokers.task_group.start_soon(self._watch_topics)

    async def aclose(self) -> None:
        """Leave the subscription."""
        self._scope.cancel()
        self.inbox.fail(AlreadyClosed(f"{self.text}: the consumer was closed"))
        await self.each(lambda part: part.aclose())

    @property
    def all(self) -> Sequence[TopicConsumer]:
        """Return the open parts."""
        return tuple(self._parts.values())

    async def each(self, call: Callable[[TopicConsumer], Awaitable[None]]) -> None:
        """Call a function for each part, concurrently."""
        await together([partial(call, part) for part in self.all])

    def of(self, message: Message[Any] | MessageId) -> TopicConsumer:
        """Return the part that a message came from.

        Raise `AlreadyClosed` when the consumer is not subscribed to the message's topic, and `InvalidConfiguration`
        when an id does not tell its topic.
        """
        if isinstance(message, Message):
            found = self._parts.get(message.topic_name())
            if found is None:
                raise AlreadyClosed(f"{message.topic_name()}: the consumer is not subscribed to this topic")
            return found
        parts = self.all
        if len(parts) > 1:
            parts = [part for part in parts if part.partition == message.partition]
        if len(parts) != 1:
            raise InvalidConfiguration(f"{message} does not tell which topic of {self.text}: give the message")
        return parts[0]

    def only(self, what: str) -> TopicConsumer:
        """Return the single part.

        Raise `InvalidConfiguration` when the consumer has several, and `what` does not tell which.
        """
        if len(self._parts) != 1:
            raise InvalidConfiguration(f"{what} does not tell which topic of {self.text} is meant")
        return self.all[0]

    def statistics(self) -> ConsumerStatistics:
        """Return the consumer's statistics."""
        pending = sum(part.pending_acknowledgements for part in self.all)
        return self._counts.picture(len(self.inbox), self.inbox.size(), pending)

    def received(self, message: Message[Any]) -> None:
        """Start the acknowledgement timeout of a message that the application has received."""
        part = self._parts.get(message.topic_name())
        if part is not None:
            part.received(message)

    def pause(self) -> None:
        """Ask for no more messages."""
        self._is_paused = True
        for part in (*self.all, *self._opening):
            part.receiver.pause()

    def resume(self) -> None:
        """Ask for messages again."""
        self._is_paused = False
        for part in (*self.all, *self._opening):
            part.receiver.resume()

    # ---- its own

    async def _open(self, topics: Collection[str], reading_from: Start | None, count: int) -> None:
        """Open a part for each topic, or none of them.

        `count` is the number of all topics, which share the queue's total size.
        """
        room = self._options.max_total_receiver_queue_size_across_partitions // max(1, count)
        size = max(self._options.receiver_queue_size, self._options.batch_receive_policy.max_num_message)
        options = replace(self._options, receiver_queue_size=min(size, max(1, room)), start_paused=self._is_paused)
        brokers, letters, interceptors = self._brokers, self._letters, self._interceptors
        make = partial(TopicConsumer, brokers, letters=letters, interceptors=interceptors, counts=self._counts)
        new = [make(topic, options, self.inbox, reading_from) for topic in topics]
        self._opening.update(new)
        try:
            await together([part.open for part in new], all_or_none=True)
            if self._scope.cancel_called:
                raise AlreadyClosed(f"{self.text}: the consumer was closed")
        except BaseException:
            await together([part.aclose for part in new])  # a canceled call does not wait for answers
            raise
        finally:
            self._opening.difference_update(new)
        self._parts |= {part.topic: part for part in new}

    async def _watch_topics(self) -> None:
        with self._scope:
            async with self._discovery.watching(self._brokers) as changed:
                while True:
                    await changed()
                    try:
                        await self._update()
                    except PulsarError as error:
                        logger.info("%s: the search for topics is repeated later: %s", self.text, shortened(error))

    async def _update(self) -> None:
        """Subscribe to each new topic, and leave deleted topics. Raise the first error."""
        topics = await self._discovery.find(self._brokers, first=False)
        if self._discovery.forgets:
            for part in self.all:
                if part.topic not in topics or part.receiver.error is not None:
                    await self._parts.pop(part.topic).aclose()
        start = None if self._reading_from is None else Start(MessageId.earliest)  # read all of a new topic
        new = [topic for topic in topics if topic not in self._parts]
        await together([partial(self._open, [topic], start, len(topics)) for topic in new])
