"""What a task does: reads the messages of one split into Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import anyio
import pyarrow as pa
from pyspark.sql.types import StructType

from pulsarium.client import Client, Message, MessageId, PulsarError
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.reader import Place
from pulsarium.client.consumer.start import Start
from pulsarium.client.schema.schema import BYTES
from pulsarium.pipeline.columns import BatchBuilder, Columns
from pulsarium.pipeline.options import Connection
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.source.chunked import LookBack, reading_options
from pulsarium.pipeline.source.offsets import Split
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.source.position import FIRST, Position
from pulsarium.pipeline.source.schema import columns_of

ROWS, SIZE = 10_000, 8 * 2**20
"""Messages and bytes of one Arrow batch, about."""
AT_ONCE = 500
PATIENCE = 0.25
"""Seconds without a message until the broker is asked whether there is one."""


class ReadError(RuntimeError):
    """A split that cannot be read; says where."""


@dataclass(frozen=True)
class Reading:
    """How splits are read: goes to the workers with their tasks."""

    connection: Connection
    columns: Columns
    wanted: StructType
    poll_timeout: float
    """Seconds."""
    receiver_queue_size: int

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Each message once, in order. ReadError, or BadMessage for content that does not fit its schema."""
        with Pulsar(self.connection) as pulsar:
            messages = SplitReader(pulsar.client, split, self)
            try:
                builder = self.columns.for_reading(self.wanted)
                while True:
                    is_done = pulsar.call(messages.fill, builder)
                    if builder.rows:
                        yield builder.take()
                    if is_done:
                        return
            except PulsarError as error:
                raise ReadError(f"{split}: at {messages.at}: {type(error).__name__}: {error}") from error
            finally:
                pulsar.call(messages.aclose)


class SplitReader:
    """The messages of a split, one after another."""

    def __init__(self, client: Client, split: Split, reading: Reading) -> None:
        self.at: Position = split.start
        """What is read next."""
        self._client = client
        self._split = split
        self._reading = reading
        self._schema = reading.columns.client_schema() or BYTES
        self._look_back = LookBack(split.start, split.end)
        self._stack = AsyncExitStack()
        self._consumer: Consumer[Any] | None = None
        self._place: Place

    async def aclose(self) -> None:
        await self._stack.aclose()
        self._consumer = None

    async def fill(self, builder: BatchBuilder) -> bool:
        """Put messages there until it is full; True: there are no more.

        What compaction or a deletion took never comes: the last messages may be missing, and the broker says so.
        """
        came, at = anyio.current_time(), self.at
        while True:
            consumer = self._consumer or await self._open()
            if not consumer._inbox:
                with anyio.move_on_after(
                    PATIENCE if consumer._inbox.head is None else None
                ):  # its schema may take longer
                    await consumer._inbox.arrival()
            is_done = self._take(consumer, builder)
            self._check()
            if is_done or builder.rows >= ROWS or builder.size >= SIZE:
                self._read_through(consumer)
                return is_done
            if self.at != at:
                came, at = anyio.current_time(), self.at
            if self._look_back.orphan is not None:
                await self.aclose()
                await self._open(self._look_back.needed_from())
            elif consumer._inbox:
                continue
            elif not await self._place.has_more():
                self._check()
                if self._look_back.orphan is None:  # it may have come while the broker was asked
                    return True
            elif anyio.current_time() > came + self._reading.poll_timeout:
                raise ReadError(f"{self._split}: nothing comes at {self.at} (pollTimeoutMs)")

    def _take(self, consumer: Consumer[Any], builder: BatchBuilder) -> bool:
        """What waits here, as far as it belongs to the split; True: that was all of it."""
        inbox, end, take, add = consumer._inbox, self._split.end, consumer._inbox.take, builder.add
        last = end.ledger, end.entry - (not end.batch_index)  # only from there on it has to be looked at closely
        message_id: MessageId | None = None
        try:
            while inbox and builder.rows < ROWS and builder.size < SIZE and not self._is_behind_orphan(inbox.head):
                for _ in range(self._at_once(inbox)):
                    if builder.size >= SIZE:
                        break
                    message = take()
                    found = message.message_id()
                    if found.entry >= last:
                        if Position.of(found) >= end:
                            return True
                        add(message)
                        message_id = found
                        if Position.behind(found) >= end:
                            return True
                    else:
                        add(message)
                        message_id = found
            return False
        finally:
            if message_id is not None:
                self.at = Position.behind(message_id)

    def _at_once(self, inbox: Inbox) -> int:
        """How many can be taken without another look."""
        if self._look_back.orphan is not None or self._schema.reads_by_writer:
            return 1
        return min(len(inbox), AT_ONCE)

    def _read_through(self, consumer: Consumer[Any]) -> None:
        """The client may forget the entries before."""
        if self.at.entry > 0:
            consumer._parts.all[0].read_through(MessageId(self.at.ledger, self.at.entry - 1))

    def _is_behind_orphan(self, head: object) -> bool:
        """What comes behind a message that is to be read again, with its first chunks."""
        orphan = self._look_back.orphan
        return orphan is not None and isinstance(head, Message) and head.message_id().entry > orphan

    def _check(self) -> None:
        if self._look_back.damage:
            raise ReadError(f"{self._split}: {self._look_back.damage}")

    async def _open(self, needed_from: MessageId | None = None) -> Consumer[Any]:
        start = MessageId.earliest if self.at == FIRST else self.at.message_id()
        options = reading_options(self._split.topic, self._schema, self._reading.receiver_queue_size)
        self._look_back.watch(options.chunks)
        where = Start(start, True, needed_from)
        consumer: Consumer[Any] = Consumer(self._client._core, options, where, self._look_back)
        self._consumer = await self._stack.enter_async_context(consumer)
        consumer.resume()
        self._place = Place(consumer._parts.all[0], 1, inclusive=False)
        return consumer


def reading(options: SourceOptions, wanted: StructType) -> Reading:
    """Of these columns; asks the registry. Raises as `columns_of`."""
    columns = columns_of(options)
    return Reading(options.connection, columns, wanted, options.poll_timeout, options.receiver_queue_size)
