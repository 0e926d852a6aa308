"""The last compacted entry behind a GET_LAST_MESSAGE_ID_RESPONSE (PIP-429, v22), and which of its messages is the last.

The buffer is the stored entry as a MESSAGE would carry it to a client that is shown no broker metadata:
`[u16 0x0e01][u32 CRC32C][u32 size][MessageMetadata][payload]`. Another compaction service may leave the checksum away.
"""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.proto import compression
from pulsarium.proto.batch import messages_of
from pulsarium.proto.entry import checksum_matches, parse_metadata, split, strip_broker_metadata
from pulsarium.proto.errors import BatchError, EntryError
from pulsarium.proto.generated.PulsarApi_pb2 import MessageMetadata


class Buffer(NamedTuple):
    """A buffer taken apart; the payload is as it was stored: compressed, and perhaps encrypted."""

    metadata: MessageMetadata
    metadata_bytes: bytes
    payload: bytes


def buffer_of(stored_entry: bytes) -> bytes:
    """What follows the response: the entry without what the broker wrote in front."""
    return strip_broker_metadata(stored_entry)


def take_apart(buffer: bytes) -> Buffer:
    """EntryError if the buffer is cut off, its metadata cannot be read, or it does not fit its checksum."""
    if checksum_matches(buffer) is False:
        raise EntryError("the last entry does not fit its checksum")
    metadata = parse_metadata(buffer)
    parts = split(buffer)
    return Buffer(metadata, parts.metadata_bytes, parts.payload)


def last_batch_index(metadata: MessageMetadata, payload: bytes) -> int:
    """The batch index of the last message that compaction kept in an entry; -1 where the entry is one message.

    `payload` as it is stored; it is decompressed only if nothing else tells (S429-16). BatchError or CompressionError
    if it is not what the metadata says, BatchError if nothing was kept.
    """
    index = known_batch_index(metadata)
    if index is None:
        batch = compression.decompress(metadata.compression, payload, metadata.uncompressed_size)
        index = last_kept(batch, metadata.num_messages_in_batch)
    return index


def known_batch_index(metadata: MessageMetadata) -> int | None:
    """What the metadata alone says of it; None: the payload has to be looked into."""
    size = metadata.num_messages_in_batch
    if size <= 1:
        return -1
    if metadata.compacted_batch_indexes:
        return metadata.compacted_batch_indexes[-1]
    if metadata.encryption_keys:  # such a batch is never compacted
        return size - 1
    return None


def last_kept(batch: bytes, size: int) -> int:
    """The index of the last of `size` messages that is not compacted out, in a batch that is neither compressed nor
    encrypted any more. BatchError if there is none."""
    last = max(
        (index for index, (each, _) in enumerate(messages_of(batch, size)) if not each.compacted_out), default=-1
    )
    if last < 0:
        raise BatchError(f"all {size} messages of the batch are compacted out")
    return last
