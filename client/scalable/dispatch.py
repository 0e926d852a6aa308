"""Send messages to the segments of a scalable topic, while the layout changes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from pulsarium.client.connection.waiting import shortened
from pulsarium.client.core import Core
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import (
    TRANSIENT,
    ProducerFenced,
    PulsarError,
    TopicNotFound,
    TopicTerminated,
    copy_of,
)
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.options import BatchingType, ProducerOptions
from pulsarium.client.producer.room import Limit, Room
from pulsarium.client.producer.topic_producer import TopicProducer
from pulsarium.client.scalable.lanes import Lane, LaneEvent, Lanes, LaneState, Sending
from pulsarium.client.scalable.layout import Hashing, Layout, Segment
from pulsarium.client.statistics import SentCounts
from pulsarium.client.transaction.transaction import Transaction
from pulsarium.proto import routing

MANAGED = "__pulsar.v5.managed"
"""The property by which brokers tell producers and consumers of scalable topics from others."""
_GONE = (TopicTerminated, TopicNotFound)
_NO_LIMIT = 2**31  # messages: the limit is that of the whole producer

logger: logging.Logger = logging.getLogger(__name__)


class Dispatch:
    """The tasks that open segments and send messages to them. `Lanes` decides the order."""

    def __init__(
        self,
        core: Core,
        layout: Layout,
        options: ProducerOptions[Any],
        encoder: Encoder,
        name: str,
        room: Room,
        counts: SentCounts,
        on_fenced: Callable[[PulsarError], None],
    ) -> None:
        """Begin with the first layout.

        Args:
            core: The parts of the client.
            layout: The first layout.
            options: The options of the producer.
            encoder: The encoder of the producer's messages.
            name: The name of the producer, in front of the number of each segment.
            room: The limits of all messages without an outcome.
            counts: The counts of the producer.
            on_fenced: Called when another producer has exclusive access. Must end the dispatch.
        """
        self._core = core
        self._options = options
        self._name = name
        self._room = room
        self._counts = counts
        self._on_fenced = on_fenced
        self._encoder = encoder
        self._lanes = Lanes(layout)
        self._last_sequence_id = -1
        self._is_pumping = False
        self._pump_again = False
        self._error: PulsarError | None = None
        self._settled_one = anyio.Event()
        self._scopes: set[anyio.CancelScope] = set()  # around tasks that end with the dispatch

    @property
    def last_sequence_id(self) -> int:
        """Return the highest sequence id of a published message, or -1."""
        return max([self._last_sequence_id, *(producer.last_sequence_id for producer in self.producers)])

    @property
    def producers(self) -> list[TopicProducer]:
        """Return the open producers of segments."""
        return [lane.producer for lane in self._lanes.all if lane.producer is not None]

    def add(self, sending: Sending) -> None:
        """Send a message whose room is reserved, now or when its segment takes it."""
        if self._error is not None:
            self.fail(sending, self._error)
            raise copy_of(self._error)
        if self._lanes.put(sending):
            self._pump()

    async def another(self) -> None:
        """Wait until one more message has an outcome, or the dispatch ends."""
        self._settled_one = anyio.Event()
        await self._settled_one.wait()

    def end(self, error: PulsarError) -> None:
        """Close all producers. Messages without an outcome fail with `error`."""
        if self._error is not None:
            return
        self._error = error
        for scope in self._scopes:
            scope.cancel()
        for lane in self._lanes.all:
            self._lanes.end(lane)
            self._close(lane)
        for sending in self._lanes.take_all():
            self.fail(sending, error)
        self._settled_one.set()

    # ---- the way of a message

    def _go_on(self) -> None:
        """Send messages that had to wait. They do not wait for their batches, too."""
        self._pump()
        self.send_batches()

    def _pump(self) -> None:
        """Open the producers of segments that messages wait for, and send the messages that can be sent now."""
        self._pump_again = True
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            while self._pump_again and self._error is None:
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
        if key is not None and not segment.is_legacy and self._lanes.layout.hashing is Hashing.HIGH_BITS:
            draft.bucket, draft.bucket_hash = segment.bucket_of(key), routing.bucket_hash(key)
        draft.receipt.then(partial(self._settled, lane, sending))
        lane.producer.room.acquire_nowait(len(draft.content))
        try:
            lane.producer.add(draft)
        except PulsarError as error:
            draft.receipt._fail(error)

    def _settled(self, lane: Lane, sending: Sending, message_id: MessageId | None, error: PulsarError | None) -> None:
        if message_id is not None:
            self._room.release(1, len(sending.draft.content))
            sending.receipt._settle(message_id)
        elif isinstance(error, _GONE) and self._error is None:
            lane.error = error
            self._lanes.put(sending)
            lane.step(LaneEvent.SEAL)
            self._retire(lane)
        else:
            assert error is not None
            self.fail(sending, error)
        self._lanes.settled(lane, sending)
        self._settled_one.set()
        if isinstance(error, ProducerFenced):
            self._on_fenced(error)
        elif error is not None and not isinstance(error, _GONE) and _has_ended(lane):
            self._lanes.end(lane)
        if lane.state is LaneState.DRAINED:
            self._drained(lane)

    def fail(self, sending: Sending, error: PulsarError) -> None:
        """Fail a message that no segment has."""
        self._room.release(1, len(sending.draft.content))
        sending.receipt._fail(copy_of(error))

    def has_open(self, last: int) -> bool:
        """Return whether a message up to this number has no outcome."""
        waiting = any(sending.number <= last for sending in self._lanes.waiting)
        return waiting or any(number <= last for lane in self._lanes.all for number in lane.sends)

    def send_batches(self) -> None:
        """Send the messages of all batches."""
        for lane in self._lanes.all:
            if lane.producer is not None and lane.producer.has_batch:
                lane.producer.send_batch()

    def _is_registered(self, lane: Lane, sending: Sending) -> bool:
        """Return whether the message's transaction knows the segment. Register the segment otherwise."""
        txn = sending.txn
        if txn is None or txn._has_produced_to(lane.segment.topic):
            return True
        self._spawn(partial(self._register, txn, lane.segment, sending))
        return False

    async def _register(self, txn: Transaction, segment: Segment, sending: Sending) -> None:
        try:
            await txn._produces_to(segment.topic)
        except PulsarError as error:
            if self._lanes.remove(sending):
                self.fail(sending, error)
        self._go_on()

    def _spawn(self, call: Callable[[], Awaitable[None]]) -> None:
        """Run a task until the dispatch ends."""

        async def run() -> None:
            with anyio.CancelScope() as scope:
                self._scopes.add(scope)
                try:
                    await call()
                finally:
                    self._scopes.discard(scope)

        self._core.brokers.task_group.start_soon(run)

    # ---- the segments

    def apply(self, layout: Layout) -> None:
        """Follow a newer layout."""
        if self._error is not None:
            return
        for lane in self._lanes.apply(layout):
            self._close(lane)
        for lane in self._lanes.all:
            self._retire(lane)
        self._go_on()

    def _retire(self, lane: Lane) -> None:
        """Close the producer of a sealed segment in a task. Messages without a receipt come back then."""
        if lane.state is LaneState.SEALED and lane.producer is not None and not lane.is_retiring:
            lane.is_retiring = True
            error = lane.error or TopicTerminated(f"{lane.segment.topic}: the segment is sealed")
            self._core.brokers.task_group.start_soon(lane.producer.retire, error)

    def _start(self, segment: Segment) -> Lane:
        """Add a lane, and open its producer in a task."""
        lane = self._new_lane(segment)
        self._core.brokers.task_group.start_soon(self._open, lane)
        return lane

    def _new_lane(self, segment: Segment) -> Lane:
        lane = Lane(segment)
        self._lanes.add(lane)
        return lane

    async def open_now(self, segment: Segment) -> None:
        """Open the producer of a segment. Raise the broker's refusal."""
        lane = self._new_lane(segment)
        lane.producer = await self._opened(segment)
        lane.step(LaneEvent.OPENED)

    async def _open(self, lane: Lane) -> None:
        with lane.scope:
            try:
                producer = await self._opened(lane.segment)
            except PulsarError as error:
                self._refused(lane, error)
                return
            if lane.state is LaneState.ENDED:
                producer.abandon()
                return
            lane.producer = producer
            lane.step(LaneEvent.OPENED)
            self._go_on()

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
        room = Room(segment.topic, _NO_LIMIT, Limit())
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
        if lane.state is LaneState.ENDED:
            return
        logger.info("%s: %s", lane.segment.topic, shortened(error))
        if isinstance(error, _GONE):
            lane.error = error
            lane.step(LaneEvent.SEAL)
            self._drained(lane)
        elif isinstance(error, ProducerFenced):
            self._on_fenced(error)
        else:
            for sending in self._lanes.take_of(lane.segment.id):
                self.fail(sending, error)
            self._lanes.end(lane)

    def _drained(self, lane: Lane) -> None:
        """End a lane without messages, now, or as soon as a layout says that its segment is sealed."""
        for over in self._lanes.over():
            self._close(over)
        if lane.state is LaneState.DRAINED:
            self._spawn(partial(self._expire, lane))
        self._go_on()

    async def _expire(self, lane: Lane) -> None:
        """Fail the messages of a segment that is gone if no newer layout comes."""
        await anyio.sleep(self._core.brokers.operation_timeout)
        if lane.state is LaneState.DRAINED and lane.error is not None:
            self._lanes.end(lane)
            self._close(lane)
            for sending in self._lanes.take_of(lane.segment.id):
                self.fail(sending, lane.error)
            self._settled_one.set()

    def _close(self, lane: Lane) -> None:
        lane.scope.cancel()
        if lane.producer is not None:
            self._last_sequence_id = max(self._last_sequence_id, lane.producer.last_sequence_id)
            lane.producer.abandon()


def _has_ended(lane: Lane) -> bool:
    return lane.producer is not None and lane.producer.has_ended
