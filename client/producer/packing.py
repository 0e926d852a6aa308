"""Messages on their way into entries: one by one, or many in a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.producer.draft import Draft, now
from pulsarium.proto.generated import PulsarApi_pb2 as pb

_KEYS = ("partition_key", "partition_key_b64_encoded", "null_partition_key", "ordering_key")


def metadata_of(producer_name: str, drafts: Sequence[Draft], sequence_id: int) -> pb.MessageMetadata:
    """The metadata of an entry with these messages; `sequence_id` is that of the first, or of the last (`KeyBatch`).

    A batch of one would only be bigger (PIP-189).
    """
    metadata = pb.MessageMetadata(producer_name=producer_name, publish_time=now(), sequence_id=sequence_id)
    first = drafts[0].metadata
    if (txn := drafts[0].txn) is not None:
        metadata.txnid_most_bits, metadata.txnid_least_bits = txn
    if len(drafts) > 1:
        _copy(_KEYS, first, metadata)  # Key_Shared goes by these, and compaction
        if drafts[-1].sequence_id != sequence_id:
            metadata.highest_sequence_id = drafts[-1].sequence_id
        return metadata
    metadata.properties.extend(first.properties)
    _copy((*_KEYS, "event_time", "null_value"), first, metadata)
    deliver_at = drafts[0].deliver_at
    if deliver_at is not None:
        metadata.deliver_at_time = deliver_at
    return metadata


def encode(encoder: Encoder, metadata: pb.MessageMetadata, drafts: Sequence[Draft]) -> bytes:
    """The entry of one message, or of several as a batch."""
    if len(drafts) > 1:
        return encoder.batch(metadata, [(message.metadata, message.content) for message in drafts])
    return encoder.single(metadata, drafts[0].content)


def _copy(names: Iterable[str], single: pb.SingleMessageMetadata, metadata: pb.MessageMetadata) -> None:
    """Copy these fields, where they are set."""
    for name in names:
        if single.HasField(name):
            setattr(metadata, name, getattr(single, name))
