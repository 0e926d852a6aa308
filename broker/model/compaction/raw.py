"""Raw messages: entries with their positions, as compaction reads and writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pulsarium.broker.logs import Log
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.storage.interface import DamagedEntriesError
from pulsarium.proto.entry import strip_broker_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.compaction.compactor import Compactable

log = Log("compaction")

READ_BATCH = 100  # entries of one read
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


class TopicReader:
    """Read what the last compaction retained, and then the entries behind its horizon."""

    def __init__(self, topic: Compactable) -> None:
        self.last = topic.ledger.max_read
        self._ledger = topic.ledger
        self._compacted = topic.compaction.compacted
        self._topic, self._config = topic.name, topic.stores.config
        self.rewind()

    def rewind(self) -> None:
        self._position = Position(-1, -1)
        self._in_compacted = self._compacted.horizon is not None

    def read(self, ready: Callable[[], None]) -> list[RawMessage] | None:
        if self._in_compacted:
            found = self._compacted.read(self._position, READ_BATCH, ready)
            if found is None:
                return None
            if found:
                last = found[-1][0]
                self._position = Position(last.ledger_id, last.entry_id + 1)
                return [RawMessage(*each) for each in found]
            assert self._compacted.horizon is not None
            self._in_compacted, horizon = False, self._compacted.horizon
            self._position = Position(horizon.ledger_id, horizon.entry_id + 1)
        return self._read_topic(ready)

    def _read_topic(self, ready: Callable[[], None]) -> list[RawMessage] | None:
        found: list[RawMessage] = []
        while not found:
            start = self._ledger.next(Position(self._position.ledger_id, self._position.entry_id - 1))
            if start > self.last:
                break
            try:
                entries = self._ledger.read(start, READ_BATCH, ready)
            except DamagedEntriesError as error:
                if not self._config.autoSkipNonRecoverableData:
                    raise
                log.warning("damaged entries are not compacted", topic=self._topic, reason=error)
                self._position = Position(error.ledger_id, error.last + 1)
                continue
            if entries is None:
                return None
            ledger_id, first = start
            if ledger_id == self.last.ledger_id:
                entries = entries[: self.last.entry_id + 1 - first]
            self._position = Position(ledger_id, first + len(entries))
            found = list(self._shown(ledger_id, first, entries))
        return found

    def _shown(self, ledger_id: int, first: int, entries: Sequence[bytes]) -> Iterator[RawMessage]:
        """Yield the entries that Pulsar's reader sees, without those of aborted transactions."""
        transactions, exposes = self._ledger.transactions, self._config.exposingBrokerEntryMetadataToClientEnabled
        for number, entry in enumerate(entries, first):
            position = Position(ledger_id, number)
            if not transactions.hides(position, entry):
                yield RawMessage(position, entry if exposes else strip_broker_metadata(entry))


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
