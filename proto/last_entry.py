"""Read and write the buffer behind GET_LAST_MESSAGE_ID_RESPONSE: the last compacted entry (PIP-429, v22).

The buffer is the stored entry without broker entry metadata: `[u16 0x0e01][u32 CRC32C][u32
size][MessageMetadata][payload]`. Other compaction services may omit the checksum.
"""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.proto import compression
from pulsarium.proto.batch import MOST_MESSAGES, messages_of
from pulsarium.proto.entry import checksum_matches, opens_at_once, parse_metadata, split, strip_broker_metadata
from pulsarium.proto.errors import BatchError, EntryError
from pulsarium.proto.generated.PulsarApi_pb2 import MessageMetadata


class Buffer(NamedTuple):
    """The parts of a buffer. The payload is compressed and encrypted as stored."""

    metadata: MessageMetadata
    metadata_bytes: bytes
    payload: bytes


def buffer_of(stored_entry: bytes) -> bytes:
    """Return the buffer of an entry: the entry without broker entry metadata."""
    return strip_broker_metadata(stored_entry)


def take_apart(buffer: bytes) -> Buffer:
    """Split a buffer. Raise `EntryError` when it is cut off, damaged, or does not fit its checksum."""
    if checksum_matches(buffer) is False:
        raise EntryError("the last entry does not fit its checksum")
    metadata = parse_metadata(buffer)
    parts = split(buffer)
    return Buffer(metadata, parts.metadata_bytes, parts.payload)


def last_batch_index(metadata: MessageMetadata, payload: bytes) -> int:
    """Return the batch index of the last retained message of an entry, or -1 when the entry is no batch.

    The stored `payload` is decompressed only when the metadata does not tell. A batch that takes long to take
    apart is one that compaction kept whole: it would have listed what it retained. Raise `BatchError` or
    `CompressionError` when the payload does not fit its metadata, and `BatchError` when no message was retained.
    """
    index = known_batch_index(metadata)
    if index is None and not opens_at_once(metadata):
        index = metadata.num_messages_in_batch - 1
    if index is None:
        batch = compression.decompress(metadata.compression, payload, metadata.uncompressed_size)
        index = last_kept(batch, metadata.num_messages_in_batch)
    return index


def known_batch_index(metadata: MessageMetadata) -> int | None:
    """Return the last batch index by the metadata alone, or None when only the payload tells."""
    size = metadata.num_messages_in_batch
    if size <= 1:
        return -1
    if metadata.compacted_batch_indexes:
        return metadata.compacted_batch_indexes[-1]
    if metadata.encryption_keys:  # such a batch is never compacted
        return size - 1
    return None


def last_kept(batch: bytes, size: int, most: int = MOST_MESSAGES) -> int:
    """Return the index of the last of `size` messages that is not compacted out, in a plain batch.

    Raise `BatchError` when there is none, or when there are more than `most`.
    """
    last = max(
        (index for index, (each, _) in enumerate(messages_of(batch, size, most)) if not each.compacted_out), default=-1
    )
    if last < 0:
        raise BatchError(f"all {size} messages of the batch are compacted out")
    return last
