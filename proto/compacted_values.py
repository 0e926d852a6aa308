"""Convert compacted batches to and from a format without SingleMessageMetadata, as PIP-429 allows compaction services.

The payload is JSON of the retained messages, and a property lists their batch indexes. The metadata is that of the
batch, with its number of messages. Of each message only key and value are kept. Compression is that of the batch. A
batch with a key that is not UTF-8 keeps Pulsar's format.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from itertools import pairwise
from typing import Any

from pulsarium.proto import batch
from pulsarium.proto.compaction import Single, placeholder
from pulsarium.proto.compression import compress, decompress
from pulsarium.proto.entry import build, payload_of, strip_broker_metadata, visible_metadata
from pulsarium.proto.errors import BatchError, CompressionError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

PROPERTY = "values-compaction.retained"  # indexes in the batch, as "0,2"
KEPT = ("partition_key", "partition_key_b64_encoded")  # of SingleMessageMetadata


def retained_indexes(metadata: pb.MessageMetadata) -> list[int] | None:
    """Return the batch indexes of the messages that an entry holds, or None for an entry in Pulsar's format."""
    values = [each.value for each in metadata.properties if each.key == PROPERTY]
    if len(values) != 1 or not metadata.HasField("num_messages_in_batch") or metadata.encryption_keys:
        return None
    try:
        indexes = [int(index) for index in text_of(values[0]).split(",")]
    except ValueError:
        return None
    size = metadata.num_messages_in_batch
    in_order = all(before < index for before, index in pairwise([-1, *indexes, size]))
    return indexes if in_order and size <= batch.MOST_MESSAGES else None


def messages_in(payload: bytes) -> list[Single]:
    """Return the messages of a decompressed payload. Raise `ValueError` when it is not in this format."""
    try:
        return [_single(b64decode(value), **about) for value, about in json.loads(payload)]
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"no compacted values: {error}") from None


def to_values(entry: bytes, *, with_field_31: bool = True) -> bytes:
    """Return the entry of a compacted batch in this format. Return any other entry unchanged.

    Without field 31 (compacted_batch_indexes) a broker cannot tell clients up to v21 the id of the last message.
    """
    metadata = visible_metadata(entry)
    left = None if metadata is None else _left_by_compaction(entry, metadata)
    if metadata is None or left is None:
        return entry
    metadata.properties.add(key=PROPERTY, value=",".join(map(str, metadata.compacted_batch_indexes)))
    if not with_field_31:
        del metadata.compacted_batch_indexes[:]
    values = [(b64encode(value).decode(), _about(single)) for single, value in left]
    return _rebuilt(entry, metadata, json.dumps(values).encode())


def _left_by_compaction(entry: bytes, metadata: pb.MessageMetadata) -> list[Single] | None:
    """Return the retained messages of a batch, or None when this format cannot hold them.

    That is the case for keys that are not UTF-8, and for entries whose producer set field 31 or the property itself.
    """
    indexes = list(metadata.compacted_batch_indexes)
    if not indexes or not metadata.HasField("num_messages_in_batch") or metadata.encryption_keys:
        return None
    if any(each.key == PROPERTY for each in metadata.properties):
        return None
    try:
        singles = batch.unpack(_payload(entry, metadata), metadata.num_messages_in_batch)
    except (BatchError, CompressionError):
        return None
    left = [(index, each) for index, each in enumerate(singles) if not each[0].compacted_out]
    if [index for index, _ in left] != indexes or any(isinstance(each.partition_key, bytes) for _, (each, _) in left):
        return None
    return [each for _, each in left]


def to_batch(entry: bytes) -> bytes:
    """Return the entry in Pulsar's format. Return an entry that is not in this format unchanged."""
    metadata = visible_metadata(entry)
    indexes = None if metadata is None else retained_indexes(metadata)
    if metadata is None or indexes is None:
        return entry
    try:
        kept = dict(zip(indexes, messages_in(_payload(entry, metadata)), strict=True))
    except (CompressionError, ValueError):  # a producer set the property
        return entry
    singles = [kept.get(index) or placeholder() for index in range(metadata.num_messages_in_batch)]
    others = [each for each in metadata.properties if each.key != PROPERTY]
    del metadata.properties[:]
    metadata.properties.extend(others)
    metadata.compacted_batch_indexes[:] = indexes
    return _rebuilt(entry, metadata, batch.pack(singles))


def _payload(entry: bytes, metadata: pb.MessageMetadata) -> bytes:
    return decompress(metadata.compression, payload_of(entry), metadata.uncompressed_size)


def _rebuilt(entry: bytes, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
    """Return the entry with another payload. Broker entry metadata stays in front."""
    metadata.uncompressed_size = len(payload)
    head = entry[: len(entry) - len(strip_broker_metadata(entry))]
    return head + build(metadata, compress(metadata.compression, payload))


def _about(single: pb.SingleMessageMetadata) -> dict[str, Any]:
    """Return the fields of a message that are kept beside its value."""
    return {name: getattr(single, name) for name in KEPT if single.HasField(name)}


def _single(value: bytes, **about: Any) -> Single:
    if not about.keys() <= set(KEPT):
        raise ValueError(f"nothing of a message: {', '.join(about)}")
    return pb.SingleMessageMetadata(payload_size=len(value), **about), value
