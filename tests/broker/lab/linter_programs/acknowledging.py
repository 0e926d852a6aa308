"""Programs that break rules about acknowledgements."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.model.ledger.position import Position
from tests.broker.wire import Cumulative, Exclusive, Individual, Type, Wire, message_id

from .program import Client, batch, breaks, given, message


async def _ack(wire: Wire, *positions: Position, type: int = Individual, **fields: Any) -> None:
    ids = [message_id(position, **fields) for position in positions]
    await wire.send(Type.ACK, consumer_id=0, ack_type=type, message_id=ids)


@breaks("ack-not-delivered")
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(message())
    await _ack(wire, first.position if mended else Position(first.position.ledger_id, 99))


@breaks("ack-after-close")
async def _(client: Client, mended: bool) -> None:
    """Acknowledge after CLOSE_CONSUMER, which loses the acknowledgement. After UNSUBSCRIBE nothing is lost."""
    wire, (first,) = await client.consuming(message())
    await wire.ask(Type.UNSUBSCRIBE if mended else Type.CLOSE_CONSUMER, consumer_id=0)
    await _ack(wire, first.position)


@breaks("ack-twice")
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(message())
    for _ in range(1 if mended else 2):
        await _ack(wire, first.position)


@breaks("ack-of-nothing")
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(message())
    await _ack(wire, *([first.position] if mended else []))


@breaks("cumulative-on-shared")
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(message())
    await _ack(wire, first.position, type=Individual if mended else Cumulative)


@breaks("cumulative-of-many")
async def _(client: Client, mended: bool) -> None:
    wire, messages = await client.consuming(message(0), message(1), type=Exclusive)
    positions = [each.position for each in messages]
    await _ack(wire, *positions[1:] if mended else positions, type=Cumulative)


@breaks("cumulative-goes-back")
async def _(client: Client, mended: bool) -> None:
    wire, messages = await client.consuming(message(0), message(1), type=Exclusive)
    for each in messages if mended else reversed(messages):
        await _ack(wire, each.position, type=Cumulative)


@breaks("ack-set-of-no-batch")
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(message())
    await _ack(wire, first.position, **given(not mended, ack_set=[0]))


@breaks("ack-set-too-long")
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(batch())
    await _ack(wire, first.position, ack_set=[0b110 if mended else -2])


@breaks("ack-set-polarity")
async def _(client: Client, mended: bool) -> None:
    """Acknowledge the three messages of a batch one by one. With inverted bits, the first two ACKs acknowledge all
    three messages."""
    wire, (first,) = await client.consuming(batch())
    for bits in (0b101, 0b011, 0b110) if mended else (0b010, 0b100, 0b001):
        await _ack(wire, first.position, ack_set=[bits])


@breaks("ack-set-repeated")
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(batch())
    for bits in (0b110, 0b101 if mended else 0b110):
        await _ack(wire, first.position, ack_set=[bits])
