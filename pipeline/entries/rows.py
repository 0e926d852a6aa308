"""Take entries apart: where the value, the key and the properties of each message are, in one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pulsarium.client import Message
from pulsarium.pipeline.entries.batches import spans
from pulsarium.pipeline.entries.fields import PAD, Bytes, FieldValues, Ints, Unusual, last_values, once, parse, tags_of
from pulsarium.proto import entry as entries
from pulsarium.proto.compression import decompress
from pulsarium.proto.errors import CompressionError, EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

_MOST_IN_BATCH = 2**20
_TAGS, _PAIR_TAGS = tags_of(pb.SingleMessageMetadata), tags_of(pb.KeyValue)


class EntryPart(NamedTuple):
    """The messages of one entry: those from `first` up to and excluding `last`."""

    entry: Message[bytes]
    first: int
    last: int
    size: int
    """The number of messages in the batch, or 0 for an entry that is no batch."""

    @property
    def rows(self) -> int:
        return self.last - self.first

    @property
    def index_of_first(self) -> int | None:
        """Return the index of the first message in its topic (PIP-70), or None."""
        kept = self.entry.broker_metadata()
        if kept is None or not kept.HasField("index"):
            return None
        return kept.index - self.size + 1 + self.first if self.size else kept.index


@dataclass(frozen=True)
class EntryRows:
    """Messages of several entries, in their order. Spans are positions in `data`."""

    parts: Sequence[EntryPart]
    data: Bytes
    first: Ints
    """The beginnings of the values."""
    stop: Ints
    """The ends of the values. One more byte follows each value, and belongs to no value."""
    fields: dict[int, FieldValues]
    """Fields of the messages' own metadata, by their tags."""
    pairs: tuple[FieldValues, FieldValues] | None
    """Keys and values of all properties. Their rows are numbers of properties."""
    counts: Ints
    """The number of messages of each entry."""

    def __len__(self) -> int:
        return len(self.first)

    def field(self, name: str) -> FieldValues | None:
        """Return a field of SingleMessageMetadata, or None when no message has it."""
        return self.fields.get(_TAGS[name])

    def numbers(self, name: str, default: int = 0) -> Ints:
        """Return a field of SingleMessageMetadata that is a number, for each message."""
        return last_values(self.field(name), len(self), default)


class TakenEntry(NamedTuple):
    """An entry that was taken apart."""

    part: EntryPart
    data: bytes
    """The entry, or its payload when the producer compressed it."""
    spans: Ints
    """The frame of each message in `data`."""


def take_apart(entry: Message[bytes], first: int = 0, last: int | None = None) -> TakenEntry:
    """Return the messages of an entry from batch index `first` up to and excluding `last`.

    Raise `Unusual` for chunks, encrypted and damaged entries.
    """
    metadata, stored = entry.entry_metadata(), entry.data()
    if not metadata.IsInitialized():
        raise Unusual("the metadata is damaged")
    if metadata.encryption_keys or metadata.num_chunks_from_msg > 1 or metadata.HasField("marker_type"):
        raise Unusual("an encrypted entry, a chunk or a marker")
    try:
        if entries.checksum_matches(entries.strip_broker_metadata(stored)) is False:
            raise Unusual("the checksum does not match")
        data, begin = stored, entries.payload_start(stored)
        if metadata.compression:
            data, begin = decompress(metadata.compression, stored[begin:], metadata.uncompressed_size), 0
    except (EntryError, CompressionError) as error:
        raise Unusual(str(error)) from None
    if not metadata.HasField("num_messages_in_batch"):
        payload = data[begin:]
        own = _own(metadata, len(payload))
        found = np.array([[0, len(own), len(own) + len(payload)]], np.int64)
        part = EntryPart(entry, min(first, 1), 1, 0)
        return TakenEntry(part, own + payload, found[part.first :])
    size = metadata.num_messages_in_batch
    if not 0 < size <= _MOST_IN_BATCH:
        raise Unusual(f"{size} messages in a batch")
    part = EntryPart(entry, first, max(first, size if last is None else min(size, last)), size)
    return TakenEntry(part, data, spans(data, size, begin)[part.first : part.last])


def nothing_of(entry: Message[bytes]) -> TakenEntry:
    """Return none of the messages of an entry. Raise `Unusual` for chunks and damaged metadata."""
    metadata = entry.entry_metadata()
    if not metadata.IsInitialized() or metadata.num_chunks_from_msg > 1:
        raise Unusual("a chunk, or damaged metadata")
    size = metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 0
    return TakenEntry(EntryPart(entry, max(1, size), max(1, size), size), b"", np.empty((0, 3), np.int64))


def _own(metadata: pb.MessageMetadata, size: int) -> bytes:
    """Return the metadata of an entry without a batch, as if the entry were a batch."""
    own = pb.SingleMessageMetadata(payload_size=size)
    own.properties.extend(metadata.properties)
    if metadata.HasField("partition_key"):
        own.partition_key = metadata.partition_key
    if metadata.partition_key_b64_encoded:
        own.partition_key_b64_encoded = True
    if metadata.event_time:
        own.event_time = metadata.event_time
    if metadata.null_value:
        own.null_value = True
    return own.SerializeToString()


def _pairs(data: Bytes, properties: FieldValues | None) -> tuple[FieldValues, FieldValues] | None:
    if properties is None:
        return None
    fields = parse(data, properties.first, properties.stop)
    key, value = (fields.get(_PAIR_TAGS[name]) for name in ("key", "value"))
    if key is None or value is None or any(len(each.rows) != len(properties.rows) for each in (key, value)):
        raise Unusual("a property without key or value")
    return once(key), once(value)


def joined(taken: Sequence[TakenEntry]) -> EntryRows:
    """Return the messages of several entries in one buffer. Raise `Unusual` for metadata that is damaged or strange."""
    # one byte behind each entry, so that each value has a byte behind it
    data = np.frombuffer(b"\0".join([*(each.data for each in taken), bytes(PAD)]), np.uint8)
    shifts = np.cumsum([0, *(len(each.data) + 1 for each in taken)], dtype=np.int64)
    found = np.concatenate([each.spans + shift for each, shift in zip(taken, shifts[:-1], strict=True)])
    start, first, stop = (np.ascontiguousarray(column) for column in found.T)
    fields = parse(data, start, first)
    counts = np.array([each.part.rows for each in taken], np.int64)
    pairs = _pairs(data, fields.get(_TAGS["properties"]))
    rows = EntryRows([each.part for each in taken], data, first, stop, fields, pairs, counts)
    if (rows.numbers("payload_size", -1) != stop - first).any():
        raise Unusual("a message with two sizes")
    if rows.numbers("compacted_out").any():
        raise Unusual("messages that compaction removed")
    return rows
