"""A compacted batch without SingleMessageMetadata, as PIP-429 has it for compaction services of others: what is left of
it as JSON, and a property that says which messages that are.

The metadata is the batch's, its count of messages too. The payload has no SingleMessageMetadata, so that what those say
beside key and value is not kept. It is compressed as the batch was.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from pulsarium.proto import batch
from pulsarium.proto.compression import compress, decompress
from pulsarium.proto.entry import build, payload_of, strip_broker_metadata, visible_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb

PROPERTY = "values-compaction.retained"  # indexes in the batch, as "0,2"
KEPT = ("partition_key", "partition_key_b64_encoded")  # of SingleMessageMetadata

Single = tuple[pb.SingleMessageMetadata, bytes]


def retained_indexes(metadata: pb.MessageMetadata) -> list[int] | None:
    """Which messages of its batch an entry holds; None for one in Pulsar's format. ValueError if it does not say."""
    for each in metadata.properties:
        if each.key == PROPERTY:
            return [int(index) for index in each.value.split(",")]
    return None


def messages_in(payload: bytes) -> list[Single]:
    """The messages of a payload that is not compressed any more."""
    return [_single(b64decode(value), **about) for value, about in json.loads(payload)]


def to_values(entry: bytes, *, with_field_31: bool = True) -> bytes:
    """A batch that compaction wrote, in this format; what is no such batch stays as it is.

    Without field 31 (compacted_batch_indexes) a broker cannot tell clients up to v21 the last message's id.
    """
    metadata = visible_metadata(entry)
    if metadata is None or not metadata.compacted_batch_indexes:
        return entry
    singles = batch.unpack(_payload(entry, metadata), metadata.num_messages_in_batch)
    indexes = list(metadata.compacted_batch_indexes)
    metadata.properties.add(key=PROPERTY, value=",".join(map(str, indexes)))
    if not with_field_31:
        del metadata.compacted_batch_indexes[:]
    values = [(b64encode(value).decode(), _about(single)) for single, value in map(singles.__getitem__, indexes)]
    return _rebuilt(entry, metadata, json.dumps(values).encode())


def to_batch(entry: bytes) -> bytes:
    """The same entry in Pulsar's format again; what is not in this one stays as it is."""
    metadata = visible_metadata(entry)
    indexes = None if metadata is None else retained_indexes(metadata)
    if metadata is None or indexes is None:
        return entry
    kept = dict(zip(indexes, messages_in(_payload(entry, metadata)), strict=True))
    singles = [kept.get(index) or _placeholder() for index in range(metadata.num_messages_in_batch)]
    left = [each for each in metadata.properties if each.key != PROPERTY]
    del metadata.properties[:]
    metadata.properties.extend(left)
    metadata.compacted_batch_indexes[:] = indexes
    return _rebuilt(entry, metadata, batch.pack(singles))


def _payload(entry: bytes, metadata: pb.MessageMetadata) -> bytes:
    return decompress(metadata.compression, payload_of(entry), metadata.uncompressed_size)


def _rebuilt(entry: bytes, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
    """The entry with another payload, behind the broker's own metadata if it has any."""
    metadata.uncompressed_size = len(payload)
    head = entry[: len(entry) - len(strip_broker_metadata(entry))]
    return head + build(metadata, compress(metadata.compression, payload))


def _about(single: pb.SingleMessageMetadata) -> dict[str, Any]:
    """What is kept beside the value."""
    return {name: getattr(single, name) for name in KEPT if single.HasField(name)}


def _single(value: bytes, **about: Any) -> Single:
    return pb.SingleMessageMetadata(payload_size=len(value), **about), value


def _placeholder() -> Single:
    return pb.SingleMessageMetadata(payload_size=0, compacted_out=True), b""
