"""Read the keys of an entry for compaction, and rewrite the entry with only some of its messages."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

from pulsarium.proto import batch
from pulsarium.proto.compression import AT_ONCE, compress, decompress
from pulsarium.proto.entry import build, payload_of, strip_broker_metadata, visible_metadata
from pulsarium.proto.errors import BatchError, CompressionError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Single = tuple[pb.SingleMessageMetadata, bytes]

ALONE = -1


class Keyed(NamedTuple):
    """Key of a message for compaction. A message without a value deletes its key."""

    batch_index: int  # ALONE outside a batch
    key: bytes | None
    has_value: bool


class OpenEntry:
    """An entry that is unpacked once.

    Compaction keeps the whole batch where `messages` is None. An encrypted entry counts as one message with the key of
    its metadata.
    """

    def __init__(self, entry: bytes, metadata: pb.MessageMetadata) -> None:
        self.entry = entry
        self._metadata = metadata
        self._singles: list[Single] = []

    @property
    def takes_long(self) -> bool:
        """Return whether one step of an event loop cannot unpack or rewrite the entry."""
        metadata = self._metadata
        return metadata.num_messages_in_batch > batch.MOST_AT_ONCE or metadata.uncompressed_size > AT_ONCE

    @cached_property
    def messages(self) -> list[Keyed] | None:
        """Return the keys of the messages, or None for a batch that is damaged or too large."""
        metadata = self._metadata
        if metadata.HasField("num_messages_in_batch") and not metadata.encryption_keys:
            return self._open_batch()
        return [self._alone()]

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
        if metadata.num_messages_in_batch > batch.MOST_MESSAGES:
            return None  # before it is decompressed
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
        """Return the entry with the messages at these batch indexes, or None when nothing is retained.

        A batch keeps its number of messages. An empty message replaces each removed one, and field 31 lists
        the retained indexes. A batch that retains all messages keeps its payload. Entries that are no batch,
        or damaged, stay unchanged.
        """
        metadata = self._metadata
        if 0 < len(retained) == metadata.num_messages_in_batch and ALONE not in retained:
            payload = payload_of(self.entry)  # as it is, and not unpacked
            if metadata.compression == pb.NONE:
                metadata.uncompressed_size = len(payload)
            return self._with(retained, payload)
        if self.messages is None:
            return self.entry
        if not retained:
            return None
        if not self._singles:
            return self.entry
        kept = set(retained)
        singles = [each if index in kept else placeholder() for index, each in enumerate(self._singles)]
        packed = batch.pack(singles)
        metadata.uncompressed_size = len(packed)
        return self._with(retained, compress(metadata.compression, packed))

    def _with(self, retained: Collection[int], payload: bytes) -> bytes:
        """Return the entry with another payload, and with the indexes that it retains."""
        metadata = self._metadata
        del metadata.compacted_batch_indexes[:]
        metadata.compacted_batch_indexes.extend(sorted(retained))
        head = self.entry[: len(self.entry) - len(strip_broker_metadata(self.entry))]
        return head + build(metadata, payload)


def open_entry(entry: bytes) -> OpenEntry | None:
    """Unpack an entry for compaction. Return None for a marker or an unreadable entry, which no client sees."""
    metadata = visible_metadata(entry)
    return None if metadata is None else OpenEntry(entry, metadata)


def rewrite(entry: bytes, retained: Collection[int]) -> bytes | None:
    """Return the entry with only these messages of its batch, as `OpenEntry.rewritten` does."""
    opened = open_entry(entry)
    return None if opened is None else opened.rewritten(retained)


def placeholder() -> Single:
    """Return the message that stands in a batch for one that compaction has removed."""
    return pb.SingleMessageMetadata(compacted_out=True, payload_size=0), b""


def _key(metadata: pb.MessageMetadata | pb.SingleMessageMetadata) -> bytes | None:
    if not metadata.HasField("partition_key"):
        return None
    key: str | bytes = metadata.partition_key
    return key if isinstance(key, bytes) else key.encode()
