"""Messages that are larger than an entry may be (PIP-37): compressed as a whole, split, and each chunk encrypted."""

from __future__ import annotations

from collections.abc import Iterable

from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import MessageTooBig
from pulsarium.proto.generated import PulsarApi_pb2 as pb

_LARGEST = 2**31 - 1  # number of a chunk


class Splitter:
    """Splits what one producer sends where it has to."""

    def __init__(self, encoder: Encoder, max_chunk_size: int) -> None:
        """`max_chunk_size`: bytes of a chunk's compressed content, 0: no limit but that of the entry."""
        self._encoder = encoder
        self._max_chunk_size = max_chunk_size

    def entries(self, metadata: pb.MessageMetadata, content: bytes, max_entry_size: int) -> list[bytes]:
        """The entry of a message, or those of its chunks; MessageTooBig where already its metadata is.

        `max_entry_size` is in bytes; `metadata` must be new.
        """
        payload = self._encoder.compress(metadata, content)
        if len(payload) <= (self._max_chunk_size or max_entry_size):
            entry = self._sealed(metadata, payload)
            if len(entry) <= max_entry_size:
                return [entry]
        metadata.uuid = f"{metadata.producer_name}-{metadata.sequence_id}"
        metadata.total_chunk_msg_size = len(payload)
        room = max_entry_size - self._most_around(metadata)
        if room <= 0:
            raise MessageTooBig(f"without its content the message takes more than the broker's {max_entry_size} bytes")
        size = min(room, self._max_chunk_size or room)
        parts = [payload[start : start + size] for start in range(0, len(payload), size)]
        metadata.num_chunks_from_msg = len(parts)
        return list(self._chunks(metadata, parts))

    def _chunks(self, metadata: pb.MessageMetadata, parts: list[bytes]) -> Iterable[bytes]:
        for number, part in enumerate(parts):
            metadata.chunk_id = number
            yield self._sealed(metadata, part)

    def _most_around(self, metadata: pb.MessageMetadata) -> int:
        """Bytes of a chunk's entry without its content, at most."""
        largest = pb.MessageMetadata(chunk_id=_LARGEST, num_chunks_from_msg=_LARGEST)
        largest.MergeFrom(metadata)
        return len(self._encoder.seal(largest, b""))

    def _sealed(self, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
        """Encryption adds to the metadata, each time something else."""
        own = pb.MessageMetadata()
        own.CopyFrom(metadata)
        return self._encoder.seal(own, payload)
