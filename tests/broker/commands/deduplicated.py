"""Helpers for producers of a topic with deduplication."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic.deduplication import Deduplication
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, Type, Wire, plain, position_of

NAME = TopicName.parse(TOPIC)
ON = Config(brokerDeduplicationEnabled=True)
DUPLICATE = Position(-1, -1)


async def send(wire: Wire, sequence_id: int, entry: bytes | None = None, **fields: Any) -> None:
    fields = {"producer_id": 0, **fields}
    await wire.send(
        Type.SEND, entry or plain(b"%d" % sequence_id, sequence_id=sequence_id), sequence_id=sequence_id, **fields
    )


async def ask(wire: Wire, sequence_id: int, entry: bytes | None = None, **fields: Any) -> Position:
    """Send an entry, and return the position in its receipt."""
    await send(wire, sequence_id, entry, **fields)
    receipt = await wire.expect(Type.SEND_RECEIPT)
    assert receipt.sequence_id == sequence_id
    return position_of(receipt.message_id)


def deduplication_of(bed: Bed) -> Deduplication:
    found = bed.topic().deduplication
    assert found is not None
    return found


def put(bed: Bed, enabled: bool) -> None:
    policies = bed.broker.metadata.namespaces["public/default"]
    bed.broker.metadata.put_namespace("public/default", policies | {"deduplicationEnabled": enabled})
