"""Publish to one topic without partitions, or to one partition."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.link import Link
from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import (
    TRANSIENT,
    AlreadyClosed,
    ConnectError,
    ProducerBlockedQuotaExceededException,
    ProducerFenced,
    PulsarError,
    copy_of,
)
from pulsarium.client.producer.commands import close_producer, must_enable_transactions, open_producer
from pulsarium.client.producer.draft import Draft
from pulsarium.client.producer.options import BatchingType, ProducerAccessMode, ProducerOptions
from pulsarium.client.producer.outbox import Messages, Outbox, too_big
from pulsarium.client.producer.packing import (
    KeyBatch,
    MessageBatch,
    PackedBatch,
    Splitter,
    encode,
    metadata_of,
    metadata_of_packed,
)
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.producer.room import Room
from pulsarium.client.statistics import SentCounts
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

QUEUE_AGAIN = 1.0  # seconds until a producer that waited for exclusive access asks again after a lost connection


class TopicProducer:
    """A producer of one topic without partitions, or of one partition.

    Messages are sent in the order of the calls. After a lost connection, or when the broker closes the producer,
    it is opened again. Then it sends the messages without a receipt again, in the same order.
    """

    def __init__(
        self,
        brokers: Brokers,
        topic: str,
        options: ProducerOptions[Any],
        encoder: Encoder,
        room: Room,
        name: str,
        counts: SentCounts,
    ) -> None:
        """Prepare a producer of `topic`, a full name. With `name` "" the broker chooses the name."""
        self.topic = topic
        self._options = options
        self._brokers = brokers
        self._id = brokers.next_producer_id()
        self._encoder = encoder
        self._name = name
        self._link = Link(brokers, topic, self._open, counts, on_failed=self._end, what="producer of")
        self.room: Room = room
        """The limits of pending messages. A message occupies its part until it is published."""
        self.topic_epoch: int | None = None
        """Number of producers that had exclusive access before this one (PIP-68), or None with shared access."""
        self._outbox = Outbox(TopicName.parse(topic).partition_index, room.release, counts)
        self._epoch = 0
        self._next_sequence_id = 0
        self._highest_sequence_id = -1  # of all messages so far
        self._omitted = -1  # messages with sequence ids up to this one are not sent, because the topic has them
        self.max_message_size: int = 0
        """The bytes of an entry that the broker accepts, or 0 before the producer was open."""
        self._schema_version = b""
        self._splitter = Splitter(encoder, options.chunk_max_message_size or 0) if options.chunking_enabled else None
        self._by_key = options.batching_type is BatchingType.KeyBased
        batch = KeyBatch if self._by_key else MessageBatch
        self._batch = batch(options.batching_max_messages, options.batching_max_allowed_size_in_bytes)
        self._batch_begun = anyio.Event()
        self._batch_due = 0.0
        self._scope = anyio.CancelScope()
        self._opening: anyio.CancelScope | None = None  # around a request for exclusive access that may have to wait
        self._was_queued = False  # at the last opening the broker let it wait for exclusive access
        self._openings = 0  # number of attempts
        self._has_transactions = False  # since the first message of one
        self._error: PulsarError | None = None

    async def open(self) -> None:
        """Open the producer for the first time. Raise the error with which the broker refuses."""
        await self._start()
        if self._options.batching_enabled:
            self._brokers.task_group.start_soon(self._watch_batches)

    # ---- for the producer

    @property
    def producer_name(self) -> str:
        """Return the name, which the broker chooses if the application gives none."""
        return self._name

    @property
    def last_sequence_id(self) -> int:
        """Return the sequence id of the last published message, also of an earlier producer of this name, or -1."""
        return self._outbox.last_sequence_id

    @property
    def highest_sequence_id(self) -> int:
        """Return the highest sequence id of all messages so far, also of an earlier producer of this name, or -1."""
        return self._highest_sequence_id

    @property
    def is_connected(self) -> bool:
        """Return whether the producer is open on the broker."""
        return self._outbox.connection is not None

    @property
    def has_ended(self) -> bool:
        """Return whether the producer was closed or refused for good."""
        return self._error is not None

    @property
    def has_batch(self) -> bool:
        """Return whether messages wait for a batch."""
        return bool(self._batch.drafts)

    def enable_transactions(self) -> None:
        """Open the producer again with txn_enabled, where the broker needs it. Messages wait meanwhile."""
        connection, has = self._outbox.connection, self._has_transactions
        self._has_transactions = True
        if has or connection is None or not must_enable_transactions(connection.server_version):
            return
        self._outbox.connection = None
        self._brokers.task_group.start_soon(self._reopen, connection)

    def add(self, message: Draft) -> Receipt:
        """Give a number to a message whose room is reserved, and send it or put it into the batch."""
        if self._error is not None:
            self.room.release(1, len(message.content))
            raise copy_of(self._error)
        if message.metadata.HasField("sequence_id"):
            sequence_id = message.metadata.sequence_id
        else:
            sequence_id = message.metadata.sequence_id = self._next_sequence_id
            self._next_sequence_id += 1
        is_new = sequence_id > self._highest_sequence_id  # else deduplication may drop the whole entry
        if is_new:
            self._highest_sequence_id = sequence_id
        if not self._options.batching_enabled or message.deliver_at is not None or not is_new:
            self.send_batch()  # to keep the order
            self._send([message])
            return message.receipt
        if not self._batch.fits(message):
            self.send_batch()
        if not self._batch.drafts:
            self._batch_due = anyio.current_time() + self._options.batching_max_publish_delay
            self._batch_begun.set()
        self._batch.add(message)
        if self._batch.is_full:
            self.send_batch()
        return message.receipt

    def add_packed(self, batch: PackedBatch) -> Receipt:
        """Send a packed batch whose room is reserved, and return one receipt for all its messages.

        Their sequence ids are higher than `highest_sequence_id`.
        """
        if self._error is not None:
            self.room.release(batch.count, batch.size)
            raise copy_of(self._error)
        self.send_batch()  # to keep the order
        self._highest_sequence_id = batch.highest_sequence_id
        receipt = Receipt()
        messages = Messages(batch.sequence_id, batch.highest_sequence_id, [receipt], batch.count, batch.size)
        metadata = self._with_schema(metadata_of_packed(self._name, batch))
        self._post(messages, lambda: [self._encoder.single(metadata, batch.payload)])
        return receipt

    def omit_through(self, sequence_id: int) -> None:
        """Note that messages up to this sequence id are not sent, because an earlier producer of this name sent them.

        When the producer is opened again, and the broker turns out not to have them, the producer ends.
        """
        self._omitted = max(self._omitted, sequence_id)

    def send_batch(self) -> None:
        """Send the messages of the batch."""
        for drafts in self._batch.take():
            self._send(drafts)

    async def flush(self) -> None:
        """Send the messages of the batch, and wait until every message sent so far is published or has failed.

        Failures of single messages are raised by their receipts only.
        """
        if self._error is not None:
            await anyio.lowlevel.checkpoint()
            raise copy_of(self._error)
        pending = self._pending()
        await anyio.lowlevel.checkpoint()
        await self._published(pending)

    def _pending(self) -> list[Receipt]:
        """Send the messages of the batch, and return one receipt of each entry that has none yet."""
        self.send_batch()
        return self._outbox.pending()

    async def _published(self, pending: list[Receipt]) -> None:
        for receipt in pending:
            try:
                if receipt.is_done():
                    receipt.result()
                else:
                    await receipt.wait()
            except PulsarError:
                self._check_open()

    async def aclose(self) -> None:
        """Flush for at most `operation_timeout`, and close the producer on the broker. Canceled, close it at once."""
        if self._error is None:
            try:
                with anyio.move_on_after(self._brokers.operation_timeout):
                    await self._published(self._pending())
            finally:
                connection = self._outbox.connection
                self._end(self._closed())
                if connection is not None:
                    await self._close_on(connection)  # sends its command before it waits
        await self._link.aclose()

    async def retire(self, error: PulsarError) -> None:
        """Close the producer on the broker, and take the receipts that arrive before the broker's answer.

        Afterwards, messages without a receipt fail with `error`, in the order of the calls.
        """
        connection = self._outbox.connection
        try:
            if connection is not None:
                await self._close_on(connection)
        finally:
            self._end(error)

    def abandon(self) -> None:
        """Close the producer at once. Messages without a receipt fail with `AlreadyClosed`."""
        connection = self._outbox.connection
        self._end(self._closed())
        if connection is not None and not connection.is_lost:
            connection.detach_producer(self._id)
            self._close_nowait(connection)

    # ---- called by the connection

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None:
        """Handle the receipt of an entry."""
        self._outbox.on_receipt(receipt)

    def is_stuck(self) -> bool:
        """Return whether an entry waits for a receipt, and no receipt came since the last call."""
        return self._outbox.is_stuck()

    def on_send_error(self, error: pb.CommandSendError) -> None:
        """Handle the refusal of an entry."""
        self._outbox.on_send_error(error)

    def on_lost(self, error: PulsarError, owner: BrokerUrls | None = None) -> None:
        """Open the producer again after the broker closed it, or after the end of the connection."""
        self._outbox.connection = None
        self._link.lost(error, owner)

    # ---- private

    async def _start(self) -> None:
        while True:
            try:
                return await self._link.start()
            except TRANSIENT:
                if not self._was_queued:
                    raise
                await anyio.sleep(QUEUE_AGAIN)

    async def _reopen(self, connection: Connection) -> None:
        """Open the producer again behind the last receipts: the broker sends them before it answers CLOSE_PRODUCER."""
        with suppress(PulsarError):
            await connection.request(close_producer(self._id, connection.next_request_id()))
        if self._link.current is connection or self._error is not None:  # else it was lost meanwhile
            connection.detach_producer(self._id)
            self.on_lost(ConnectError("its first transaction begins, which this broker must know"))

    async def _open(self, connection: Connection) -> None:
        if self._epoch and self._splitter is not None:  # chunks share a sequence id: a new id tells late receipts apart
            self._id = self._brokers.next_producer_id()
        command = open_producer(self.topic, self._id, self._name, self._options)
        command.request_id = connection.next_request_id()
        command.epoch = self._epoch
        needs_them = must_enable_transactions(connection.server_version)
        if self._has_transactions or (needs_them and self._options.access_mode is not ProducerAccessMode.Shared):
            # opened again for the first transaction, a producer could lose its access to one that waits
            command.txn_enabled = self._has_transactions = True
        if self.topic_epoch is not None:
            command.topic_epoch = self.topic_epoch
        connection.attach_producer(self._id, self)
        if self._options.access_mode is ProducerAccessMode.WaitForExclusive:
            self._opening = anyio.CancelScope()
        self._openings += 1
        try:
            reply = await connection.request(
                pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=command),
                patience=self._opening,
                undo=partial(self._undo, connection, self._openings),
            )
        except BaseException as error:
            if isinstance(error, ProducerBlockedQuotaExceededException):
                self._fail_all(error)  # as Java clients do; the producer is opened again nevertheless
            connection.detach_producer(self._id)
            if isinstance(error, PulsarError) and not connection.is_lost:
                self._close_nowait(connection)  # the broker may have opened it nevertheless
            raise
        finally:
            self._was_queued = self._opening is not None and self._opening.deadline == math.inf
            self._opening = None
        if connection.is_lost:
            raise ConnectError(f"{self.topic}: the connection was lost while the producer was opened")
        if self._has_transactions and needs_them and not command.txn_enabled:
            connection.detach_producer(self._id)
            self._close_nowait(connection)
            raise ConnectError(f"{self.topic}: a transaction began while the producer was opened")
        success = reply.command.producer_success
        if self._epoch and (reason := self._cannot_continue(success.last_sequence_id)):
            connection.detach_producer(self._id)
            self._close_nowait(connection)
            raise ProducerFenced(f"{self.topic}: {reason}")
        self._opened(connection, success)

    def _close_nowait(self, connection: Connection) -> None:
        connection.send_nowait(close_producer(self._id, connection.next_request_id()))

    def _undo(self, connection: Connection, opening: int) -> None:
        """Close a producer whose opening was canceled, and which the broker may have opened or queued."""
        if opening == self._openings and not connection.is_lost:  # a later attempt uses the same id
            self._close_nowait(connection)

    def _opened(self, connection: Connection, success: pb.CommandProducerSuccess) -> None:
        if self._epoch == 0:
            initial = self._options.initial_sequence_id
            self._outbox.last_sequence_id = success.last_sequence_id if initial is None else initial
            self._next_sequence_id = self._outbox.last_sequence_id + 1
            self._highest_sequence_id = self._outbox.last_sequence_id
        if success.HasField("topic_epoch"):
            self.topic_epoch = success.topic_epoch
        if self._options.schema.info is not None:
            self._schema_version = success.schema_version
        self._epoch += 1
        self._name = str(success.producer_name)
        self.max_message_size = connection.max_message_size
        self._outbox.fail_larger(self.max_message_size)
        self._outbox.open_on(connection, self._id)

    def _cannot_continue(self, last: int) -> str:
        """Return why a broker that has the messages up to `last` would store others than this producer means, or ""."""
        if self._is_torn(last):  # the broker would drop the whole entry as a duplicate (PIP-6)
            return f"another producer {self._name} published up to {last}"
        if last < self._omitted:
            return f"the broker lost messages of an earlier producer {self._name} after {last}"
        return ""

    def _is_torn(self, last: int) -> bool:
        """Return whether an entry or the batch has sequence ids up to `last` and higher ones."""
        drafts = self._batch.drafts
        torn = bool(drafts) and not self._by_key and drafts[0].sequence_id <= last < drafts[-1].sequence_id
        return torn or self._outbox.is_torn(last)

    async def _close_on(self, connection: Connection) -> None:
        try:
            await connection.request(close_producer(self._id, connection.next_request_id()))
        except PulsarError:
            pass  # the end of the connection closes the producer, too
        finally:
            connection.detach_producer(self._id)

    def _send(self, drafts: list[Draft]) -> None:
        last = drafts[-1].sequence_id
        first = last if self._by_key else drafts[0].sequence_id
        size = sum([len(message.content) for message in drafts])
        messages = Messages(first, last, [message.receipt for message in drafts], len(drafts), size, txn=drafts[0].txn)
        metadata = self._with_schema(metadata_of(self._name, drafts, first))

        def entries() -> list[bytes]:
            if self._splitter is not None:
                return self._splitter.entries(metadata, drafts[0].content, self.max_message_size)
            return [encode(self._encoder, metadata, drafts)]

        self._post(messages, entries)

    def _post(self, messages: Messages, make: Callable[[], list[bytes]]) -> None:
        """Send the entry that `make` returns, or the entries of a message's chunks."""
        try:
            entry, *more = entries = make()
            if not more and len(entry) > self.max_message_size:
                raise too_big(entry, self.max_message_size)
        except PulsarError as error:
            self._outbox.fail(messages, error)
            return
        if more:
            self._outbox.add_chunks(messages, entries)
        else:
            self._outbox.add(messages, entry)

    def _with_schema(self, metadata: pb.MessageMetadata) -> pb.MessageMetadata:
        if self._schema_version:
            metadata.schema_version = self._schema_version
        return metadata

    async def _watch_batches(self) -> None:
        """Send each batch when its first message has waited for `batching_max_publish_delay`."""
        with self._scope:
            while self._error is None:
                await self._batch_begun.wait()
                await anyio.sleep_until(self._batch_due)
                if self._batch.drafts and anyio.current_time() >= self._batch_due:
                    self.send_batch()
                if not self._batch.drafts:
                    self._batch_begun = anyio.Event()

    def _check_open(self) -> None:
        if self._error is not None:
            raise copy_of(self._error)

    def _closed(self) -> AlreadyClosed:
        return AlreadyClosed(f"{self.topic}: the producer was closed")

    def _end(self, error: PulsarError) -> None:
        """End the producer after it was closed or refused for good."""
        if self._error is not None:
            return
        self._error = error
        self._link.close_nowait()
        self._scope.cancel()
        self._fail_all(error)

    def _fail_all(self, error: PulsarError) -> None:
        self._outbox.fail_all(error)
        for drafts in self._batch.take():
            size = sum([len(message.content) for message in drafts])
            self._outbox.fail(Messages(0, 0, [message.receipt for message in drafts], len(drafts), size), error)
