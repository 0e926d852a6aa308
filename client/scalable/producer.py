"""Publish to a scalable topic."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Generic
from uuid import uuid4

import anyio
import anyio.lowlevel
from typing_extensions import Unpack

from pulsarium.client.blocks import Publishing
from pulsarium.client.core import Core
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import (
    AlreadyClosed,
    InvalidTxnStatusError,
    PulsarError,
    copy_of,
)
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import MessageOptions, draft_of
from pulsarium.client.producer.options import ProducerAccessMode, ProducerOptions
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.producer.room import Room
from pulsarium.client.scalable.dispatch import Dispatch
from pulsarium.client.scalable.lanes import Sending
from pulsarium.client.scalable.layout import Layout
from pulsarium.client.scalable.session import LayoutSession
from pulsarium.client.schema.of_info import AutoProduceBytesSchema
from pulsarium.client.schema.schema import T
from pulsarium.client.statistics import ProducerStatistics, SentCounts
from pulsarium.client.together import together
from pulsarium.client.transaction.transaction import Transaction


class ScalableProducer(Publishing, Generic[T]):
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
        self._encoder = Encoder(options.compression_type.value, options.encryption_keys, options.crypto_key_reader)
        self._name = options.producer_name or f"pulsarium-{uuid4().hex[:10]}"
        self._room = Room(options.topic, options.max_pending_messages, core.memory)
        self._session = LayoutSession(core.brokers, options.topic, self._on_layout, self._end)
        self._dispatch: Dispatch | None = None
        self._numbers = 0
        self._counts = SentCounts()
        self._error: PulsarError | None = None

    async def __aenter__(self) -> ScalableProducer[T]:
        try:
            layout = await self._session.open()
            brokers = self._core.brokers
            await self._encoder.open(brokers.task_group)
            if isinstance(self._options.schema, AutoProduceBytesSchema):
                self._options = replace(self._options, schema=await self._options.schema.on(brokers, layout.topic))
            self._dispatch = Dispatch(
                self._core, layout, self._options, self._encoder, self._name, self._room, self._counts, self._end
            )
            if self._options.access_mode is not ProducerAccessMode.Shared:  # a collision shall be known now
                await together([partial(self._dispatch.open_now, one) for one in layout.active], all_or_none=True)
        except BaseException:
            self.abandon()
            raise
        return self

    def __repr__(self) -> str:
        return f"<ScalableProducer {self._name!r} of {self.topic()}>"

    def topic(self) -> str:
        """Return the canonical name of the topic, `topic://tenant/namespace/topic`."""
        layout = self._session.layout
        return self._options.topic if layout is None else layout.topic

    def producer_name(self) -> str:
        """Return the name of the producer. Its producer of segment N is called `<name>-seg-N`."""
        return self._name

    def last_sequence_id(self) -> int:
        """Return the highest sequence id of a published message, or -1. Segments have separate sequence ids."""
        return -1 if self._dispatch is None else self._dispatch.last_sequence_id

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
        if self._dispatch is not None and not receipt.is_done():
            self._dispatch.send_batches()
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
        dispatch = self._opened()
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
        dispatch.add(sending)
        return sending.receipt

    async def flush(self) -> None:
        """Send all waiting batches, and wait until every message sent so far is published or has failed.

        Raises:
            AlreadyClosed: The producer is closed.
            PulsarError: The error that ended the producer.
        """
        await anyio.lowlevel.checkpoint()
        dispatch, last = self._opened(), self._numbers
        while dispatch.has_open(last):
            dispatch.send_batches()
            await dispatch.another()
        if self._error is not None:
            raise copy_of(self._error)

    def statistics(self) -> ProducerStatistics:
        """Return the counts of sent and pending messages, and the latencies."""
        return self._counts.picture(self._room.messages, self._room.bytes)

    async def aclose(self) -> None:
        """Flush for at most `operation_timeout`, and close the producer on the brokers. A second call does nothing."""
        if self._error is not None or self._dispatch is None:
            return
        try:
            with anyio.move_on_after(self._core.brokers.operation_timeout):
                await self.flush()
            await together([producer.aclose for producer in self._dispatch.producers])
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the producer at once. Messages without a receipt fail with `AlreadyClosed`."""
        self._end(AlreadyClosed(f"{self.topic()}: the producer was closed"))

    # ---- private

    def _opened(self) -> Dispatch:
        if self._error is not None:
            raise copy_of(self._error)
        if self._dispatch is None:
            raise AlreadyClosed(f"{self.topic()}: the producer is not open: use it inside its `async with` block")
        return self._dispatch

    async def _make_room(self, size: int) -> None:
        try:
            self._room.acquire_nowait(size)
        except PulsarError:
            if self._dispatch is not None:
                self._dispatch.send_batches()  # the pending messages may be those of our own batches
            await self._room.acquire(size)

    def _on_layout(self, layout: Layout) -> None:
        if self._dispatch is not None:
            self._dispatch.apply(layout)

    def _end(self, error: PulsarError) -> None:
        """End the producer after it was closed or refused for good."""
        if self._error is None:
            self._error = error
            self._session.close()
            self._encoder.close()
            if self._dispatch is not None:
                self._dispatch.end(error)
