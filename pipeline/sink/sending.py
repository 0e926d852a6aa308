"""Send the rows of a task: a producer for each topic, and the messages that have no receipt yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.lowlevel
import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pulsarium.client import Client, Receipt, Schema, SchemaInfo, errors
from pulsarium.client.bulk import BYTES, BatchProducer
from pulsarium.client.topics import full_name
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.derived import info_for
from pulsarium.pipeline.columns.kinds import BadColumns, BadRow
from pulsarium.pipeline.columns.ragged import Numbers
from pulsarium.pipeline.columns.writing import OutgoingRows, RowReader
from pulsarium.pipeline.sink import letters
from pulsarium.pipeline.sink.once import NoDeduplication, batch_of, row_of
from pulsarium.pipeline.sink.options import CHUNKING, SinkOptions
from pulsarium.pipeline.sink.packing import Packed, cuts, packed
from pulsarium.pipeline.sink.routing import partitions_of
from pulsarium.pipeline.sink.written import WrittenRows

T = TypeVar("T")

PAUSE = 0.1  # seconds until a producer's name is tried again, at first
LONGEST_PAUSE = 1.0


class WriteFailed(RuntimeError):
    """Rows that could not be written. Rows that were written stay, and the next attempt does not duplicate them."""


class _Sent(NamedTuple):
    """An entry that may have no receipt yet."""

    topic: str
    number: int
    """The sequence id of its first row."""
    rows: int
    receipt: Receipt
    is_known: bool = False
    """The broker must have the rows already, of which only the last was sent."""


class Sender:
    """Sender of one task's rows, on the event loop.

    `async with` closes the producers. After `abandon` they send nothing more.
    """

    def __init__(self, client: Client, options: SinkOptions, given: StructType, name: str, partition: int) -> None:
        """Prepare a sender. `given` are the columns of the DataFrame, `name` is the name of the producers."""
        self._client = client
        self._options = options
        self._given = given
        self._name = name
        self._producers: dict[str, BatchProducer] = {}
        self._readers: dict[str, RowReader] = {}
        self._dead_letters = full_name(options.dead_letter_topic) if options.dead_letter_topic else None
        self._letters: dict[int, OutgoingRows] = {}
        self._sent: deque[_Sent] = deque()
        self._written = WrittenRows(partition)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Sender:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def abandon(self) -> None:
        """Stop all producers at once, because the task failed."""
        for producer in self._producers.values():
            producer.abandon()

    async def send(self, topic: str, rows: pa.RecordBatch, numbers: Numbers) -> None:
        """Send rows, which have these sequence ids, and wait for room. Raise `WriteFailed`.

        A row that does not fit the topic's schema fails, or `send_letters` sends it under its own number.
        """
        reader = self._readers.get(topic) or await self._open(topic, batch_of(int(numbers[0])))
        try:
            messages = reader.messages(rows)
        except BadRow as error:
            if self._dead_letters is None:
                raise self._failed(topic, int(numbers[error.row]), error) from error
            await self._send_halves(topic, rows, numbers, error)
        else:
            await self._send_messages(topic, messages, numbers)

    async def _send_halves(self, topic: str, rows: pa.RecordBatch, numbers: Numbers, error: BadRow) -> None:
        """Send both halves of rows among which one does not fit, or keep the dead letter of a single row."""
        middle = len(numbers) // 2
        if not middle:
            self._letters[int(numbers[0])] = letters.letter(rows, full_name(topic), str(error))
            return
        for part in (np.arange(middle), np.arange(middle, len(numbers))):
            await self.send(topic, rows.take(pa.array(part)), numbers[part])

    async def send_letters(self) -> None:
        """Send the dead letters of the last rows, of all topics, in the order of their numbers. Raise `WriteFailed`.

        The broker would drop a letter behind one with a higher number.
        """
        kept, self._letters = self._letters, {}
        for number in sorted(kept):
            topic = self._dead_letters
            assert topic is not None
            if topic not in self._producers:
                try:
                    await self._open_producer(topic, letters.SCHEMA, batch_of(number))
                except errors.PulsarError as error:
                    raise WriteFailed(f"{topic}: {error}") from error
            await self._send_messages(topic, kept[number], np.array([number]))

    async def _send_messages(self, topic: str, messages: OutgoingRows, numbers: Numbers) -> None:
        """Send messages, which have these sequence ids.

        A batch that was sent in part is completed without duplicates, for this reason. The broker drops an entry, with
        all its messages, when it has the entry's first number. (A real broker does so in the recording 040-dedup,
        "overlap".) So an entry must not mix rows that the broker has with others.

        When a producer opens, the broker tells the highest number that it has or is about to have (PRODUCER_SUCCESS).
        No other producer can use the name until this one is closed. Of the rows up to that number only the last is
        sent, alone, and batches begin after it. The number also counts entries whose storing may still fail. The
        broker drops the last row as a duplicate only when it has stored the row, and the rows before it, which were
        sent in order. When storing fails, the broker closes all producers, and the client notices at the next opening
        that the number is lower (`TopicProducer._cannot_continue`). Then the task fails, and the next attempt begins
        with the lower number.

        After a lost connection the client sends the same entries again. When another attempt used the name meanwhile
        and wrote a part of an entry, the client fails, too.
        """
        producer = self._producers[topic]
        where = partitions_of(messages.keys, row_of(numbers), producer.partitions, self._options.hashing_scheme)
        payloads: pa.Array | None = None
        for partition in range(producer.partitions):
            members = np.flatnonzero(where == partition)
            known = int(np.searchsorted(numbers[members], producer.highest_sequence_id(partition), side="right"))
            if known:
                last = int(members[known - 1])
                producer.omit_through(partition, int(numbers[last]))
                await self._send_alone(topic, partition, messages, last, int(numbers[last]), known)
            if known < len(members):
                payloads = packed(messages, numbers) if payloads is None else payloads
                await self._send_batches(topic, partition, messages, members[known:], payloads, numbers)
            self._take_receipts()
        self._written.rows += len(numbers)
        self._written.topics[topic] = self._written.topics.get(topic, 0) + len(numbers)

    async def _send_batches(
        self, topic: str, partition: int, messages: OutgoingRows, members: Numbers, payloads: pa.Array, numbers: Numbers
    ) -> None:
        producer = self._producers[topic]
        mine = Packed(messages, payloads, members, numbers)
        most = min(self._options.most_messages, producer.most_messages)
        most_bytes = min(self._options.most_bytes, producer.most_bytes(partition))
        for start, stop in cuts(mine.packed_sizes, most, most_bytes):
            row = int(members[start])
            number = int(numbers[row])
            if stop - start == 1:
                await self._send_alone(topic, partition, messages, row, number)
            else:
                sending = producer.send_batch(partition, mine.batch(start, stop))
                await self._sent_with(topic, number, stop - start, sending)

    async def _send_alone(
        self, topic: str, partition: int, messages: OutgoingRows, row: int, number: int, known: int = 0
    ) -> None:
        """Send a row in an entry of its own. With `known`, the row is the last of so many that the broker must have."""
        sending = self._producers[topic].send(partition, messages.content(row), **messages.options(row, number))
        await self._sent_with(topic, number, known or 1, sending, is_known=known > 0)

    async def _sent_with(
        self, topic: str, number: int, rows: int, sending: Awaitable[Receipt], *, is_known: bool = False
    ) -> None:
        try:
            receipt = await self._patiently(sending)
        except errors.PulsarError as error:
            raise self._failed(topic, number, error) from error
        self._sent.append(_Sent(topic, number, rows, receipt, is_known))
        await anyio.lowlevel.checkpoint()  # let the sockets have their turn

    async def finish(self) -> WrittenRows:
        """Wait until all rows are stored, and return the numbers. Raise `WriteFailed`."""
        await self.send_letters()
        while self._sent:
            sent = self._sent[0]
            if not sent.receipt.is_done():
                try:
                    await self._patiently(sent.receipt.wait())
                except errors.PulsarError as error:
                    raise self._failed(sent.topic, sent.number, error) from error
            self._take_receipts()
        return self._written

    def _take_receipts(self) -> None:
        """Take the receipts that have arrived, up to the first one that is missing. Raise `WriteFailed`."""
        while self._sent and self._sent[0].receipt.is_done():
            topic, number, rows, receipt, is_known = self._sent.popleft()
            try:
                where = receipt.result()
            except errors.PulsarError as error:
                raise self._failed(topic, number, error) from error
            if where.ledger_id < 0:
                self._written.known += rows
            elif is_known:
                raise self._failed(topic, number, NoDeduplication("the topic deduplicates no more: enable it again"))

    async def _patiently(self, waiting: Awaitable[T]) -> T:
        with anyio.move_on_after(self._options.send_timeout):
            return await waiting
        raise errors.Timeout(f"no receipt in {self._options.send_timeout:g} s (pulsar.producer.sendTimeoutMs)")

    async def _open(self, topic: str, batch_id: int) -> RowReader:
        if full_name(topic) == self._dead_letters:
            raise WriteFailed(f"{topic} takes the dead letters, and no rows: set another deadLetterTopic")
        try:
            info = await self._schema_of(topic)
            columns = Columns.of(info)
            reader = columns.for_writing(self._given)
            await self._open_producer(topic, columns.client_schema() or BYTES, batch_id)
        except (errors.PulsarError, BadColumns) as error:
            raise WriteFailed(f"{topic}: {error}") from error
        self._readers[topic] = reader
        return reader

    async def _open_producer(self, topic: str, schema: Schema[Any], batch_id: int) -> None:
        producer = await self._producer(topic, schema)
        if (written := batch_of(producer.last_sequence_id())) > batch_id:
            raise WriteFailed(
                f"{topic}: the producer {self._name} has written batch {written} already, "
                f"so that the broker would drop batch {batch_id}. The name is of another query, or of a checkpoint "
                "that was deleted or restored: choose another producerName"
            )
        self._producers[topic] = producer

    async def _schema_of(self, topic: str) -> SchemaInfo | None:
        """Return the topic's own schema, or one for these columns."""
        try:
            return await self._client.get_schema(topic)
        except errors.TopicNotFound:
            if self._options.schema_type == "none":
                return None
        return info_for(self._given, as_json=self._options.schema_type == "json")

    async def _producer(self, topic: str, schema: Schema[Any]) -> BatchProducer:
        """Open a producer, as soon as no earlier attempt has its name."""
        pause, until = PAUSE, anyio.current_time() + self._options.busy_timeout
        while True:
            made = self._client.create_producer(
                topic, schema=schema, producer_name=self._name, **self._options.producer
            )
            try:
                return BatchProducer(await self._stack.enter_async_context(made))
            except errors.ProducerBusy:
                if anyio.current_time() >= until:
                    raise
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _failed(self, topic: str, number: int, error: Exception) -> WriteFailed:
        where = f"row {row_of(number)} of Spark partition {self._written.partition} in batch {batch_of(number)}"
        may_chunk = isinstance(error, errors.MessageTooBig) and not self._options.producer["chunking_enabled"]
        hint = f': set .option("{CHUNKING}", "true")' if may_chunk else ""
        return WriteFailed(f"{topic}, {where}: {error}{hint}")
