"""Messages in chunks (PIP-37) that begin before the split in which they end: they belong to where they end."""

from __future__ import annotations

from pulsarium.client import MessageId, PulsarError
from pulsarium.client.bulk import Decoded, Decoder, Onlooker
from pulsarium.pipeline.source.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb

_ENTRIES_OF_OTHERS = 100
"""That may well stand between the chunks of a message."""


class ChunkDecoder(Decoder):
    """Remembers which messages it saw the first chunk of."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: set[str] = set()
        self.last: pb.MessageMetadata | None = None
        """Of the entry decoded last, if that was a chunk."""

    def decode(self, entry: bytes) -> Decoded:
        decoded = super().decode(entry)
        self.last = None
        if decoded.is_chunk:
            self.last = decoded.metadata
            if decoded.metadata.chunk_id == 0:
                self.begun.add(decoded.metadata.uuid)
        return decoded


class LookBack(Onlooker):
    """Notices that a message ends in a split without its first chunk, and says from where to read again; and damage."""

    def __init__(self, start: Position, end: Position) -> None:
        self.orphan: tuple[int, int] | None = None
        """The entry with the last chunk of such a message."""
        self.damage = ""
        """The first entry of the split that nobody can read, and why."""
        self._decoder = ChunkDecoder()
        self._start = start
        self._end = end
        self._size = 0
        self._tries: dict[tuple[int, int], int] = {}

    def begin(self) -> ChunkDecoder:
        """Return the decoder of a reader that is opened, and tells what it gets."""
        self.orphan = None
        self._decoder = ChunkDecoder()
        return self._decoder

    def nothing(self, entry: tuple[int, int] | None) -> None:
        chunk, begun = self._decoder.last, self._decoder.begun
        if chunk is None or entry is None or self.orphan is not None:
            return
        is_last = chunk.chunk_id == chunk.num_chunks_from_msg - 1
        is_ours = self._start <= Position(*entry) < self._end
        if is_last and is_ours and chunk.uuid not in begun and self._tries.get(entry, 0) < len(_STEPS):
            self.orphan, self._size = entry, chunk.num_chunks_from_msg

    def unreadable(self, message_id: MessageId, error: PulsarError) -> None:
        if self._start[:2] <= message_id.entry and Position.of(message_id) < self._end:
            self.damage = self.damage or f"the entry at {Position.of(message_id)}: {error}"

    def needed_from(self) -> MessageId:
        """Where its first chunk may be found; each call for an entry goes further back, the third to the beginning."""
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
