"""Helpers for the tests of GET_LAST_MESSAGE_ID."""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.broker.model.ledger.position import Position
from tests.broker.compacted import Retained, compacted, compacted_batch
from tests.broker.wire import Bed, Type, Wire, batch_of, plain, position_of


class Last(NamedTuple):
    position: Position
    batch_index: int | None  # None: the field is absent
    mark_delete: Position
    buffer: bytes


async def last(wire: Wire, consumer_id: int = 0) -> Last:
    """Send GET_LAST_MESSAGE_ID. Return the answer, which must be the next frame, with the bytes behind its command."""
    await wire.write(wire.numbered(Type.GET_LAST_MESSAGE_ID, consumer_id=consumer_id))
    command, buffer = await wire.next()
    assert command.type == Type.GET_LAST_MESSAGE_ID_RESPONSE, command
    body = command.getLastMessageIdResponse
    found = body.last_message_id
    assert (body.request_id, found.partition) == (wire.requests, -1)
    index = found.batch_index if found.HasField("batch_index") else None
    return Last(position_of(found), index, position_of(body.consumer_mark_delete_position), buffer)


class Stage(NamedTuple):
    """A topic of four entries. The last is a batch, which compaction has rewritten as `entry`."""

    bed: Bed
    sender: Wire
    positions: list[Position]
    retained: Retained

    async def client(self, version: int, *, read_compacted: bool = True) -> Wire:
        wire = await self.bed.connect(version)
        await wire.subscribe(name=f"s{version}{read_compacted}", read_compacted=read_compacted, initialPosition=1)
        return wire


EXAMPLE = compacted_batch(None, b"v1", None, None, compacted_batch_indexes=[1])


async def stage_of(bed: Bed, entry: bytes = EXAMPLE) -> Stage:
    sender = await bed.connect()
    await sender.producer()
    positions = await sender.publish(*[plain(b"%d" % i) for i in range(3)])
    positions += await sender.publish(batch_of(b"v0", b"v1", b"v0", b""))
    retained = Retained(positions[3], {positions[1]: plain(b"1"), positions[3]: entry})
    compacted(bed.topic(), retained)
    return Stage(bed, sender, positions, retained)
