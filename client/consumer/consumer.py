"""A consumer: one member of a subscription, on each of its topics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from itertools import chain
from types import TracebackType
from typing import Any, Generic, TypeAlias

import anyio.lowlevel

from pulsarium.client.consumer.inbox import Inbox, Onlooker, batch_receive
from pulsarium.client.consumer.indexes import message_at
from pulsarium.client.consumer.interceptors import Interceptors
from pulsarium.client.consumer.letters import Letters, of_topic, send_back, with_topics
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.parts import ENDS, Parts
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
"""Of a seek."""

_ONE = (Message, MessageId)


class Consumer(Generic[T]):
    """Receives the messages of a subscription, and acknowledges them; made by `Client.subscribe`.

    It is open inside its `async with` block: on a topic, on all its partitions, on several topics, or on those that a
    pattern matches. New partitions and topics are found with time. When a connection is lost, or the broker closes the
    consumer, it subscribes again by itself; what was not acknowledged then comes again. AlreadyClosed after the block.
    """

    def __init__(
        self,
        core: Core,
        options: ConsumerOptions[T],
        reading_from: Start | None = None,
        onlooker: Onlooker | None = None,
    ) -> None:
        """Nothing is sent yet. InvalidTopicName if `topic` is no name. `reading_from`: of a reader."""
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
        self._arrival = self._inbox.arrival if options.receiver_queue_size else self._arrival_on_demand

    async def __aenter__(self) -> Consumer[T]:
        await self._parts.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Consumer[T]:
        return self

    async def __anext__(self) -> Message[T]:
        if not await self._arrival(until_end=True):
            raise StopAsyncIteration
        return self._take()

    def topic(self) -> str:
        """The topic, in full; several with commas between, or the pattern."""
        return self._parts.text

    def subscription_name(self) -> str:
        """The subscription it belongs to."""
        return self._options.subscription_name

    def consumer_name(self) -> str:
        """Its own name, "" where the broker is to find one."""
        return self._options.consumer_name

    def is_active(self) -> bool | None:
        """Whether this is the one of a Failover subscription that gets the messages; None: the broker said nothing.

        Of several topics, or partitions, it may be the one for some only: that is True, too.
        """
        said = [part.receiver.is_active for part in self._parts.all if part.receiver.is_active is not None]
        return any(said) if said else None

    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic, each of them, is terminated and everything in it was acknowledged."""
        return bool(self._parts.all) and all(part.receiver.end_of_topic for part in self._parts.all)

    # ---- receiving

    async def receive(self) -> Message[T]:
        """The next message, as soon as there is one; at the end of a terminated topic it waits for a seek.

        CryptoError for a message that cannot be decrypted, and what a `message_payload_processor` raises for its entry:
        the next call goes on behind it. Otherwise whatever ended the consumer for good. `async for` does the same, and
        ends at the end of a terminated topic. Each call is a checkpoint; `batch_receive` is one for many messages.
        """
        await self._arrival()
        return self._take()

    async def batch_receive(self) -> list[Message[T]]:
        """As many messages as `batch_receive_policy` says; when its time is over those that are there, perhaps none.

        InvalidConfiguration if `receiver_queue_size` is 0; otherwise raises as `receive`.
        """
        await anyio.lowlevel.checkpoint()
        if self._options.receiver_queue_size == 0:
            raise InvalidConfiguration("batch_receive needs a queue: receiver_queue_size is 0")
        return await batch_receive(self._inbox, self._options.batch_receive_policy, self._take)

    def statistics(self) -> ConsumerStatistics:
        """Return what came, what waits, and what the brokers were told."""
        return self._parts.statistics()

    def pause(self) -> None:
        """Ask the brokers for no more messages; those that wait here, or are on their way, can be received."""
        self._parts.pause()

    def resume(self) -> None:
        """Ask for messages again."""
        self._parts.resume()

    def _take_watched(self) -> Message[T]:
        message = self._inbox.take()
        self._parts.received(message)
        return self._interceptors.before_consume(message)

    async def _arrival_on_demand(self, *, until_end: bool = False) -> bool:
        """Without a queue: ask for a message. If it is cancelled, the next call gets what was asked for."""
        with ExitStack() as stack:
            for part in self._parts.all:
                stack.enter_context(part.receiver.wanted())
            return await self._inbox.arrival(until_end=until_end)

    # ---- acknowledging

    async def acknowledge(
        self,
        message: Message[Any] | MessageId | Iterable[Message[Any] | MessageId],
        *,
        txn: Transaction | None = None,
    ) -> None:
        """Never deliver this message again; or none of these.

        Of a batch the broker is told when all its messages are acknowledged, or of each with `batch_index_ack_enabled`
        (PIP-54). It goes out together with others, some milliseconds later. Only with `ack_receipt_enabled` it goes at
        once and waits for the broker's answer; then it raises its refusal, and ConnectError when the connection was
        lost, so that nobody knows. For several messages of a topic or partition there is one answer, and for all of
        them one checkpoint: a turn of the event loop costs more than acknowledging a message.

        In a transaction `txn` it goes at once, of a batch each alone, waits for the answer, and holds when the
        transaction is committed; when that is aborted, the message comes again, on Exclusive and Failover with all that
        is behind it. TransactionConflict if another one has acknowledged it, InvalidTxnStatusError if this one is not
        open.

        InvalidConfiguration for an id of a consumer on several topics: there it takes the message.
        """
        if txn is None:
            await anyio.lowlevel.checkpoint()
            await self._acknowledge(message)
        else:
            await _noticing(partial(self._acknowledge, message, txn))

    async def _acknowledge(
        self, message: Message[Any] | MessageId | Iterable[Message[Any] | MessageId], txn: Transaction | None = None
    ) -> None:
        """Do what `acknowledge` does, but no checkpoint where nothing has to be waited for."""
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
        """Never deliver this message again, nor any before it in its topic or partition; `txn` as of `acknowledge`.

        InvalidConfiguration on Shared and KeyShared subscriptions, where "before" means nothing, and as `acknowledge`.
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
        """The interceptors hear what becomes of acknowledgements, unless that is cancelled: then nobody knows."""
        try:
            yield
        except Exception as error:
            for message_id in message_ids:
                tell(message_id, error)
            raise
        for message_id in message_ids:
            tell(message_id, None)

    def negative_acknowledge(self, message: Message[Any] | MessageId) -> None:
        """Deliver this message again, after `negative_ack_redelivery_delay` seconds, or as long as
        `negative_ack_redelivery_backoff` says (for which an id is a message that came for the first time); of a batch
        all of it.

        On Exclusive and Failover, which keep their order, everything unacknowledged of its topic or partition comes
        again then. With a `dead_letter_policy` it may go to the dead letters instead. InvalidConfiguration as
        `acknowledge`.
        """
        count = message.redelivery_count() if isinstance(message, Message) else 0
        self._parts.of(message).negative_acknowledge(_id(message), count)

    async def reconsume_later(
        self, message: Message[Any], delay: float, properties: Mapping[str, str] | None = None
    ) -> None:
        """Deliver this message again after `delay` seconds, through the retry letter topic, and acknowledge it here.

        The one that comes has these `properties`, too, and some that say where it came from and how often (PIP-22:
        REAL_TOPIC, ORIGIN_MESSAGE_ID, RECONSUMETIMES ...). After `max_redeliver_count` times it goes to the dead letter
        topic. Only Shared and KeyShared subscriptions wait for the delay. Raises what publishing or acknowledging does:
        then the message comes again at once. InvalidConfiguration without `retry_enable`.
        """
        await anyio.lowlevel.checkpoint()
        policy = self._options.dead_letter_policy
        if not self._options.retry_enable or policy is None:
            raise InvalidConfiguration("reconsume_later needs retry_enable")
        part = self._parts.of(message)
        policy = of_topic(policy, part.topic, self._options.subscription_name)
        try:
            await send_back(self._letters, policy, message, delay, properties or {})
            await self._acknowledge(message)  # no checkpoint in between: the letter is published
        except PulsarError:
            part.redeliver(message.message_id())
            raise

    async def redeliver_unacknowledged_messages(self) -> None:
        """Deliver everything again, now, that this consumer got and did not acknowledge."""
        await anyio.lowlevel.checkpoint()
        await self._parts.each(lambda part: part.redeliver_unacknowledged_messages())

    # ---- moving about

    async def seek(self, target: Target | Callable[[str], Target | None]) -> None:
        """Go on behind a message, or at the first one published at a time: milliseconds since the epoch, or a datetime.
        A function says that for each topic or partition, None: stay.

        With `start_message_id_inclusive` at the message itself. It moves the whole subscription: what is behind the
        target comes again, acknowledged or not, and what is before it does not. Of a partitioned topic a message moves
        its own partition; MessageId.earliest and latest, and a time, move all. Raises the broker's refusal.
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
        """Go on at the message of this index (`Message.index`), of a batch inside it (PIP-415).

        If it is deleted already, at the earliest. It takes connect's admin_url and a consumer of one topic or
        partition: InvalidConfiguration; otherwise it raises admin.errors.NotFound where there is no such message, and
        other refusals.
        """
        await anyio.lowlevel.checkpoint()
        part = self._parts.only("an index")
        await part.seek(await message_at(self._core.admin.topics, part.topic, index), inclusive=True)

    async def acknowledge_index(self, index: int) -> None:
        """Never deliver the message of this index (`Message.index`), received or not (PIP-415).

        One of a batch alone, which takes a broker with acknowledgmentAtBatchIndexLevelEnabled. Raises as
        `seek_to_index`.
        """
        await anyio.lowlevel.checkpoint()
        part = self._parts.only("an index")
        message_id = await message_at(self._core.admin.topics, part.topic, index)
        if message_id != MessageId.earliest:
            await part.acknowledge_alone(message_id)

    async def get_last_message_ids(self) -> list[MessageId]:
        """The last message of each topic or partition; of a compacted topic the last that is left (PIP-429).

        Ledger and entry are -1 if there is none. Raises what a `payload_to_message_id_converter` raises.
        """
        await anyio.lowlevel.checkpoint()
        return [(await part.last_message())[0] for part in self._parts.all]

    # ---- the end

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close. Raises the broker's refusal, as while others are subscribed, unless
        `force` throws them out."""
        await anyio.lowlevel.checkpoint()
        await self._parts.each(lambda part: part.unsubscribe(force=force))
        await self.aclose()

    async def aclose(self) -> None:
        """Leave the subscription; what is not acknowledged goes to others. A second call does nothing."""
        try:
            await self._parts.aclose()
        finally:
            try:
                await self._letters.aclose()
            finally:
                self._interceptors.close()


async def _noticing(call: Callable[[], Awaitable[None]]) -> None:
    """Make a call that is a checkpoint; be one where it fails before that."""
    try:
        await call()
    except PulsarError:
        await anyio.lowlevel.checkpoint()
        raise


def _id(message: Message[Any] | MessageId) -> MessageId:
    return message if isinstance(message, MessageId) else message.message_id()
