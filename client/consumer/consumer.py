"""A consumer: one member of a subscription, on one topic or several."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

import anyio.lowlevel

from pulsarium.client.blocks import Closing
from pulsarium.client.checkpoints import checkpoint
from pulsarium.client.consumer.inbox import Inbox, batch_receive
from pulsarium.client.consumer.indexes import message_at
from pulsarium.client.consumer.intercepting import Interceptors
from pulsarium.client.consumer.letters import Letters, of_topic, send_back, with_topics
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.parts import ENDS, Parts
from pulsarium.client.consumer.receiver import Onlooker
from pulsarium.client.consumer.start import Start
from pulsarium.client.consumer.topic_consumer import TopicConsumer
from pulsarium.client.core import Core
from pulsarium.client.errors import InvalidConfiguration, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.schema.schema import T
from pulsarium.client.statistics import ConsumerStatistics
from pulsarium.client.together import together
from pulsarium.client.transaction.transaction import Transaction

Target: TypeAlias = MessageId | datetime | int
"""The target of a seek: a message, a datetime, or milliseconds since the epoch."""

_ONE = (Message, MessageId)
_Result = TypeVar("_Result")


class Consumer(Closing, Generic[T]):
    """Receive and acknowledge the messages of a subscription. Made by `Client.subscribe`.

    A consumer is open inside its `async with` block: on one topic, on all partitions of a topic, on several topics, or
    on the topics that match a pattern. The consumer subscribes to new partitions and topics by itself. When a
    connection is lost, or the broker closes the consumer, the consumer subscribes again. The broker then redelivers all
    unacknowledged messages. After the block, each call raises `AlreadyClosed`.
    """

    def __init__(
        self,
        core: Core,
        options: ConsumerOptions[T],
        reading_from: Start | None = None,
        onlooker: Onlooker | None = None,
    ) -> None:
        """Make a consumer, without sending anything. Raise `InvalidTopicName` when `topic` is no topic name.

        `reading_from` is the start of a reader, and `onlooker` hears of entries without messages.
        """
        self._core = core
        self._options = options = with_topics(options)
        self._interceptors = Interceptors(self, options.interceptors)
        self._letters = Letters(core, options.subscription_name, options.schema)
        self._parts = Parts(core, options, self._letters, self._interceptors, reading_from, onlooker)
        self._inbox: Inbox = self._parts.inbox
        self._is_intercepted = bool(options.interceptors)
        timeouts = (options.unacked_messages_timeout, options.ack_timeout_redelivery_backoff)
        is_watched = self._is_intercepted or timeouts != (None, None)
        self._take = self._take_watched if is_watched else self._inbox.take
        self._filled = self._inbox.filled if options.receiver_queue_size else self._filled_on_demand

    async def __aenter__(self) -> Consumer[T]:
        await self._parts.open()
        return self

    def __aiter__(self) -> Consumer[T]:
        return self

    async def __anext__(self) -> Message[T]:
        await checkpoint()
        if not self._inbox and not await self._filled(until_end=True):
            raise StopAsyncIteration
        return self._take()

    def __repr__(self) -> str:
        return f"<Consumer {self.consumer_name()!r} of {self.topic()}, subscription {self.subscription_name()!r}>"

    def topic(self) -> str:
        """Return the full name of the topic, the names of several topics with commas between, or the pattern."""
        return self._parts.text

    def subscription_name(self) -> str:
        """Return the name of the subscription."""
        return self._options.subscription_name

    def consumer_name(self) -> str:
        """Return the consumer's name, or "" where the broker chooses one."""
        return self._options.consumer_name

    def is_active(self) -> bool | None:
        """Return whether this is the active consumer of a Failover subscription.

        Return None when the broker has not said so. With several topics or partitions, return True when the
        consumer is active on at least one of them.
        """
        said = [part.receiver.is_active for part in self._parts.all if part.receiver.is_active is not None]
        return any(said) if said else None

    def has_reached_end_of_topic(self) -> bool:
        """Return whether all topics are terminated, and all their messages are acknowledged."""
        return bool(self._parts.all) and all(part.receiver.end_of_topic for part in self._parts.all)

    def suspended_topics(self) -> list[str]:
        """Return the topics and partitions whose brokers lack what `ordered_negative_ack` requires.

        These deliver nothing, until they are connected to a broker that has it.
        """
        return [part.topic for part in self._parts.all if part.is_suspended]

    # ---- receiving

    async def receive(self) -> Message[T]:
        """Return the next message, and wait for one if necessary.

        At the end of a terminated topic, `receive` waits for a seek. `async for` receives messages too, and ends there.
        Each call is a checkpoint. `batch_receive` has one checkpoint for many messages.

        Raises:
            CryptoError: The message cannot be decrypted, and stays unacknowledged. The next call returns the message
                after it.
            Exception: Any exception of a `message_payload_processor`. The next call returns the next entry's
                message.
            AlreadyClosed: The consumer was closed.
            PulsarError: The consumer failed for good.
        """
        await checkpoint()
        if not self._inbox:
            await self._filled()
        return self._take()

    async def batch_receive(self) -> list[Message[T]]:
        """Return several messages, by the limits of `batch_receive_policy`.

        At the policy's timeout, return the messages that have arrived, or an empty list.

        Raises:
            InvalidConfiguration: `receiver_queue_size` is 0.
            PulsarError: The errors of `receive`.
        """
        await anyio.lowlevel.checkpoint()
        if self._options.receiver_queue_size == 0:
            raise InvalidConfiguration("batch_receive needs a queue: receiver_queue_size is 0")
        return await batch_receive(self._inbox, self._options.batch_receive_policy, self._take)

    def statistics(self) -> ConsumerStatistics:
        """Return the consumer's statistics, over all its topics and partitions."""
        return self._parts.statistics()

    def pause(self) -> None:
        """Ask the brokers for no more messages. Messages in the queue, or on their way, can still be received."""
        self._parts.pause()

    def resume(self) -> None:
        """Ask the brokers for messages again, after `pause`."""
        self._parts.resume()

    def _take_watched(self) -> Message[T]:
        message = self._inbox.take()
        self._parts.received(message)
        return self._interceptors.before_consume(message)

    async def _filled_on_demand(self, *, until_end: bool = False) -> bool:
        """Ask for a message, without a queue. If the call is canceled, the next call gets the message."""
        with ExitStack() as stack:
            for part in self._parts.all:
                stack.enter_context(part.receiver.wanted())
            return await self._inbox.filled(until_end=until_end)

    # ---- acknowledging

    async def acknowledge(
        self,
        message: Message[Any] | MessageId | Iterable[Message[Any] | MessageId],
        *,
        txn: Transaction | None = None,
    ) -> None:
        """Acknowledge a message, or several, so that the broker does not deliver them again.

        The client acknowledges a batch when all its messages are acknowledged, or with `batch_index_ack_enabled` each
        message alone (PIP-54). The client sends acknowledgements in groups, after `acknowledgement_group_time` seconds.
        With `ack_receipt_enabled`, it sends them at once and waits for the broker's answer. Several messages of a topic
        or partition then have one answer.

        Several messages in one call are one checkpoint, which is faster than one call for each message.

        With `txn`, the acknowledgement is sent at once, for each message of a batch alone, and takes effect when the
        transaction is committed. When the transaction is aborted, the broker redelivers the message. On Exclusive and
        Failover subscriptions it redelivers all messages after that, too.

        Args:
            message: A message, an id, or several of them. A consumer of several topics takes messages only.
            txn: The transaction that the acknowledgement belongs to.

        Raises:
            InvalidConfiguration: An id does not tell which topic of the consumer it belongs to. Pass the message.
            ConnectError: The connection was lost before the answer, so the outcome is unknown.
            TransactionConflict: Another transaction has acknowledged the message.
            InvalidTxnStatusError: The transaction is not open.
            PulsarError: The broker refused the acknowledgement, in a transaction or with `ack_receipt_enabled`.
        """
        if txn is None:
            await checkpoint()
            if isinstance(message, _ONE) and not self._is_intercepted:
                part, message_id = self._parts.of(message), _id(message)
                if part.acknowledge_nowait(message_id):  # without the coroutines of the other cases
                    return
            await self._acknowledge(message)
        else:
            await _noticing(partial(self._acknowledge, message, txn))

    async def _acknowledge(
        self, message: Message[Any] | MessageId | Iterable[Message[Any] | MessageId], txn: Transaction | None = None
    ) -> None:
        """Acknowledge as `acknowledge`, without a checkpoint where the call does not have to wait."""
        if not isinstance(message, _ONE):
            await self._acknowledge_all(message, txn)
        elif self._is_intercepted:
            with self._telling(self._interceptors.acknowledged, [_id(message)]):
                await self._parts.of(message).acknowledge(_id(message), txn)
        else:
            await self._parts.of(message).acknowledge(_id(message), txn)

    async def _acknowledge_all(self, messages: Iterable[Message[Any] | MessageId], txn: Transaction | None) -> None:
        found: dict[TopicConsumer, list[MessageId]] = {}
        for message in messages:
            found.setdefault(self._parts.of(message), []).append(_id(message))
        with self._telling(self._interceptors.acknowledged, chain.from_iterable(found.values())):
            await together([partial(part.acknowledge_all, ids, txn) for part, ids in found.items()])

    async def acknowledge_cumulative(
        self, message: Message[Any] | MessageId, *, txn: Transaction | None = None
    ) -> None:
        """Acknowledge a message, and all messages before it in its topic or partition.

        Args:
            message: A message, or an id. A consumer of several topics takes messages only.
            txn: The transaction that the acknowledgement belongs to, as in `acknowledge`.

        Raises:
            InvalidConfiguration: The subscription is Shared or KeyShared, or an id does not tell which topic it
                belongs to.
            PulsarError: The errors of `acknowledge`.
        """
        if txn is None:
            await anyio.lowlevel.checkpoint()
            await self._acknowledge_cumulative(message)
        else:
            await _noticing(partial(self._acknowledge_cumulative, message, txn))

    async def _acknowledge_cumulative(self, message: Message[Any] | MessageId, txn: Transaction | None = None) -> None:
        with self._telling(self._interceptors.acknowledged_cumulative, [_id(message)]):
            await self._parts.of(message).acknowledge_cumulative(_id(message), txn)

    @contextmanager
    def _telling(
        self, tell: Callable[[MessageId, Exception | None], None], message_ids: Iterable[MessageId]
    ) -> Iterator[None]:
        """Tell the interceptors the outcome of acknowledgements.

        Tell them nothing when the block is canceled, because the outcome is unknown then.
        """
        try:
            yield
        except Exception as error:
            for message_id in message_ids:
                tell(message_id, error)
            raise
        for message_id in message_ids:
            tell(message_id, None)

    def negative_acknowledge(self, message: Message[Any] | MessageId) -> None:
        """Ask the broker to redeliver a message after a delay, with the whole batch that the message belongs to.

        The delay is `negative_ack_redelivery_delay` in seconds, or that of `negative_ack_redelivery_backoff`, for which
        an id counts as a first delivery. On Exclusive and Failover subscriptions, which keep the order, the broker
        redelivers all unacknowledged messages of the topic or partition. With a `dead_letter_policy`, the message may
        go to the dead letter topic.

        With `ordered_negative_ack` on a KeyShared subscription, no later message with the key is delivered until the
        message is acknowledged. This needs the message itself, with a key, and not in chunks.

        Args:
            message: A message, or an id. A consumer of several topics takes messages only.

        Raises:
            AlreadyClosed: The consumer was closed.
            InvalidConfiguration: An id does not tell which topic of the consumer it belongs to. Pass the message.
        """
        self._parts.of(message).negative_acknowledge(message)

    async def reconsume_later(
        self, message: Message[Any], delay: float, properties: Mapping[str, str] | None = None
    ) -> None:
        """Publish a message to the retry letter topic, and acknowledge it, so that it is delivered again after a delay.

        The new message has properties with the original topic, id and number of attempts (PIP-22: REAL_TOPIC,
        ORIGIN_MESSAGE_ID, RECONSUMETIMES). After `max_redeliver_count` attempts, the message goes to the dead letter
        topic. Only Shared and KeyShared subscriptions delay messages.

        Args:
            message: A message that this consumer has received.
            delay: The delay in seconds.
            properties: More properties of the new message.

        Raises:
            InvalidConfiguration: The consumer is without `retry_enable`.
            PulsarError: The message could not be published or acknowledged. The broker then redelivers the message
                at once.
        """
        await anyio.lowlevel.checkpoint()
        policy = self._options.dead_letter_policy
        if not self._options.retry_enable or policy is None:
            raise InvalidConfiguration("reconsume_later needs retry_enable")
        part = self._parts.of(message)
        policy = of_topic(policy, part.topic, self._options.subscription_name)
        try:
            await send_back(self._letters, policy, message, delay, properties or {})
            await self._acknowledge(message)  # no checkpoint between: the letter is published
        except PulsarError:
            part.redeliver(message.message_id())
            raise

    async def redeliver_unacknowledged_messages(self) -> None:
        """Ask the brokers to redeliver all unacknowledged messages of this consumer now."""
        await anyio.lowlevel.checkpoint()
        await self._parts.each(lambda part: part.redeliver_unacknowledged_messages())

    # ---- moving about

    async def seek(self, target: Target | Callable[[str], Target | None]) -> None:
        """Move the subscription to another position.

        The next message is the one after the target, or the target itself with `start_message_id_inclusive`. At a time,
        it is the first message that was published then or later. The broker delivers all messages from the new position
        on, acknowledged or not, and none before. On a partitioned topic, a message moves its own partition only.
        `MessageId.earliest`, `MessageId.latest` and a time move all topics and partitions.

        Args:
            target: A message id, a datetime, milliseconds since the epoch, or a function that returns one of these
                for each topic or partition, or None to keep the position.

        Raises:
            PulsarError: The broker refused the seek.
        """
        await anyio.lowlevel.checkpoint()
        if callable(target):
            targets = [(part, target(part.topic)) for part in self._parts.all]
            await together([partial(part.seek, to) for part, to in targets if to is not None])
        elif isinstance(target, MessageId) and target not in ENDS:
            await self._parts.of(target).seek(target)
        else:
            await self._parts.each(lambda part: part.seek(target))

    async def seek_to_index(self, index: int) -> None:
        """Move the subscription to the message with this index (PIP-415), even inside a batch.

        If the message is deleted already, move to the earliest message. Only brokers with
        `AppendIndexMetadataInterceptor` in brokerEntryMetadataInterceptors give indexes to messages.

        Args:
            index: An index, as `Message.index` returns it.

        Raises:
            InvalidConfiguration: The client is without an `admin_url`, or the consumer has several topics or
                partitions.
            NotFound: No message has this index (`admin.errors`).
            PulsarError: The broker refused the request.
        """
        await anyio.lowlevel.checkpoint()
        part = self._parts.only("an index")
        await part.seek(await message_at(self._core.admin.topics, part.topic, index), inclusive=True)

    async def acknowledge_index(self, index: int) -> None:
        """Acknowledge the message with this index (PIP-415), received or not.

        A message of a batch is acknowledged alone, if the broker has acknowledgmentAtBatchIndexLevelEnabled.

        Args:
            index: An index, as `Message.index` returns it.

        Raises:
            PulsarError: The errors of `seek_to_index`.
        """
        await anyio.lowlevel.checkpoint()
        part = self._parts.only("an index")
        message_id = await message_at(self._core.admin.topics, part.topic, index)
        if message_id != MessageId.earliest:
            await part.acknowledge_alone(message_id)

    async def get_last_message_ids(self) -> list[MessageId]:
        """Return the id of the last message of each topic or partition.

        Messages that compaction removed do not count (PIP-429). Ledger and entry are -1 in an empty topic.

        Raises:
            PulsarError: The broker refused the request.
            Exception: Any exception of a `payload_to_message_id_converter`.
        """
        parts = self._parts.all
        if not parts:
            await anyio.lowlevel.checkpoint()
        return [(await _noticing(part.last_message))[0] for part in parts]

    # ---- the end

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close the consumer.

        Args:
            force: Disconnect other consumers of the subscription.

        Raises:
            PulsarError: The broker refused the request, for example because the subscription has other consumers.
        """
        await anyio.lowlevel.checkpoint()
        await self._parts.each(lambda part: part.unsubscribe(force=force))
        await self.aclose()

    async def aclose(self) -> None:
        """Close the consumer. Other consumers receive its unacknowledged messages. A second call does nothing."""
        try:
            await self._parts.aclose()
        finally:
            try:
                await self._letters.aclose()
            finally:
                self._interceptors.close()


async def _noticing(call: Callable[[], Awaitable[_Result]]) -> _Result:
    """Call a function that contains a checkpoint. Add one where the function fails before its own."""
    try:
        return await call()
    except PulsarError:
        await anyio.lowlevel.checkpoint()
        raise


def _id(message: Message[Any] | MessageId) -> MessageId:
    return message if isinstance(message, MessageId) else message.message_id()
