"""Consume the scalable topics of a namespace in order, as one stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Self

import anyio
import anyio.lowlevel

from pulsarium.client.blocks import Closing
from pulsarium.client.consumer.options import ConsumerOptions, InitialPosition
from pulsarium.client.core import Core
from pulsarium.client.errors import FATAL, AlreadyClosed, PulsarError, TopicNotFound, copy_of
from pulsarium.client.scalable.message import ScalableMessage
from pulsarium.client.scalable.namespace_watch import NamespaceWatch
from pulsarium.client.scalable.stream_consumer import StreamConsumer
from pulsarium.client.schema.schema import T
from pulsarium.client.together import together
from pulsarium.client.transaction.transaction import Transaction


@dataclass(eq=False)
class _Topic(Generic[T]):
    """The consumer of one topic, and the messages that the application has from it, by the number of their delivery."""

    consumer: StreamConsumer[T]
    reading: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    delivered: dict[int, ScalableMessage[T]] = field(default_factory=dict)


class NamespaceStreamConsumer(Closing, Generic[T]):
    """A stream consumer of all topics of a namespace that have some properties (PIP-466).

    Made by `ScalableTopics.subscribe_namespace`. The consumer follows topics that come and go. The messages of each key
    of a topic come in order. An acknowledgement covers all messages, of all topics, that were delivered before.
    """

    def __init__(
        self, core: Core, namespace: str, options: ConsumerOptions[T], property_filters: Mapping[str, str]
    ) -> None:
        """Make a consumer, without sending anything. `options` are those of each topic, but for the topic's name."""
        self._core = core
        self._namespace = namespace
        self._options = options
        self._topics: dict[str, _Topic[T]] = {}
        self._last = 0  # the number of the last delivery
        self._into, self._out = anyio.create_memory_object_stream[ScalableMessage[T]]()
        self._watch = NamespaceWatch(core.brokers, namespace, property_filters, self._on_topics, self._end)
        self._is_open = False
        self._error: PulsarError | None = None

    async def __aenter__(self) -> Self:
        try:
            names = await self._watch.open()
            self._topics = {name: _Topic(self._consumer_of(name)) for name in names}
            await together([topic.consumer.__aenter__ for topic in self._topics.values()])
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.aclose()
            raise
        self._is_open = True
        for name, topic in self._topics.items():
            self._core.brokers.task_group.start_soon(partial(self._follow, name, topic, is_open=True))
        self._on_topics(self._watch.topics)  # those of now
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ScalableMessage[T]:
        return await self.receive()

    def __repr__(self) -> str:
        return f"<NamespaceStreamConsumer of {self._options.topic}, subscription {self.subscription_name()!r}>"

    def topics(self) -> list[str]:
        """Return the names of the topics at present, sorted."""
        return sorted(self._topics)

    def subscription_name(self) -> str:
        """Return the name of the subscription."""
        return self._options.subscription_name

    async def receive(self) -> ScalableMessage[T]:
        """Return the next message of any topic, and wait for one if necessary. Each call is a checkpoint.

        Raises:
            CryptoError: A message cannot be decrypted. The consumer ends.
            AlreadyClosed: The consumer was closed.
            PulsarError: The consumer of a topic failed for good.
        """
        try:
            message = await self._out.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            assert self._error is not None
            raise copy_of(self._error) from None
        self._last += 1
        topic = self._topics.get(message.topic_name())
        if topic is not None:
            topic.delivered[self._last] = message
        return message

    async def acknowledge_cumulative(self, message: ScalableMessage[Any], *, txn: Transaction | None = None) -> None:
        """Acknowledge a message, and all messages of all topics that this consumer has delivered before it.

        Args:
            message: A message of this consumer.
            txn: A transaction of `ScalableTopics.transaction`. The acknowledgement takes effect with its commit.

        Raises:
            InvalidTxnStatusError: The transaction is not open, or not of scalable topics.
            AlreadyClosed: The consumer was closed.
        """
        await anyio.lowlevel.checkpoint()
        if self._error is not None:
            raise copy_of(self._error)
        of = self._topics.get(message.topic_name())
        places = () if of is None else of.delivered.items()
        number = next((each for each, one in places if one._delivery == message._delivery), 0)  # 0: acknowledged
        await together([partial(_acknowledge, topic, number, txn) for topic in self._topics.values()])

    async def aclose(self) -> None:
        """Close the consumer, and leave the subscription of each topic. A second call does nothing."""
        self._end(AlreadyClosed(f"{self._namespace}: the consumer was closed"))
        await together([topic.consumer.aclose for topic in self._topics.values()])
        self._out.close()

    # ---- private

    def _consumer_of(self, name: str, *, is_young: bool = False) -> StreamConsumer[T]:
        """Make the consumer of a topic. A topic that is younger than this consumer has no earlier messages."""
        start = InitialPosition.Earliest if is_young else self._options.initial_position
        return StreamConsumer(self._core, replace(self._options, topic=name, initial_position=start), create=False)

    def _on_topics(self, names: frozenset[str]) -> None:
        """Leave topics that are gone, and open those that are new."""
        if self._error is not None or not self._is_open:
            return
        for name in self._topics.keys() - names:
            self._topics.pop(name).reading.cancel()
        for name in names - self._topics.keys():
            topic = self._topics[name] = _Topic(self._consumer_of(name, is_young=True))
            self._core.brokers.task_group.start_soon(partial(self._follow, name, topic, is_open=False))

    async def _follow(self, name: str, topic: _Topic[T], *, is_open: bool) -> None:
        """Pass on the messages of a topic, until the topic is gone or the consumer ends."""
        try:
            with topic.reading:
                if is_open or await self._opened(name, topic):
                    async for message in topic.consumer:
                        await self._into.send(message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # the consumer has ended
        except PulsarError as error:
            self._end(error)
        with anyio.CancelScope(shield=True):
            await topic.consumer.aclose()

    async def _opened(self, name: str, topic: _Topic[T]) -> bool:
        """Open the consumer of a new topic, at last. Return False if the topic is gone again."""
        backoff = self._core.brokers.new_backoff()
        while True:
            try:
                await topic.consumer.__aenter__()
            except TopicNotFound:
                return False
            except PulsarError as error:
                if isinstance(error, FATAL):
                    raise
                self._core.brokers.waiting.tell(error)
                await anyio.sleep(backoff.next())
                topic.consumer = self._consumer_of(name, is_young=True)
            else:
                return True

    def _end(self, error: PulsarError) -> None:
        """Stop all topics. `receive` raises the error."""
        if self._error is None:
            self._error = error
            self._watch.close()
            for topic in self._topics.values():
                topic.reading.cancel()
            self._into.close()


async def _acknowledge(topic: _Topic[Any], number: int, txn: Transaction | None) -> None:
    """Acknowledge the messages of a topic up to the delivery of a number."""
    through = [each for each in topic.delivered if each <= number]
    if through:
        await topic.consumer.acknowledge_cumulative(topic.delivered[through[-1]], txn=txn)
        for each in through:
            topic.delivered.pop(each, None)
