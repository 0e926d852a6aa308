"""Send the rows of a task: a producer for each topic, and the messages that have no receipt yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.lowlevel
import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from pulsarium.client import (
    Client,
    MessageOptions,
    PartitionsRoutingMode,
    Producer,
    Receipt,
    Schema,
    SchemaInfo,
    errors,
)
from pulsarium.client.bulk import BYTES
from pulsarium.pipeline.columns import BadColumns, BadRow, Columns, Outgoing, RowReader, info_for
from pulsarium.pipeline.sink.once import batch_of, by_key_or_row, row_of
from pulsarium.pipeline.sink.options import SinkOptions

T = TypeVar("T")

PAUSE = 0.1  # seconds until a producer's name is tried again, at first
LONGEST_PAUSE = 1.0
_FULL = (errors.MemoryBufferIsFull, errors.ProducerQueueIsFull)


class WriteFailed(RuntimeError):
    """Rows that could not be written. Rows that were written stay, and the next attempt does not duplicate them."""


@dataclass
class Written(WriterCommitMessage):
    """Numbers of rows that a task wrote."""

    partition: int
    rows: int = 0
    known: int = 0
    """How many rows an earlier attempt had written."""
    topics: dict[str, int] = field(default_factory=dict)
    """Number of rows by topic."""


class _Target(NamedTuple):
    """The producer of a topic, and the converter of its rows."""

    producer: Producer[Any]
    reader: RowReader


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
        self._arguments = {
            **options.producer,
            "message_routing_mode": PartitionsRoutingMode.CustomPartition,
            "message_router": by_key_or_row(options.hashing_scheme),
        }
        self._targets: dict[str, _Target] = {}
        self._sent: deque[tuple[str, int, Receipt]] = deque()  # these may have no receipt yet
        self._most = int(options.producer["max_pending_messages"])
        self._written = Written(partition)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Sender:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def abandon(self) -> None:
        """Stop all producers at once, because the task failed."""
        for target in self._targets.values():
            target.producer.abandon()

    async def send(self, topic: str, rows: pa.RecordBatch, numbers: Sequence[int]) -> None:
        """Send rows, which have these sequence ids, and wait for room. Raise `WriteFailed`.

        A batch that was sent in part is completed without duplicates, for this reason. The broker drops an entry, with
        all its messages, when it has the entry's first number. (A real broker does so in the recording 040-dedup,
        "overlap".) So an entry must not mix rows that the broker has with others.

        When a producer opens, the broker tells the highest number that it has or is about to have (PRODUCER_SUCCESS).
        No other producer can use the name until this one is closed. `TopicProducer.add` sends each row up to that
        number alone, for the broker to judge, and batches begin after it. These rows are not omitted, because the
        number also counts entries whose storing may still fail.

        After a lost connection the client sends the same entries again. When another attempt used the name meanwhile
        and wrote a part of an entry, the client fails (`TopicProducer._is_torn`).
        """
        target = self._targets.get(topic) or await self._open(topic, batch_of(numbers[0]))
        producer, sent = target.producer, self._sent
        index = -1
        try:
            for index, message in enumerate(target.reader.messages(rows)):
                if len(sent) >= self._most:
                    await self._await_half()
                options = _options(numbers[index], message)
                try:
                    receipt = producer.send_nowait(message.value, **options)
                except _FULL:
                    receipt = await self._patiently(producer.submit(message.value, **options))
                sent.append((topic, numbers[index], receipt))
        except BadRow as error:
            raise self._failed(topic, numbers[index + 1], error) from error
        except errors.PulsarError as error:
            raise self._failed(topic, numbers[index], error) from error
        if index + 1 != len(numbers):
            raise WriteFailed(f"{topic}: {len(numbers)} rows gave {index + 1} messages")
        self._written.rows += len(numbers)
        self._written.topics[topic] = self._written.topics.get(topic, 0) + len(numbers)
        await anyio.lowlevel.checkpoint()  # let the sockets have their turn

    async def finish(self) -> Written:
        """Wait until all rows are stored, and return the numbers.

        The last batches go out when their delay is over. Raise `WriteFailed`.
        """
        while self._sent:
            await self._await_half()
        return self._written

    async def _await_half(self) -> None:
        """Wait for the receipts of the older half of the messages."""
        for _ in range(len(self._sent) - len(self._sent) // 2):
            topic, number, receipt = self._sent.popleft()
            try:
                where = receipt.result() if receipt.is_done() else await self._patiently(receipt.wait())
            except errors.PulsarError as error:
                raise self._failed(topic, number, error) from error
            if where.ledger_id < 0:
                self._written.known += 1

    async def _patiently(self, waiting: Awaitable[T]) -> T:
        with anyio.move_on_after(self._options.send_timeout):
            return await waiting
        raise errors.Timeout(f"no receipt in {self._options.send_timeout:g} s (pulsar.producer.sendTimeoutMs)")

    async def _open(self, topic: str, batch_id: int) -> _Target:
        try:
            info = await self._schema_of(topic)
            columns = Columns.of(info)
            reader = columns.for_writing(self._given)
            producer = await self._producer(topic, columns.client_schema() or BYTES)
        except (errors.PulsarError, BadColumns) as error:
            raise WriteFailed(f"{topic}: {error}") from error
        if (written := batch_of(producer.last_sequence_id())) > batch_id:
            raise WriteFailed(
                f"{topic}: the producer {self._name} has written batch {written} already, "
                f"so that the broker would drop batch {batch_id}. The name is of another query, or of a checkpoint "
                "that was deleted or restored: choose another producerName"
            )
        target = self._targets[topic] = _Target(producer, reader)
        return target

    async def _schema_of(self, topic: str) -> SchemaInfo | None:
        """Return the topic's own schema, or one for these columns."""
        try:
            return await self._client.get_schema(topic)
        except errors.TopicNotFound:
            if self._options.schema_type == "none":
                return None
        return info_for(self._given, as_json=self._options.schema_type == "json")

    async def _producer(self, topic: str, schema: Schema[Any]) -> Producer[Any]:
        """Open a producer, as soon as no earlier attempt has its name."""
        pause, until = PAUSE, anyio.current_time() + self._options.busy_timeout
        while True:
            made = self._client.create_producer(topic, schema=schema, producer_name=self._name, **self._arguments)
            try:
                return await self._stack.enter_async_context(made)
            except errors.ProducerBusy:
                if anyio.current_time() >= until:
                    raise
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _failed(self, topic: str, number: int, error: Exception) -> WriteFailed:
        where = f"row {row_of(number)} of Spark partition {self._written.partition} in batch {batch_of(number)}"
        return WriteFailed(f"{topic}, {where}: {error}")


def _options(number: int, message: Outgoing) -> MessageOptions:
    options: MessageOptions = {"sequence_id": number}
    if message.key is not None:
        options["partition_key"] = message.key
    if message.event_time is not None:
        options["event_timestamp"] = message.event_time
    if message.properties:
        options["properties"] = message.properties
    return options
