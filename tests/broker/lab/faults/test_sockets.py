"""Faults on connections that are sockets. The broker reads and writes sockets by other code than streams."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator

import pytest
import trio

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults import Close, Delay, Drop, Faults, Stall, Truncate
from pulsarium.broker.session.session import sessions_of
from pulsarium.proto.commands import Direction
from tests.broker.lab.faults.observers import Seen
from tests.broker.loopback import MB, Loopback, listening, until
from tests.broker.wire import Shared, Type, Wire, plain

A, B = plain(b"a"), plain(b"b")
BIG = plain(bytes(MB))


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    async with listening() as loopback:
        yield loopback


@pytest.fixture
def faults(loopback: Loopback) -> Faults:
    lab = loopback.broker.cluster.attached(Lab)
    return lab.faults


@pytest.fixture
async def sender(loopback: Loopback) -> Wire:
    wire = await loopback.connect()
    await wire.producer()
    return wire


async def test_a_lost_receipt_and_a_late_one(faults: Faults, sender: Wire) -> None:
    lost = faults.add(Drop(), "SEND", stage="after")
    late = faults.add(Delay(0.01), "SEND_RECEIPT", skip=0)
    await sender.write(sender.sends(A))
    await lost.wait()
    await sender.write(sender.sends(B))
    (second,) = await sender.receipts(1)
    assert (second.entry_id, late.hits) == (1, 1)


async def test_closed_after_the_work(faults: Faults, loopback: Loopback, sender: Wire) -> None:
    faults.add(Close(), "SEND", stage="after")
    await sender.write(sender.sends(A))
    assert await sender.closed() == []
    await loopback.sessions(0)
    other = await loopback.connect()
    await other.producer()
    assert [position.entry_id for position in await other.publish(B)] == [1]


async def test_a_piece_of_a_frame(faults: Faults, loopback: Loopback, sender: Wire) -> None:
    faults.add(Truncate(9), "SEND_RECEIPT")
    await sender.write(sender.sends(A))
    data = b""
    while piece := bytes(await sender.stream.receive_some(100)):
        data += piece
    assert len(data) == 9
    await loopback.sessions(0)


async def test_a_stalled_client_is_read_again(faults: Faults, loopback: Loopback, sender: Wire) -> None:
    rule = faults.add(Stall(), "SEND")
    (session,) = sessions_of(loopback.broker)
    count = 30
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender.write, sender.sends(*[BIG] * count))
        await rule.wait()
        await until(lambda: not session.may_read)
        rule.remove()
        await sender.receipts(count)
    await sender.alive()


async def test_a_stalled_broker_goes_on(faults: Faults, loopback: Loopback, sender: Wire) -> None:
    wire = await loopback.connect()
    await wire.subscribe(type=Shared)
    await wire.flow()
    rule = faults.add(Stall(), "MESSAGE")
    for _ in range(10):
        await sender.publish(BIG)
    session = next(each for each in sessions_of(loopback.broker) if each.consumers)
    assert MB <= session.outgoing.waiting < 3 * MB
    rule.remove()
    assert [message.position.entry_id for message in await wire.messages(10)] == list(range(10))
    await wire.alive()


async def test_a_client_that_leaves_loses_nothing(faults: Faults, loopback: Loopback, sender: Wire) -> None:
    rule = faults.add(Delay(3600), "SEND")
    await sender.write(sender.sends(A, B))
    await rule.wait()
    stream = sender.stream
    assert isinstance(stream, trio.SocketStream)
    await stream.send_eof()
    await loopback.sessions(0)
    other = await loopback.connect()
    await other.subscribe(initialPosition=1)
    await other.flow()
    assert await other.payloads(2) == [b"a", b"b"]
    await other.send(Type.PING)


async def test_a_client_that_resets_its_connection_has_left(faults: Faults, loopback: Loopback, sender: Wire) -> None:
    rule = faults.add(Delay(3600), "SEND")
    seen = Seen()
    loopback.broker.cluster.attached(Lab).taps.observe(seen)
    await sender.write(sender.sends(A))
    await rule.wait()
    stream = sender.stream
    assert isinstance(stream, trio.SocketStream)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await stream.aclose()
    await loopback.sessions(0)
    assert seen.ended == [(Direction.CLIENT, "")]
    assert seen.of("SEND") == [{"fault": rule.id, "did": "delayed"}]
