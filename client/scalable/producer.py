"""Publish to a scalable topic."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Generic
from uuid import uuid4

import anyio
import anyio.lowlevel
from typing_extensions import Unpack

from pulsarium.client.connection.waiting import printable
from pulsarium.client.core import Core
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import (
    TRANSIENT,
    AlreadyClosed,
    InvalidTxnStatusError,
    ProducerFenced,
    PulsarError,
    TopicNotFound,
    TopicTerminated,
    copy_of,
)
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import MessageOptions, draft_of
from pulsarium.client.producer.options import BatchingType, ProducerAccessMode, ProducerOptions
from pulsarium.client.producer.outbox import MemoryLimit, Room
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.producer.topic_producer import TopicProducer
from pulsarium.client.scalable.lanes import Event, Lane, Lanes, Sending, State
from pulsarium.client.scalable.layout import Hashing, Layout, Segment
from pulsarium.client.scalable.session import LayoutSession
from pulsarium.client.schema.of_info import AutoProduceBytesSchema
from pulsarium.client.schema.schema import T
from pulsarium.client.statistics import ProducerStatistics, Sent
from pulsarium.client.together import together
from pulsarium.client.transaction.transaction import Transaction
from pulsarium.proto import routing

MANAGED = "__pulsar.v5.managed"
"""The property by which brokers tell producers and consumers of scalable topics from others."""
_GONE = (TopicTerminated, TopicNotFound)
_NO_LIMIT = 2**31  # messages: the limit is that of the whole producer

logger: logging.Logger = logging.getLogger(__name__)


class ScalableProducer(Generic[T]):
    """A producer of a scalable topic, made by `ScalableTopics.create_producer`, open inside its `async with` block.

    The key of a message chooses the segment. Messages of one key are stored in the order of a task's calls, even while
    segments are split and merged. Messages without a key take turns between the segments, and have no order.

    When a segment is sealed, the messages without a receipt move to its successors. A message whose receipt was lost
    may be stored twice then, as after a lost connection.

    At the end of the block the producer waits for the receipts of all messages, at most for the client's
    `operation_timeout`. After the block, calls raise `AlreadyClosed`.
    """

    def __init__(self, core: Core, options: ProducerOptions[T]) -> None:
        """Check the options without sending anything. Raise `CryptoError` for encryption keys that cannot be used."""
        self._core = core
        self._options = options
        self._name = options.producer_name or f"pulsarium-{uuid4().hex[:10]}"
        self._encoder = Encoder(options.compression_type.value, options.encryption_keys, options.crypto_key_reader)
        self._room = Room(options.topic, options.max_pending_messages, core.memory)
        self._session = LayoutSession(core.brokers, options.topic, self._on_layout, self._end)
        self._lanes: Lanes | None = None
        self._numbers = 0
        self._last_sequence_id = -1
        self._counts = Sent()
        self._is_pumping = False
        self._pump_again = False
        self._error: PulsarError | None = None
        self._settled_one = anyio.Event()
        self._scope = anyio.CancelScope()

    async def __aenter__(self) -> ScalableProducer[T]:
        try:
            layout = await self._session.open()
            brokers = self._core.brokers
            if isinstance(self._options.schema, AutoProduceBytesSchema):
                self._options = replace(self._options, schema=await self._options.schema.on(brokers, layout.topic))
            self._lanes = Lanes(layout)
            if self._options.access_mode is not ProducerAccessMode.Shared:  # a collision shall be known now
                await together([partial(self._open_first, one) for one in layout.active], all_or_none=True)
        except BaseException:
            self.abandon()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.aclose()
        finally:
            self.abandon()

    def topic(self) -> str:
        """Return the canonical name of the topic, `topic://tenant/namespace/topic`."""
        layout = self._session.layout
        return self._options.topic if layout is None else layout.topic

    def producer_name(self) -> str:
        """Return the name of the producer. Its producer of segment N is called `<name>-seg-N`."""
        return self._name

    def last_sequence_id(self) -> int:
        """Return the highest sequence id of a published message, or -1. Segments have separate sequence ids."""
        lanes = () if self._lanes is None else self._lanes.all
        open_ones = [lane.producer.last_sequence_id for lane in lanes if lane.producer is not None]
        return max([self._last_sequence_id, *open_ones])

    async def send(
        self, content: T | None, *, txn: Transaction | None = None, **options: Unpack[MessageOptions]
    ) -> MessageId:
        """Publish a message, wait for its receipt, and return its message id.

        Args:
            content: A value of the producer's schema, bytes without a schema. None is a message without a value.
            txn: A transaction of `ScalableTopics.transaction`.
            **options: Options of the message, as in `MessageOptions`. `partition_key` is the key.

        Returns:
            The id of the message in its segment.

        Raises:
            MessageTooBig: The message, or its batch, is larger than the broker allows.
            InvalidMessage: The value or an option is invalid.
            InvalidTxnStatusError: The transaction is not open, or not of scalable topics.
            TopicTerminated: The segment was sealed, and no newer layout came within `operation_timeout` seconds.
            AlreadyClosed: The producer is closed.
            PulsarError: The error with which the broker refused the message.
        """
        receipt = await self.submit(content, txn=txn, **options)
        if not receipt.is_done():
            self._send_batches()
        return await receipt.wait()

    async def submit(
        self, content: T | None, *, txn: Transaction | None = None, **options: Unpack[MessageOptions]
    ) -> Receipt:
        """Send a message without waiting for its receipt, and return the receipt.

        The call waits only while `max_pending_messages` or the client's `memory_limit` is reached. Each call is a
        checkpoint.

        Args:
            content: The value, as in `send`.
            txn: The transaction of the message, as in `send`.
            **options: Options of the message, as in `MessageOptions`.

        Returns:
            The receipt, whose `wait` returns the message id or raises the errors of `send`.

        Raises:
            InvalidMessage: The value or an option is invalid.
            InvalidTxnStatusError: The transaction is not open, or not of scalable topics.
            AlreadyClosed: The producer is closed.
        """
        await anyio.lowlevel.checkpoint()
        draft = draft_of(self._options.schema, content, options)
        lanes = self._open_lanes()
        if txn is not None:
            if not txn._is_scalable:
                raise InvalidTxnStatusError(f"{txn.id()} is no transaction of scalable topics")
            with txn._operation():
                draft.txn = txn.id()
                await self._make_room(len(draft.content))
                txn._sending(draft.receipt)
        else:
            await self._make_room(len(draft.content))
        self._numbers += 1
        has_own = draft.metadata.HasField("sequence_id")
        sending = Sending(self._numbers, draft, draft.receipt, txn, has_own)
        if self._error is not None:
            self._fail(sending, self._error)
            raise copy_of(self._error)
        if lanes.put(sending):
            self._pump()
        return sending.receipt

    async def flush(self) -> None:
        """Send all waiting batches, and wait until every message sent so far is published or has failed.

        Raises:
            AlreadyClosed: The producer is closed.
            PulsarError: The error that ended the producer.
        """
        await anyio.lowlevel.checkpoint()
        if self._error is not None:
            raise copy_of(self._error)
        last = self._numbers
        while self._has_open(last):
            self._send_batches()
            self._settled_one = anyio.Event()
            await self._settled_one.wait()
        if self._error is not None:
            raise copy_of(self._error)

    def statistics(self) -> ProducerStatistics:
        """Return the counts of sent and pending messages, and the latencies."""
        return self._counts.picture(self._room.messages, self._room.bytes)

    async def aclose(self) -> None:
        """Flush for at most `operation_timeout`, and close the producer on the brokers. A second call does nothing."""
        if self._error is not None or self._lanes is None:
            return
        try:
            with anyio.move_on_after(self._core.brokers.operation_timeout):
                await self.flush()
            producers = [lane.producer for lane in self._lanes.all if lane.producer is not None]
            await together([producer.aclose for producer in producers])
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the producer at once. Messages without a receipt fail with `AlreadyClosed`."""
        self._end(AlreadyClosed(f"{self.topic()}: the producer was closed"))

    # ---- the way of a message

    @property
    def _hashing(self) -> Hashing | None:
        return None if self._session.layout is None else self._session.layout.hashing

    def _open_lanes(self) -> Lanes:
        if self._error is not None:
            raise copy_of(self._error)
        if self._lanes is None:
            raise AlreadyClosed(f"{self.topic()}: the producer is not open: use it inside its `async with` block")
        return self._lanes

    async def _make_room(self, size: int) -> None:
        try:
            self._room.acquire_nowait(size)
        except PulsarError:
            self._send_batches()  # the pending messages may be those of our own batches
            await self._room.acquire(size)

    def _pump(self) -> None:
        """Open the producers of segments that messages wait for, and send the messages that can be sent now."""
        self._pump_again = True
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            while self._pump_again and self._lanes is not None and self._error is None:
                self._pump_again = False
                for segment in self._lanes.missing():
                    self._start(segment)
                for lane, sending in self._lanes.ready(self._is_registered):
                    self._send(lane, sending)
        finally:
            self._is_pumping = False

    def _send(self, lane: Lane, sending: Sending) -> None:
        assert lane.producer is not None
        draft = sending.again()
        segment, key = lane.segment, draft.key
        if key is not None and not segment.is_legacy and self._hashing is Hashing.HIGH_BITS:
            draft.bucket, draft.bucket_hash = segment.bucket_of(key), routing.bucket_hash(key)
        draft.receipt.then(partial(self._settled, lane, sending))
        lane.producer.room.acquire_nowait(len(draft.content))
        try:
            lane.producer.add(draft)
        except PulsarError as error:
            draft.receipt._fail(error)

    def _settled(self, lane: Lane, sending: Sending, message_id: MessageId | None, error: PulsarError | None) -> None:
        assert self._lanes is not None
        if message_id is not None:
            self._room.release(1, len(sending.draft.content))
            sending.receipt._settle(message_id)
        elif isinstance(error, _GONE) and self._error is None:
            lane.error = error
            self._lanes.put(sending)
            lane.step(Event.SEAL)
            self._retire(lane)
        else:
            assert error is not None
            self._fail(sending, error)
        self._lanes.settled(lane, sending)
        self._settled_one.set()
        if isinstance(error, ProducerFenced):
            self._end(error)
        elif error is not None and not isinstance(error, _GONE) and _has_ended(lane):
            self._lanes.end(lane)
        if lane.state is State.DRAINED:
            self._drained(lane)

    def _fail(self, sending: Sending, error: PulsarError) -> None:
        self._room.release(1, len(sending.draft.content))
        sending.receipt._fail(copy_of(error))

    def _has_open(self, last: int) -> bool:
        """Return whether a message up to this number has no outcome."""
        if self._lanes is None:
            return False
        waiting = any(sending.number <= last for sending in self._lanes.waiting)
        return waiting or any(number <= last for lane in self._lanes.all for number in lane.sends)

    def _send_batches(self) -> None:
        for lane in () if self._lanes is None else self._lanes.all:
            if lane.producer is not None and lane.producer.has_batch:
                lane.producer.send_batch()

    def _is_registered(self, lane: Lane, sending: Sending) -> bool:
        """Return whether the message's transaction knows the segment. Register the segment otherwise."""
        txn = sending.txn
        if txn is None or txn._has_produced_to(lane.segment.topic):
            return True
        self._core.brokers.task_group.start_soon(self._register, txn, lane.segment, sending)
        return False

    async def _register(self, txn: Transaction, segment: Segment, sending: Sending) -> None:
        with self._scope:
            try:
                await txn._produces_to(segment.topic)
            except PulsarError as error:
                if self._lanes is not None and self._lanes.remove(sending):
                    self._fail(sending, error)
            self._pump()

    # ---- the segments

    def _on_layout(self, layout: Layout) -> None:
        if self._lanes is None or self._error is not None:
            return
        for lane in self._lanes.apply(layout):
            self._close(lane)
        for lane in self._lanes.all:
            self._retire(lane)
        self._pump()

    def _retire(self, lane: Lane) -> None:
        """Close the producer of a sealed segment in a task. Messages without a receipt come back then."""
        if lane.state is State.SEALED and lane.producer is not None and not lane.is_retiring:
            lane.is_retiring = True
            error = lane.error or TopicTerminated(f"{lane.segment.topic}: the segment is sealed")
            self._core.brokers.task_group.start_soon(lane.producer.retire, error)

    def _start(self, segment: Segment) -> Lane:
        """Add a lane, and open its producer in a task."""
        lane = self._new_lane(segment)
        self._core.brokers.task_group.start_soon(self._open, lane)
        return lane

    def _new_lane(self, segment: Segment) -> Lane:
        assert self._lanes is not None
        lane = Lane(segment)
        self._lanes.add(lane)
        return lane

    async def _open_first(self, segment: Segment) -> None:
        lane = self._new_lane(segment)
        lane.producer = await self._opened(segment)
        lane.step(Event.OPENED)

    async def _open(self, lane: Lane) -> None:
        with lane.scope:
            try:
                producer = await self._opened(lane.segment)
            except PulsarError as error:
                self._refused(lane, error)
                return
            if lane.state is State.ENDED:
                producer.abandon()
                return
            lane.producer = producer
            lane.step(Event.OPENED)
            self._pump()

    async def _opened(self, segment: Segment) -> TopicProducer:
        core = self._core
        name = f"{self._name}-seg-{segment.id}"
        properties = {**self._options.properties, MANAGED: "true"}
        options: ProducerOptions[Any] = replace(
            self._options,
            topic=segment.topic,
            producer_name=name,
            properties=properties,
            batching_type=BatchingType.KeyBased if segment.bucket_splits else BatchingType.Default,
        )
        room = Room(segment.topic, _NO_LIMIT, MemoryLimit())
        producer = TopicProducer(core.brokers, segment.topic, options, self._encoder, room, name, self._counts)
        try:
            while True:
                try:
                    await producer.open()
                    return producer
                except TRANSIENT as error:
                    core.brokers.waiting.tell(error)
        except BaseException:
            producer.abandon()
            raise

    def _refused(self, lane: Lane, error: PulsarError) -> None:
        """Handle a producer that could not be opened."""
        if lane.state is State.ENDED or self._lanes is None:
            return
        logger.info("%s: %s", lane.segment.topic, printable(error))
        if isinstance(error, _GONE):
            lane.error = error
            lane.step(Event.SEAL)
            self._drained(lane)
        elif isinstance(error, ProducerFenced):
            self._end(error)
        else:
            for sending in self._lanes.take_of(lane.segment.id):
                self._fail(sending, error)
            self._lanes.end(lane)

    def _drained(self, lane: Lane) -> None:
        """End a lane without messages, now, or as soon as a layout says that its segment is sealed."""
        assert self._lanes is not None
        for over in self._lanes.over():
            self._close(over)
        if lane.state is State.DRAINED:
            self._core.brokers.task_group.start_soon(self._expire, lane)
        self._pump()

    async def _expire(self, lane: Lane) -> None:
        """Fail the messages of a segment that is gone if no newer layout comes."""
        with self._scope:
            await anyio.sleep(self._core.brokers.operation_timeout)
            if lane.state is State.DRAINED and self._lanes is not None and lane.error is not None:
                self._lanes.end(lane)
                self._close(lane)
                for sending in self._lanes.take_of(lane.segment.id):
                    self._fail(sending, lane.error)
                self._settled_one.set()

    def _close(self, lane: Lane) -> None:
        lane.scope.cancel()
        if lane.producer is not None:
            self._last_sequence_id = max(self._last_sequence_id, lane.producer.last_sequence_id)
            lane.producer.abandon()

    def _end(self, error: PulsarError) -> None:
        """End the producer after it was closed or refused for good."""
        if self._error is not None:
            return
        self._error = error
        self._scope.cancel()
        self._session.close()
        if self._lanes is not None:
            for lane in self._lanes.all:
                self._lanes.end(lane)
                self._close(lane)
            for sending in self._lanes.take_all():
                self._fail(sending, error)
        self._settled_one.set()


def _has_ended(lane: Lane) -> bool:
    return lane.producer is not None and lane.producer.has_ended
