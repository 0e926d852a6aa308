"""Sessions and their sockets: slow readers, pauses, and the end of connections."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.model.rate.publish_buffer import READ_BESIDE_OTHERS
from pulsarium.broker.session.session import Session, sessions_of
from pulsarium.proto.entry import payload_of
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.loopback import Loopback, listening, until
from tests.broker.wire import TOPIC, Earliest, Type, batch_of, frame_of, plain

MB = 1 << 20


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    async with listening() as loopback:
        yield loopback


@pytest.mark.req("W-01")
async def test_frames_come_in_any_pieces(loopback: Loopback) -> None:
    wire = await loopback.dial()
    for byte in frame_of(Type.CONNECT, client_version="slow", protocol_version=21):
        await wire.write(bytes([byte]))
    await wire.expect(Type.CONNECTED)
    await wire.producer()
    await wire.subscribe()
    await wire.flow()
    payloads = [b"%d" % i * (i * 997 % 100_000) for i in range(1, 40)]
    data = wire.sends(*map(plain, payloads))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wire.write, data)
        received = [await wire.next() for _ in range(2 * len(payloads))]
    delivered = [payload_of(entry) for command, entry in received if command.type == Type.MESSAGE]
    assert delivered == payloads


@pytest.mark.req("W-01", "W-05")
async def test_large_messages_pass_both_ways(loopback: Loopback) -> None:
    wire = await loopback.connect()
    await wire.producer()
    payloads = [bytes([i]) * (5 * MB) for i in range(3)]
    for payload in payloads:
        await wire.publish(plain(payload))
    reader = await loopback.connect()
    await reader.subscribe(initialPosition=Earliest)
    await reader.flow()
    assert await reader.payloads(3) == payloads


async def test_one_read_takes_little_while_others_publish(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    receive = Session.receive

    def noted(session: Session, data: bytes) -> None:
        reads.append(len(data))
        receive(session, data)

    monkeypatch.setattr(Session, "receive", noted)
    flood, other = await loopback.connect(), await loopback.connect()
    await flood.producer()
    await other.producer("other")
    await other.publish(plain(b"x"))
    async with trio.open_nursery() as nursery:
        # few enough for less than READS_ALONE reads, even if a busy network brings little at once
        nursery.start_soon(flood.write, flood.sends(*[plain(bytes(50_000))] * 80))
        await flood.receipts(80)
    assert max(reads) <= READ_BESIDE_OTHERS


async def test_a_consumer_that_does_not_read_holds_nobody_up(loopback: Loopback) -> None:
    """Messages for which the socket has no room stay in the ledger, and not in the connection's memory."""
    wire = await loopback.connect()
    slow = await loopback.connect(receive_buffer=4096)
    await slow.subscribe()
    await slow.flow(100_000)
    await wire.producer()
    await wire.subscribe(name="quick")
    await wire.flow(100_000)
    payload = bytes(50_000)
    for _ in range(20):
        await wire.write(wire.sends(*[plain(payload)] * 20))
        received = [(await wire.next()).command.type for _ in range(40)]
        assert received.count(Type.SEND_RECEIPT) == received.count(Type.MESSAGE) == 20
    buffered = max(session.outgoing.size for session in sessions_of(loopback.broker))
    assert MB <= buffered < 1.2 * MB
    positions = [message.position for message in await slow.messages(400)]
    assert positions == sorted(set(positions))
    await slow.alive()


async def test_a_backlog_does_not_go_into_the_connections_memory(loopback: Loopback) -> None:
    wire = await loopback.connect()
    await wire.producer()
    for _ in range(10):
        await wire.publish(*[plain(bytes(100_000))] * 20)
    slow = await loopback.connect(receive_buffer=4096)
    await slow.subscribe(initialPosition=Earliest)
    await slow.flow(100_000)
    await wire.alive()
    assert max(session.outgoing.size for session in sessions_of(loopback.broker)) < 1.2 * MB
    assert len(await slow.messages(200)) == 200


async def test_replies_wait_their_turn_behind_messages_that_wait(loopback: Loopback) -> None:
    wire = await loopback.connect(receive_buffer=4096)
    await wire.producer()
    await wire.publish(*[plain(bytes(MB))] * 8)
    await wire.subscribe(initialPosition=Earliest)
    await wire.write(frame_of(Type.FLOW, consumer_id=0, messagePermits=8) + frame_of(Type.PING) * 1000)
    (session,) = sessions_of(loopback.broker)
    await until(lambda: session.outgoing.size)  # the broker's side is full
    kinds = [(await wire.next()).command.type for _ in range(1008)]
    assert kinds.count(Type.MESSAGE) == 8
    assert kinds.count(Type.PONG) == 1000


