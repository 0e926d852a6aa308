"""Where a message stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId as WireMessageId

#: Messages in one entry: a claim of more is not believed, because each would take memory.
MOST_IN_BATCH = 2**20


@dataclass(frozen=True, order=True, slots=True)
class MessageId:
    """An entry of a topic, and in it a message if `batch_index` is not -1.

    Ids are ordered as their messages stand in a topic. `batch_size` (0: unknown) and `first_chunk` (of a chunked
    message, whose own id is that of its last chunk) say more about the message, but neither orders nor distinguishes.
    """

    ledger_id: int
    entry_id: int
    partition: int = -1
    batch_index: int = -1
    batch_size: int = field(default=0, compare=False)
    first_chunk: MessageId | None = field(default=None, compare=False)
    chunks: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)
    """Every entry of a chunked message that was received, the last is its own; `serialize` does not keep them."""

    earliest: ClassVar[MessageId]
    latest: ClassVar[MessageId]

    def serialize(self) -> bytes:
        """Bytes for an application to keep, the same as other Pulsar clients make."""
        return self._wire().to_bytes()

    @staticmethod
    def deserialize(data: bytes) -> MessageId:
        """Reads what any client's `serialize` gave; InvalidMessageId (a ValueError) if it is none."""
        return MessageId.from_wire(WireMessageId.from_bytes(data))

    @staticmethod
    def from_data(data: pb.MessageIdData) -> MessageId:
        """Of an id in a command."""
        return MessageId.from_wire(WireMessageId.from_data(data))

    def to_data(self) -> pb.MessageIdData:
        """For a command."""
        return self._wire().to_data()

    @staticmethod
    def from_wire(wire: WireMessageId) -> MessageId:
        """Of the same thing without an order."""
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
        """The entry alone: its ledger's id, and its own in there."""
        return self.ledger_id, self.entry_id

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """All that it stands in: more than one of a chunked message."""
        if self.chunks or self.first_chunk is None:
            return self.chunks or (self.entry,)
        return self.first_chunk.entry, self.entry  # what is known of a serialized one

    def __str__(self) -> str:
        """`(ledger,entry,partition,batch index)`, as the official Python client prints it."""
        return f"({self.ledger_id},{self.entry_id},{self.partition},{self.batch_index})"


MessageId.earliest = MessageId(-1, -1)
MessageId.latest = MessageId(2**63 - 1, 2**63 - 1)
