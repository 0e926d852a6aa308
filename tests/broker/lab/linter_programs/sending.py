"""Programs that break rules about producers and SEND."""

from __future__ import annotations

import trio

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type, frame_of

from .program import Client, batch, breaks, message, send


@breaks("unknown-producer")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    await send(wire, producer_id=0 if mended else 9)


@breaks("send-before-ready")
async def _(client: Client, mended: bool) -> None:
    owner = await client.producing(producer_access_mode=pb.Exclusive)
    wire = await client.connected()
    ready = await wire.producer(producer_name="p2", producer_access_mode=pb.WaitForExclusive)
    assert not ready.producer_ready
    if mended:
        await owner.ask(Type.CLOSE_PRODUCER, producer_id=0)
        assert (await wire.expect(Type.PRODUCER_SUCCESS)).producer_ready
    await send(wire, 0, message(producer_name="p2"))


@breaks("send-after-close")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    close = frame_of(Type.CLOSE_PRODUCER, producer_id=0, request_id=77)
    sent = frame_of(Type.SEND, message(), producer_id=0, sequence_id=0)
    await wire.write(sent + close if mended else close + sent)


@breaks("producer-close-ignored")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    await client.unload(wire, Type.CLOSE_PRODUCER)
    await trio.sleep(2)
    if mended:
        await wire.producer(producer_name="p", epoch=1)
    await send(wire)


@breaks("closed-twice")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    await wire.producer(producer_id=1, producer_name="q")
    closes = [(0, 77), (1 if mended else 0, 78)]
    await wire.write(b"".join(frame_of(Type.CLOSE_PRODUCER, producer_id=p, request_id=r) for p, r in closes))


@breaks("sequence-goes-back")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing(user_provided_producer_name=mended)
    for sequence in (5, 4):
        await send(wire, sequence)


@breaks("highest-sequence-low")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    await send(wire, 5, batch(5), num_messages=3, highest_sequence_id=7 if mended else 3)