@pytest.mark.req("W-12")
async def test_a_dead_client_with_a_full_socket_is_let_go(loopback: Loopback) -> None:
    """The broker closes the connection, although it cannot write and receives nothing."""
    wire = await loopback.connect(receive_buffer=4096)
    await wire.producer()
    await wire.publish(*[plain(bytes(MB))] * 8)
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    (session,) = sessions_of(loopback.broker)
    await until(lambda: session.outgoing.size)
    session.close("no answer")
    await loopback.sessions(0)
    await wire.closed()


async def test_a_client_that_vanishes_is_let_go(loopback: Loopback) -> None:
    wire = await loopback.connect(receive_buffer=4096)
    await wire.producer()
    await wire.publish(*[plain(bytes(MB))] * 8)
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    (session,) = sessions_of(loopback.broker)
    await until(lambda: session.outgoing.size)
    await wire.aclose()
    await loopback.sessions(0)
    other = await loopback.connect()
    await other.subscribe()


async def test_reading_pauses_while_too_many_sends_wait() -> None:
    store = HeldStorage()
    async with listening(Config(maxPendingPublishRequestsPerConnection=10), store) as loopback:
        wire = await loopback.connect()
        other = await loopback.connect()
        await wire.producer()
        store.holding = True
        await wire.write(wire.sends(*[plain(b"x")] * 10))
        await until(lambda: any(not session.may_read for session in sessions_of(loopback.broker)))
        await wire.write(frame_of(Type.PING))
        await wire.quiet(0.02)  # the broker does not even read the PING
        await other.alive()
        store.release()
        assert len(await wire.receipts(10)) == 10
        await wire.expect(Type.PONG)
        await wire.publish(*[plain(b"y")] * 100)


async def test_a_pause_in_reading_keeps_nobody_from_writing() -> None:
    """The reading task and the writing task wait for different reasons before the socket is full."""
    store = HeldStorage()
    async with listening(Config(maxPendingPublishRequestsPerConnection=5), store) as loopback:
        wire = await loopback.connect(receive_buffer=4096)
        await wire.producer()
        await wire.subscribe()
        await wire.flow(100_000)
        store.holding = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wire.write, wire.sends(*[plain(bytes(MB))] * 8))
            (session,) = sessions_of(loopback.broker)
            await until(lambda: not session.may_read)
            store.release()
            kinds = [(await wire.next()).command.type for _ in range(16)]
        assert kinds.count(Type.SEND_RECEIPT) == kinds.count(Type.MESSAGE) == 8


async def test_reading_goes_on_when_what_it_waited_for_is_gone() -> None:
    store = HeldStorage()
    async with listening(Config(maxPendingPublishRequestsPerConnection=5), store) as loopback:
        wire = await loopback.connect()
        await wire.producer()
        store.holding = True
        await wire.write(wire.sends(*[plain(b"x")] * 5))
        (session,) = sessions_of(loopback.broker)
        await until(lambda: not session.may_read)
        loopback.broker.topics.delete(TopicName.parse(TOPIC), force=True)
        await wire.expect(Type.CLOSE_PRODUCER)
        store.release()  # no producer is left to get the receipts
        await wire.alive()


@pytest.mark.req("W-12")
async def test_a_paused_connection_can_be_closed() -> None:
    store = HeldStorage()
    async with listening(Config(maxPendingPublishRequestsPerConnection=5), store) as loopback:
        wire = await loopback.connect()
        await wire.producer()
        store.holding = True
        await wire.write(wire.sends(*[plain(b"x")] * 5))
        (session,) = sessions_of(loopback.broker)
        await until(lambda: not session.may_read)
        session.close("the test wants it")
        await wire.closed()
        await loopback.sessions(0)
        store.release()  # no client is left to get the receipts
        other = await loopback.connect()
        await other.subscribe(initialPosition=Earliest)
        await other.flow()
        assert await other.payloads(5) == [b"x"] * 5


async def test_many_connections_come_and_go(loopback: Loopback) -> None:
    wires = [await loopback.connect() for _ in range(50)]
    for number, wire in enumerate(wires):
        await wire.producer(f"{TOPIC}-{number % 3}", producer_name=f"p{number}")
    await wires[0].publish(batch_of(b"a", b"b"))
    for wire in wires[1:]:
        await wire.aclose()
    await loopback.sessions(1)
    await wires[0].publish(plain(b"c"))
