"""The id of a message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId as WireMessageId
from pulsarium.proto.numbers import LONG_MAX, signed

#: The most messages in one entry. A larger number of an untrusted id is ignored, because each message takes memory.
MOST_IN_BATCH = 2**20


@dataclass(frozen=True, order=True, slots=True)
class MessageId:
    """The id of an entry, or of one message in a batch if `batch_index` is not -1.

    Ids have the order of their messages in a topic. The id of a chunked message is that of its last chunk, and
    `first_chunk` is the id of its first one. `batch_size` 0 is unknown. Neither field takes part in comparisons.
    """

    ledger_id: int
    entry_id: int
    partition: int = -1
    batch_index: int = -1
    batch_size: int = field(default=0, compare=False)
    first_chunk: MessageId | None = field(default=None, compare=False)
    chunks: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)
    """The entries of a received chunked message, up to its own entry. `serialize` does not keep them."""

    earliest: ClassVar[MessageId]
    """The position in front of the first message of a topic."""
    latest: ClassVar[MessageId]
    """The position behind the last message of a topic."""

    def serialize(self) -> bytes:
        """Return the id as bytes to store, in the format of all Pulsar clients."""
        return self._wire().to_bytes()

    @staticmethod
    def deserialize(data: bytes) -> MessageId:
        """Return the id in the bytes of any client's `serialize`.

        Raises:
            InvalidMessageId: The bytes are no id. The error is a ValueError.
        """
        return MessageId.from_wire(WireMessageId.from_bytes(data))

    @staticmethod
    def from_data(data: pb.MessageIdData) -> MessageId:
        """Return the id in a command."""
        if data.HasField("first_chunk_message_id"):
            return MessageId.from_wire(WireMessageId.from_data(data))
        # An object less than by way of WireMessageId, for each message.
        size = data.batch_size
        return received_id(
            signed(data.ledgerId),
            signed(data.entryId),
            data.partition,
            data.batch_index,
            size if 0 < size <= MOST_IN_BATCH else 0,
        )

    def to_data(self) -> pb.MessageIdData:
        """Return the id as a field of a command."""
        return self._wire().to_data()

    @staticmethod
    def from_wire(wire: WireMessageId) -> MessageId:
        """Convert the protocol's id, which has no order."""
        first = None if wire.first_chunk is None else MessageId.from_wire(wire.first_chunk)
        size = wire.batch_size if 0 < wire.batch_size <= MOST_IN_BATCH else 0
        return MessageId(wire.ledger_id, wire.entry_id, wire.partition, wire.batch_index, size, first)

    def _wire(self) -> WireMessageId:
        first = None if self.first_chunk is None else self.first_chunk._wire()
        return WireMessageId(
            self.ledger_id, self.entry_id, self.partition, self.batch_index, self.batch_size, first_chunk=first
        )

    @property
    def entry(self) -> tuple[int, int]:
        """Return the ledger id and the entry id."""
        return self.ledger_id, self.entry_id

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """Return the ledger and entry ids of all entries of the message. Only a chunked message has more than one."""
        if self.chunks or self.first_chunk is None:
            return self.chunks or (self.entry,)
        return self.first_chunk.entry, self.entry  # an id that was serialized knows only these

    def __str__(self) -> str:
        """Return `(ledger,entry,partition,batch index)`, as the official Python client prints it."""
        return f"({self.ledger_id},{self.entry_id},{self.partition},{self.batch_index})"


MessageId.earliest = MessageId(-1, -1)
MessageId.latest = MessageId(LONG_MAX, LONG_MAX)


class _Draft:
    """An object with the layout of a `MessageId`, whose fields can be set."""

    __slots__ = ("batch_index", "batch_size", "chunks", "entry_id", "first_chunk", "ledger_id", "partition")


def received_id(
    ledger_id: int,
    entry_id: int,
    partition: int,
    batch_index: int,
    batch_size: int,
    first_chunk: MessageId | None = None,
    chunks: tuple[tuple[int, int], ...] = (),
) -> MessageId:
    """Return the id of a received message in a third of the time of `MessageId(...)`.

    A frozen dataclass sets each of its fields by a call. Here the object becomes frozen after its fields are set.
    """
    made: Any = _Draft()
    made.ledger_id = ledger_id
    made.entry_id = entry_id
    made.partition = partition
    made.batch_index = batch_index
    made.batch_size = batch_size
    made.first_chunk = first_chunk
    made.chunks = chunks
    made.__class__ = MessageId
    return cast(MessageId, made)
