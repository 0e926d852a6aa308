"""Options of `subscribe` and `create_reader` with which `read_compacted` reads what the engine wrote."""

from __future__ import annotations

from collections.abc import Iterable

from pulsarium.client.consumer.last_entry import DefaultPayloadToMessageIdConverter, LastEntry
from pulsarium.client.message_id import MessageId
from pulsarium.proto import batch
from pulsarium.proto.compacted_values import messages_in, retained_indexes
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class ValuesConverter:
    """`payload_to_message_id_converter`: the last message's id, out of the entry's properties."""

    def convert(self, last_entry: LastEntry) -> MessageId:
        metadata = pb.MessageMetadata.FromString(last_entry.metadata_buffer)
        indexes = retained_indexes(metadata)
        if indexes is None:
            return DefaultPayloadToMessageIdConverter().convert(last_entry)
        where = last_entry.ledger_id, last_entry.entry_id, last_entry.partition_index
        return MessageId(*where, indexes[-1], metadata.num_messages_in_batch)


class ValuesProcessor:
    """`message_payload_processor`: the messages of an entry, also of those behind the compacted ones."""

    def process(
        self, metadata: pb.MessageMetadata, payload: bytes
    ) -> Iterable[tuple[int, pb.SingleMessageMetadata | None, bytes]]:
        indexes = retained_indexes(metadata)
        if indexes is not None:
            singles = list(zip(indexes, messages_in(payload), strict=True))
        elif metadata.HasField("num_messages_in_batch"):
            singles = list(enumerate(batch.unpack(payload, metadata.num_messages_in_batch)))
        else:
            return [(-1, None, payload)]
        return [(index, single, value) for index, (single, value) in singles]
