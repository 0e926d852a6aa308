"""A consumer: one member of a subscription, on each of its topics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic

import anyio

from pulsarium.client.connection.link import patiently
from pulsarium.client.consumer.discovery import discovery
from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.start import Start
from pulsarium.client.consumer.topic_consumer import TopicConsumer
from pulsarium.client.errors import AlreadyClosed, InvalidConfiguration, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.schema.schema import T
from pulsarium.client.together import together

if TYPE_CHECKING:
    from pulsarium.client.client import Client

ENDS = (MessageId.earliest, MessageId.latest)


class Consumer(Generic[T]):
    """Receives the messages of a subscription, and acknowledges them; made by `Client.subscribe`.

    It is open inside its `async with` block: on a topic, on all its partitions, on several topics, or on those that a
    pattern matches. New partitions and topics are found with time. When a connection is lost, or the broker closes the
    consumer, it subscribes again by itself; what was not acknowledged then comes again. AlreadyClosed after the block.
    """

    def __init__(self, client: Client, options: ConsumerOptions[T], reading_from: Start | None = None) -> None:
        """Nothing is sent yet. InvalidTopicName if `topic` is no name. `reading_from`: of a reader."""
        self._client = client
        self._options = options
        self._reading_from = reading_from
        self._discovery = discovery(options)
        self.inbox = Inbox(forgiving=self._discovery.forgets)
        """What waits here."""
        self._parts: dict[str, TopicConsumer] = {}
        self._scope = anyio.CancelScope()

    async def __aenter__(self) -> Consumer[T]:
        topics = await patiently(self._client, lambda: self._discovery.find(self._client, first=True))
        if self._reading_from is not None and len(topics) > 1 and self._reading_from.message_id not in ENDS:
            raise InvalidConfiguration(f"{self.topic()}: partitions are read from the earliest or the latest message")
        await self._open(topics, self._reading_from)
        if self._discovery.interval is not None:
            self._client.task_group.start_soon(self._watch_topics, self._discovery.interval)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Consumer[T]:
        return self

    async def __anext__(self) -> Message[T]:
        if not await self.inbox.arrival(until_end=True):
            raise StopAsyncIteration
        return self.inbox.take()

    def topic(self) -> str:
        """The topic, in full; several with commas between, or the pattern."""
        return self._discovery.text

    def subscription_name(self) -> str:
        """The subscription it belongs to."""
        return self._options.subscription_name

    def consumer_name(self) -> str:
        """Its own name, "" where the broker is to find one."""
        return self._options.consumer_name

    @property
    def parts(self) -> Sequence[TopicConsumer]:
        """What it is made of, one for each topic or partition."""
        return tuple(self._parts.values())

    @property
    def is_active(self) -> bool | None:
        """Whether this is the one of a Failover subscription that gets the messages; None: the broker said nothing.

        Of several topics, or partitions, it may be the one for some only: that is True, too.
        """
        said = [part.receiver.is_active for part in self._parts.values() if part.receiver.is_active is not None]
        return any(said) if said else None

    @property
    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic, each of them, is terminated and everything in it was acknowledged."""
        return bool(self._parts) and all(part.receiver.end_of_topic for part in self._parts.values())

    # ---- receiving

    async def receive(self) -> Message[T]:
        """The next message, as soon as there is one; at the end of a terminated topic it waits for a seek.

        CryptoError for a message that cannot be decrypted, and what a `message_payload_processor` raises for its entry:
        the next call goes on behind it. Otherwise whatever ended the consumer for good. `async for` does the same, and
        ends at the end of a terminated topic.
        """
        await self.inbox.arrival()
        return self.inbox.take()

    # ---- acknowledging

    async def acknowledge(self, message: Message[Any] | MessageId) -> None:
        """Never deliver this message again.

        Of a batch the broker is told when all its messages are acknowledged, or of each with `batch_index_ack_enabled`
        (PIP-54). It goes out together with others, some milliseconds later. Only with `ack_receipt_enabled` it goes at
        once and waits for the broker's answer; then it raises its refusal, and ConnectError when the connection was
        lost, so that nobody knows.

        InvalidConfiguration for an id of a consumer on several topics: there it takes the message.
        """
        await self._part(message).acknowledge(_id(message))

    async def acknowledge_cumulative(self, message: Message[Any] | MessageId) -> None:
        """Never deliver this message again, nor any before it in its topic or partition.

        InvalidConfiguration on Shared and KeyShared subscriptions, where "before" means nothing, and as `acknowledge`.
        """
        await self._part(message).acknowledge_cumulative(_id(message))

    def negative_acknowledge(self, message: Message[Any] | MessageId) -> None:
        """Deliver this message again, after `negative_ack_redelivery_delay` seconds; of a batch all of it.

        On Exclusive and Failover, which keep their order, everything unacknowledged of its topic or partition comes
        again then. InvalidConfiguration as `acknowledge`.
        """
        self._part(message).negative_acknowledge(_id(message))

    async def redeliver_unacknowledged_messages(self) -> None:
        """Deliver everything again, now, that this consumer got and did not acknowledge."""
        await self._all(lambda part: part.redeliver_unacknowledged_messages())

    # ---- moving about

    async def seek(self, target: MessageId | datetime | int) -> None:
        """Go on behind a message, or at the first one published at a time: milliseconds since the epoch, or a datetime.

        With `start_message_id_inclusive` at the message itself. It moves the whole subscription: what is behind the
        target comes again, acknowledged or not, and what is before it does not. Of a partitioned topic a message moves
        its own partition; MessageId.earliest and latest, and a time, move all. Raises the broker's refusal.
        """
        if isinstance(target, MessageId) and target not in ENDS:
            await self._part(target).seek(target)
        else:
            await self._all(lambda part: part.seek(target))

    async def get_last_message_ids(self) -> list[MessageId]:
        """The last message of each topic or partition; of a compacted topic the last that is left (PIP-429).

        Ledger and entry are -1 if there is none. Raises what a `payload_to_message_id_converter` raises.
        """
        return [(await part.last_message())[0] for part in self.parts]

    # ---- the end

    async def unsubscribe(self) -> None:
        """Delete the subscription, and close. Raises the broker's refusal, as while others are subscribed."""
        await self._all(lambda part: part.unsubscribe())
        await self.aclose()

    async def aclose(self) -> None:
        """Leave the subscription; what is not acknowledged goes to others. A second call does nothing."""
        self._scope.cancel()
        self.inbox.fail(AlreadyClosed(f"{self.topic()}: the consumer was closed"))
        await self._all(lambda part: part.aclose())

    # ---- its own

    async def _all(self, call: Callable[[TopicConsumer], Awaitable[None]]) -> None:
        await together([partial(call, part) for part in self.parts])

    def _part(self, message: Message[Any] | MessageId) -> TopicConsumer:
        """Whose message it is."""
        if isinstance(message, Message):
            found = self._parts.get(message.topic_name())
            if found is None:
                raise AlreadyClosed(f"{message.topic_name()}: not subscribed")
            return found
        parts = self.parts
        if len(parts) > 1:
            parts = [part for part in parts if part.partition == message.partition]
        if len(parts) != 1:
            raise InvalidConfiguration(f"{message} does not tell which topic of {self.topic()}: give the message")
        return parts[0]

    async def _open(self, topics: Collection[str], reading_from: Start | None) -> None:
        """All or none of these."""
        count = len(self._parts) + len(topics)
        room = self._options.max_total_receiver_queue_size_across_partitions // max(1, count)
        options = replace(self._options, receiver_queue_size=max(1, min(self._options.receiver_queue_size, room)))
        new = [TopicConsumer(self._client, topic, options, self.inbox, reading_from) for topic in topics]
        try:
            await together([part.open for part in new], all_or_none=True)
            if self._scope.cancel_called:
                raise AlreadyClosed(f"{self.topic()}: the consumer was closed")
        except BaseException:
            with anyio.CancelScope(shield=True):
                await together([part.aclose for part in new])
            raise
        self._parts |= {part.topic: part for part in new}

    async def _watch_topics(self, interval: float) -> None:
        with self._scope:
            while True:
                await anyio.sleep(interval)
                with suppress(PulsarError):  # the next time
                    await self._update()

    async def _update(self) -> None:
        """Subscribe to what is new; leave what is gone."""
        topics = await self._discovery.find(self._client, first=False)
        if self._discovery.forgets:
            for part in self.parts:
                if part.topic not in topics or part.receiver.error is not None:
                    await self._parts.pop(part.topic).aclose()
        start = None if self._reading_from is None else Start(MessageId.earliest)  # of what is new nothing is missed
        await self._open([topic for topic in topics if topic not in self._parts], start)


def _id(message: Message[Any] | MessageId) -> MessageId:
    return message if isinstance(message, MessageId) else message.message_id()
