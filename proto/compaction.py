"""Read the keys of an entry for compaction, and rewrite the entry with only some of its messages."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from pulsarium.proto import batch
from pulsarium.proto.compression import compress, decompress
from pulsarium.proto.entry import build, payload_of, strip_broker_metadata, visible_metadata
from pulsarium.proto.errors import BatchError, CompressionError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Single = tuple[pb.SingleMessageMetadata, bytes]

ALONE = -1
MOST_MESSAGES = 1 << 16  # of a batch that is unpacked: unpacking is one step, and other work waits for its end


class Keyed(NamedTuple):
    """Key of a message for compaction. A message without a value deletes its key (S429-30)."""

    batch_index: int  # ALONE outside a batch
    key: bytes | None
    has_value: bool


class OpenEntry:
    """An entry that is unpacked once.

    `messages` is None for a batch that is damaged or too large; compaction keeps the whole batch. An encrypted entry
    counts as one message with the key of its metadata (S429-17).
    """

    def __init__(self, entry: bytes, metadata: pb.MessageMetadata) -> None:
        self.entry = entry
        self._metadata = metadata
        self._singles: list[Single] = []
        self.messages: list[Keyed] | None
        if metadata.HasField("num_messages_in_batch") and not metadata.encryption_keys:
            self.messages = self._open_batch()
        else:
            self.messages = [self._alone()]

    def _alone(self) -> Keyed:
        metadata = self._metadata
        if metadata.null_value:
            return Keyed(ALONE, _key(metadata), False)
        has_value = metadata.uncompressed_size > 0
        if not has_value and not metadata.HasField("uncompressed_size"):
            has_value = bool(payload_of(self.entry))
        return Keyed(ALONE, _key(metadata), has_value)

    def _open_batch(self) -> list[Keyed] | None:
        metadata = self._metadata
        if metadata.num_messages_in_batch > MOST_MESSAGES:
            return None
        try:
            payload = decompress(metadata.compression, payload_of(self.entry), metadata.uncompressed_size)
            self._singles = batch.unpack(payload, metadata.num_messages_in_batch)
        except (BatchError, CompressionError):
            return None
        return [
            Keyed(index, _key(single), single.payload_size > 0)
            for index, (single, _) in enumerate(self._singles)
            if not single.compacted_out  # an earlier compaction removed it
        ]

    def rewritten(self, retained: Collection[int]) -> bytes | None:
        """Return the entry with the messages at these batch indexes, or None when nothing is retained (S429-31).

        A batch keeps its number of messages. An empty message replaces each removed one (S429-12), and field 31 lists
        the retained indexes (S429-15). Entries that are no batch, or damaged, stay unchanged.
        """
        if not self._singles:
            return self.entry if retained or self.messages is None else None
        if not retained:
            return None
        singles = [each if index in retained else _placeholder() for index, each in enumerate(self._singles)]
        payload = batch.pack(singles)
        metadata = self._metadata
        metadata.uncompressed_size = len(payload)
        del metadata.compacted_batch_indexes[:]
        metadata.compacted_batch_indexes.extend(sorted(retained))
        head = self.entry[: len(self.entry) - len(strip_broker_metadata(self.entry))]
        return head + build(metadata, compress(metadata.compression, payload))


def open_entry(entry: bytes) -> OpenEntry | None:
    """Unpack an entry for compaction. Return None for a marker or an unreadable entry, which no client sees."""
    metadata = visible_metadata(entry)
    return None if metadata is None else OpenEntry(entry, metadata)


def rewrite(entry: bytes, retained: Collection[int]) -> bytes | None:
    """Return the entry with only these messages of its batch, as `OpenEntry.rewritten` does."""
    opened = open_entry(entry)
    return None if opened is None else opened.rewritten(retained)


def _placeholder() -> Single:
    return pb.SingleMessageMetadata(compacted_out=True, payload_size=0), b""


def _key(metadata: pb.MessageMetadata | pb.SingleMessageMetadata) -> bytes | None:
    if not metadata.HasField("partition_key"):
        return None
    key: str | bytes = metadata.partition_key
    return key if isinstance(key, bytes) else key.encode()
