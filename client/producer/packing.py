"""Put messages into entries: one alone, many in a batch, or one in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import MessageTooBig
from pulsarium.client.producer.draft import Draft, now
from pulsarium.proto.generated import PulsarApi_pb2 as pb


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """A batch that is packed already, of at least two messages."""

    payload: bytes
    """Each message behind its SingleMessageMetadata, as `proto.batch.pack` writes them."""
    count: int
    size: int
    """Bytes of the contents of all messages."""
    sequence_id: int
    """The sequence id of the first message."""
    highest_sequence_id: int
    first: pb.SingleMessageMetadata
    """The keys of the first message, which the entry repeats."""


class MessageBatch:
    """A batch of successive messages."""

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.drafts: list[Draft] = []
        self._bytes = 0
        self._max_messages = max_messages
        self._max_bytes = max_bytes

    def fits(self, message: Draft) -> bool:
        """Return whether the batch is empty, or has the same transaction and enough bytes left for the message."""
        if not self.drafts:
            return True
        return self.drafts[0].txn == message.txn and self._bytes + len(message.content) <= self._max_bytes

    def add(self, message: Draft) -> None:
        """Add a message to the batch."""
        self.drafts.append(message)
        self._bytes += len(message.content)

    @property
    def is_full(self) -> bool:
        """Return whether the batch has reached one of its limits."""
        return len(self.drafts) >= self._max_messages or self._bytes >= self._max_bytes

    def take(self) -> list[list[Draft]]:
        """Empty the batch, and return the messages of each entry in the order in which to send the entries."""
        drafts, self.drafts, self._bytes = self.drafts, [], 0
        return [drafts] if drafts else []


class KeyBatch(MessageBatch):
    """A set of batches, one for each key, with common limits (`BatchingType.KeyBased`).

    The sequence id of an entry is that of its last message. Entries are sent in the order of their sequence ids: so a
    broker that deduplicates accepts them all. With messages 0, 3 and 4 of one key and 1 and 2 of another,
    the entry of the second key is sent first.
    """

    def take(self) -> list[list[Draft]]:
        """Empty the batches, and return their messages in the order of the entries' sequence ids."""
        by_key: dict[bytes | str | int | None, list[Draft]] = {}
        for drafts in super().take():
            for message in drafts:
                by_key.setdefault(message.batch_key, []).append(message)
        return sorted(by_key.values(), key=lambda drafts: drafts[-1].sequence_id)


_KEYS = ("partition_key", "partition_key_b64_encoded", "null_partition_key", "ordering_key")


def metadata_of(producer_name: str, drafts: Sequence[Draft], sequence_id: int) -> pb.MessageMetadata:
    """Return the metadata of an entry with these messages.

    `sequence_id` is that of the first message, or of the last one (`KeyBatch`). A single message is no batch, because
    a batch would only be larger (PIP-189).
    """
    first = drafts[0].metadata
    metadata = _new(producer_name, sequence_id)
    if (txn := drafts[0].txn) is not None:
        metadata.txnid_most_bits, metadata.txnid_least_bits = txn
    if hashes := [one.bucket_hash for one in drafts if one.bucket_hash is not None]:
        metadata.entry_hash_min, metadata.entry_hash_max = min(hashes), max(hashes)
    if len(drafts) > 1:
        return _of_batch(metadata, first, drafts[-1].sequence_id)
    metadata.properties.extend(first.properties)
    _copy((*_KEYS, "event_time", "null_value"), first, metadata)
    deliver_at = drafts[0].deliver_at
    if deliver_at is not None:
        metadata.deliver_at_time = deliver_at
    return metadata


def metadata_of_packed(producer_name: str, batch: PackedBatch) -> pb.MessageMetadata:
    """Return the metadata of the entry of a packed batch."""
    metadata = _of_batch(_new(producer_name, batch.sequence_id), batch.first, batch.highest_sequence_id)
    metadata.num_messages_in_batch = batch.count
    return metadata


def _new(producer_name: str, sequence_id: int) -> pb.MessageMetadata:
    return pb.MessageMetadata(producer_name=producer_name, publish_time=now(), sequence_id=sequence_id)


def _of_batch(metadata: pb.MessageMetadata, first: pb.SingleMessageMetadata, highest: int) -> pb.MessageMetadata:
    """Complete the metadata of a batch whose last message has the sequence id `highest`."""
    _copy(_KEYS, first, metadata)  # Key_Shared and compaction read the keys here
    if highest != metadata.sequence_id:
        metadata.highest_sequence_id = highest
    return metadata


def encode(encoder: Encoder, metadata: pb.MessageMetadata, drafts: Sequence[Draft]) -> bytes:
    """Return the entry of one message, or of several as a batch."""
    if len(drafts) > 1:
        return encoder.batch(metadata, [(message.metadata, message.content) for message in drafts])
    return encoder.single(metadata, drafts[0].content)


def _copy(names: Iterable[str], single: pb.SingleMessageMetadata, metadata: pb.MessageMetadata) -> None:
    """Copy those of the fields that are set."""
    for name in names:
        if single.HasField(name):
            setattr(metadata, name, getattr(single, name))


_LARGEST = 2**31 - 1  # number of a chunk


class Splitter:
    """Split messages that are too large for one entry into chunks (PIP-37)."""

    def __init__(self, encoder: Encoder, max_chunk_size: int) -> None:
        """Limit the compressed content of a chunk to `max_chunk_size` bytes.

        With 0, only the entry's size is limited.
        """
        self._encoder = encoder
        self._max_chunk_size = max_chunk_size

    def entries(self, metadata: pb.MessageMetadata, content: bytes, max_entry_size: int) -> list[bytes]:
        """Return the entry of a message, or the entries of its chunks.

        Raise `MessageTooBig` when the metadata alone exceeds `max_entry_size` bytes. The call changes `metadata`.
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
            raise MessageTooBig(
                f"the metadata of the message exceeds the {max_entry_size} bytes that the broker accepts"
            )
        size = min(room, self._max_chunk_size or room)
        parts = [payload[start : start + size] for start in range(0, len(payload), size)]
        metadata.num_chunks_from_msg = len(parts)
        return list(self._chunks(metadata, parts))

    def _chunks(self, metadata: pb.MessageMetadata, parts: list[bytes]) -> Iterable[bytes]:
        for number, part in enumerate(parts):
            metadata.chunk_id = number
            yield self._sealed(metadata, part)

    def _most_around(self, metadata: pb.MessageMetadata) -> int:
        """Return the greatest number of bytes that a chunk's entry takes beside its content."""
        largest = pb.MessageMetadata(chunk_id=_LARGEST, num_chunks_from_msg=_LARGEST)
        largest.MergeFrom(metadata)
        return len(self._encoder.seal(largest, b""))

    def _sealed(self, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
        """Return the sealed entry. Seal a copy of the metadata, because encryption adds fields to it."""
        own = pb.MessageMetadata()
        own.CopyFrom(metadata)
        return self._encoder.seal(own, payload)
