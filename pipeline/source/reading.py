"""Read the messages of one split, in a task."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import anyio
from pyspark.sql.types import StructType

from pulsarium.client import Client, Message, MessageId, PulsarError
from pulsarium.client.bulk import BYTES, Decoded, Decoder, Onlooker, TopicReader
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.reading import BatchBuilder
from pulsarium.pipeline.options import ConnectionOptions
from pulsarium.pipeline.source.filters import Selection
from pulsarium.pipeline.source.offsets import TopicRange
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.source.places import FIRST, ReadPosition
from pulsarium.proto.generated import PulsarApi_pb2 as pb

_ENTRIES_OF_OTHERS = 100
"""Entries of other producers that may stand between the chunks of a message."""


# A chunked message (PIP-37) belongs to the split in which its last chunk is.
class ChunkDecoder(Decoder):
    """Decoder that remembers the messages whose first chunk it decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: set[str] = set()
        self.last: pb.MessageMetadata | None = None
        """Metadata of the last decoded entry, if it was a chunk."""

    def decode(self, entry: bytes) -> Decoded:
        decoded = super().decode(entry)
        self.last = None
        if decoded.is_chunk:
            self.last = decoded.metadata
            if decoded.metadata.chunk_id == 0:
                self.begun.add(decoded.metadata.uuid)
        return decoded


class LookBack(Onlooker):
    """Observer that notices damaged entries, and messages that end in a split without their first chunk.

    `needed_from` tells where to read again.
    """

    def __init__(self, start: ReadPosition, end: ReadPosition) -> None:
        self.orphan: tuple[int, int] | None = None
        """Entry with the last chunk of such a message."""
        self.damage = ""
        """First entry of the split that cannot be parsed, and the reason."""
        self._decoder = ChunkDecoder()
        self._start = start
        self._end = end
        self._size = 0
        self._tries: dict[tuple[int, int], int] = {}

    def begin(self) -> ChunkDecoder:
        """Return the decoder for a newly opened reader."""
        self.orphan = None
        self._decoder = ChunkDecoder()
        return self._decoder

    def nothing(self, entry: tuple[int, int] | None) -> None:
        chunk, begun = self._decoder.last, self._decoder.begun
        if chunk is None or entry is None or self.orphan is not None:
            return
        is_last = chunk.chunk_id == chunk.num_chunks_from_msg - 1
        is_ours = self._start <= ReadPosition(*entry) < self._end
        if is_last and is_ours and chunk.uuid not in begun and self._tries.get(entry, 0) < len(_STEPS):
            self.orphan, self._size = entry, chunk.num_chunks_from_msg

    def unreadable(self, message_id: MessageId, error: PulsarError) -> None:
        if self._start[:2] <= message_id.entry and ReadPosition.of(message_id) < self._end:
            self.damage = self.damage or f"the entry at {ReadPosition.of(message_id)}: {error}"

    def needed_from(self) -> MessageId:
        """Return where the first chunk of the message may be.

        Each call for an entry goes further back, and the third returns the beginning of the topic.
        """
        assert self.orphan is not None
        tried = self._tries.get(self.orphan, 0)
        self._tries[self.orphan] = tried + 1
        ledger, entry = self.orphan
        return _STEPS[tried](ledger, entry, self._size)


def _near(ledger: int, entry: int, size: int) -> MessageId:
    return MessageId(ledger, max(0, entry - 4 * size - _ENTRIES_OF_OTHERS))


def _ledger(ledger: int, entry: int, size: int) -> MessageId:
    return MessageId(ledger, 0)


def _all(ledger: int, entry: int, size: int) -> MessageId:
    return MessageId.earliest


_STEPS = (_near, _ledger, _all)


ROWS, SIZE = 10_000, 2 * 2**20
"""Approximate numbers of messages and bytes in one Arrow batch."""
AT_ONCE = 500
PATIENCE = 0.25
"""Seconds without a message after which the broker is asked whether there is one."""


class ReadError(RuntimeError):
    """A split that cannot be read. The error says where."""


@dataclass(frozen=True)
class Reading:
    """Settings for reading splits. The workers get them with their tasks."""

    connection: ConnectionOptions
    columns: Columns
    wanted: StructType
    poll_timeout: float
    """In seconds."""
    receiver_queue_size: int
    selection: Selection = field(default_factory=Selection)
    """Messages outside of the selection may be left out."""
    fail_on_data_loss: bool = True


