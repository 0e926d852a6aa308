"""Raw messages: entries with their positions, as compaction reads and writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple, Protocol

from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb

_U32 = Struct(">I")


class RawMessage(NamedTuple):
    """An entry with its position in its topic."""

    position: Position
    entry: bytes


class RawReader(Protocol):
    """Read a topic from its first entry to the entry that was last when the reader was opened."""

    @property
    def last(self) -> Position:
        """Return the position of that last entry."""
        ...

    def read(self, ready: Callable[[], None]) -> list[RawMessage] | None:
        """Return the next messages, or [] at the end.

        Return None while messages are being loaded; `ready()` is called afterwards.
        """
        ...

    def rewind(self) -> None:
        """Restart at the first entry."""
        ...


def each(reader: RawReader, ready: Callable[[], None]) -> Iterator[RawMessage | None]:
    """Yield all messages from the first one on. Yield None when the reader has to wait."""
    reader.rewind()
    while True:
        found = reader.read(ready)
        if found is None:
            yield None
        elif found:
            yield from found
        else:
            return


def pack(position: Position, entry: bytes) -> bytes:
    """Return a raw message as a compacted ledger stores it: [u32 size][MessageIdData][u32 size][entry], big-endian."""
    head = pb.MessageIdData(ledgerId=position.ledger_id, entryId=position.entry_id, partition=-1).SerializeToString()
    return b"".join((_U32.pack(len(head)), head, _U32.pack(len(entry)), entry))


def unpack(packed: bytes) -> RawMessage:
    """Return the raw message of a packed one."""
    position, start = _head(packed)
    return RawMessage(position, packed[start:])


def position_of(packed: bytes) -> Position:
    """Return the position of a packed message without unpacking the entry."""
    return _head(packed)[0]


def _head(packed: bytes) -> tuple[Position, int]:
    end = 4 + int(_U32.unpack_from(packed)[0])
    message_id = pb.MessageIdData.FromString(packed[4:end])
    return Position(message_id.ledgerId, message_id.entryId), end + 4
