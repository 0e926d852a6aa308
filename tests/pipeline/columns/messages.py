"""Make messages as readers return them, without a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pulsarium.client import Message, MessageId, Schema
from pulsarium.client.producer.draft import MessageOptions, draft
from pulsarium.client.schema.schema import BYTES
from pulsarium.pipeline.columns.reading import BatchBuilder
from pulsarium.proto.generated import PulsarApi_pb2 as pb

TOPIC = "persistent://public/default/t"
ID = MessageId(1, 2, batch_index=3, batch_size=10)


def message(
    content: bytes | None,
    options: MessageOptions | None = None,
    *,
    id: MessageId = ID,
    schema: Schema[Any] | None = None,
    published: int = 1_700_000_000_123,
    index: int | None = None,
) -> Message[Any]:
    """Return a message of a batch. `index` is the index of the last message of the entry."""
    sent = draft(content, **(options or {}))
    entry = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=published)
    kept = None if index is None else pb.BrokerEntryMetadata(index=index)
    return Message(TOPIC, id, entry, sent.metadata, sent.content, schema=schema or BYTES, broker_metadata=kept)


def record(*fields: tuple[Any, ...], name: str = "R", **more: Any) -> dict[str, Any]:
    """Return the Avro definition of a record. A field is a name, a type and an optional default."""
    parts = [dict(zip(("name", "type", "default"), one, strict=False)) for one in fields]
    return {"type": "record", "name": name, "fields": parts, **more}


def logical(base: str, logical_type: str, **more: Any) -> Mapping[str, Any]:
    """Return the Avro definition of a logical type."""
    return {"type": base, "logicalType": logical_type, **more}


def add_all(builder: BatchBuilder, messages: Iterable[Message[Any]]) -> BatchBuilder:
    for each in messages:
        builder.add(each)
    return builder