class SplitReader:
    """Reader of a split's messages, one after another."""

    def __init__(self, client: Client, split: TopicRange, reading: Reading) -> None:
        self.at: ReadPosition = split.start
        """Position of the next message to read."""
        self._client = client
        self._split = split
        self._reading = reading
        self._schema = reading.columns.client_schema() or BYTES
        self._look_back = LookBack(split.start, split.end)
        self._stack = AsyncExitStack()
        self._reader: TopicReader | None = None

    async def aclose(self) -> None:
        await self._stack.aclose()
        self._reader = None

    async def fill(self, builder: BatchBuilder) -> bool:
        """Add messages to a builder until it is full. Return True at the end of the split.

        The last messages may be missing, because of a compaction or deletion. Then the broker says that there are no
        more.
        """
        came, at = anyio.current_time(), self.at
        while True:
            reader = self._reader if self._reader is not None else await self._open()
            if not reader:
                # the schema of a waiting message may take longer
                with anyio.move_on_after(PATIENCE if reader.head() is None else None):
                    await reader.arrival()
            is_done = self._take(reader, builder)
            self._check()
            if is_done or builder.rows >= ROWS or builder.size >= SIZE:
                self._read_through(reader)
                return is_done
            if self.at != at:
                came, at = anyio.current_time(), self.at
            if self._look_back.orphan is not None:
                await self.aclose()
                await self._open(self._look_back.needed_from())
            elif reader:
                continue
            elif not await reader.has_more():
                self._check()
                if self._look_back.orphan is None:  # the message may have arrived while the broker was asked
                    return True
            elif anyio.current_time() > came + self._reading.poll_timeout:
                raise ReadError(
                    f"{self._split}: no message arrived at {self.at} within pollTimeoutMs: raise that option"
                )

    def _take(self, reader: TopicReader, builder: BatchBuilder) -> bool:
        """Add received messages of the split. Return True at the end of the split."""
        end, take, add = self._split.end, reader.take, builder.add
        # only positions from this entry on must be compared exactly
        last = end.ledger, end.entry - (not end.batch_index)
        message_id: MessageId | None = None
        try:
            while reader and builder.rows < ROWS and builder.size < SIZE and not self._is_behind_orphan(reader.head()):
                for _ in range(self._at_once(reader)):
                    if builder.size >= SIZE:
                        break
                    message = take()
                    found = message.message_id()
                    if found.entry >= last:
                        if ReadPosition.of(found) >= end:
                            return True
                        add(message)
                        message_id = found
                        if ReadPosition.behind(found) >= end:
                            return True
                    else:
                        add(message)
                        message_id = found
            return False
        finally:
            if message_id is not None:
                self.at = ReadPosition.behind(message_id)

    def _at_once(self, reader: TopicReader) -> int:
        """Return how many messages can be read before the position is checked again."""
        if self._look_back.orphan is not None or self._schema.reads_by_writer:
            return 1
        return min(len(reader), AT_ONCE)

    def _read_through(self, reader: TopicReader) -> None:
        """Allow the client to forget the entries before the current one."""
        if self.at.entry > 0:
            reader.read_through(MessageId(self.at.ledger, self.at.entry - 1))

    def _is_behind_orphan(self, head: object) -> bool:
        """Return whether an entry comes after a message that must be read again from its first chunk."""
        orphan = self._look_back.orphan
        return orphan is not None and isinstance(head, Message) and head.message_id().entry > orphan

    def _check(self) -> None:
        if self._look_back.damage:
            raise ReadError(f"{self._split}: {self._look_back.damage}")

    async def _open(self, needed_from: MessageId | None = None) -> TopicReader:
        reader = TopicReader(
            self._client,
            self._split.topic,
            MessageId.earliest if self.at == FIRST else self.at.message_id(),
            schema=self._schema,
            receiver_queue_size=self._reading.receiver_queue_size,
            consumer_name="spark",
            needed_from=needed_from,
            decoder=self._look_back.begin(),
            onlooker=self._look_back,
        )
        self._reader = await self._stack.enter_async_context(reader)
        return reader


def reading(options: SourceOptions, wanted: StructType, columns: Columns) -> Reading:
    """Return the settings for reading the columns `wanted`."""
    return Reading(
        options.connection,
        columns,
        wanted,
        options.poll_timeout,
        options.receiver_queue_size,
        fail_on_data_loss=options.fail_on_data_loss,
    )
