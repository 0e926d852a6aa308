"""Programs that break rules about consumers: permits, SEEK and redelivery."""

from __future__ import annotations

from typing import Any

import trio

from pulsarium.broker.config.proposals import NEGATIVE_ACKS
from pulsarium.broker.model.ledger.position import Position
from tests.broker.wire import TOPIC, Exclusive, KeyShared, Shared, Type, frame_of, message_id

from .program import Client, breaks, given, message

MOST = 2**31 - 1


@breaks("unknown-consumer")
async def _(client: Client, mended: bool) -> None:
    wire, _ = await client.consuming()
    await wire.flow(consumer_id=0 if mended else 9)


@breaks("used-before-subscribed")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    fields: dict[str, Any] = {"topic": TOPIC, "subscription": "s", "subType": Shared, "consumer_id": 0, "request_id": 1}
    subscribe, flow = frame_of(Type.SUBSCRIBE, **fields), frame_of(Type.FLOW, consumer_id=0, messagePermits=1)
    if mended:
        await wire.write(subscribe)
        await wire.expect(Type.SUCCESS)
        await wire.write(flow)
    else:
        await wire.write(subscribe + flow)


@breaks("consumer-close-ignored")
async def _(client: Client, mended: bool) -> None:
    wire, _ = await client.consuming()
    await client.unload(wire, Type.CLOSE_CONSUMER)
    await trio.sleep(2)
    if mended:
        await wire.subscribe(type=Shared)
    await wire.flow()


@breaks("flow-of-nothing")
async def _(client: Client, mended: bool) -> None:
    wire, _ = await client.consuming()
    await wire.flow(1 if mended else 0)


@breaks("flow-overflow")
async def _(client: Client, mended: bool) -> None:
    wire, _ = await client.consuming()
    await wire.flow(1 if mended else MOST)
    await wire.flow(1000)


@breaks("seek-target")
async def _(client: Client, mended: bool) -> None:
    wire, _ = await client.consuming()
    await wire.request(Type.SEEK, consumer_id=0, **given(mended, message_publish_time=1))


@breaks("second-seek")
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(message())
    seeks = [
        frame_of(Type.SEEK, consumer_id=0, request_id=number, message_id=message_id(first.position))
        for number in (101, 102)
    ]
    await wire.write(b"".join(seeks[: 1 if mended else 2]))


@breaks("redeliver-not-delivered")
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(message())
    await wire.redeliver([first.position if mended else Position(first.position.ledger_id, 99)])


@breaks("redeliver-ids-ignored")
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(message(), type=Exclusive)
    await wire.redeliver([] if mended else [first.position])


@breaks("negative-ack-not-delivered", pip=[NEGATIVE_ACKS])
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(message(), type=KeyShared)
    named = first.position if mended else Position(first.position.ledger_id, 99)
    await wire.send(Type.NEGATIVE_ACK, consumer_id=0, negative_acked=[message_id(named)])


@breaks("negative-ack-returned", pip=[NEGATIVE_ACKS])
async def _(client: Client, mended: bool) -> None:
    wire, (first, second) = await client.consuming(message(), message(1), type=KeyShared)
    returned = second if mended else first
    ids: dict[str, Any] = {"negative_acked": [message_id(first.position)], "returned": [message_id(returned.position)]}
    await wire.send(Type.NEGATIVE_ACK, consumer_id=0, **ids)


@breaks("negative-ack-elsewhere", pip=[NEGATIVE_ACKS])
async def _(client: Client, mended: bool) -> None:
    wire, (first,) = await client.consuming(message(), type=Shared)
    await wire.send(Type.NEGATIVE_ACK, consumer_id=0, **given(not mended, negative_acked=[message_id(first.position)]))


@breaks("consumer-epoch-goes-back")
async def _(client: Client, mended: bool) -> None:
    wire, _ = await client.consuming(type=Exclusive)
    for epoch in (1, 2) if mended else (2, 1):
        await wire.redeliver(consumer_epoch=epoch)
