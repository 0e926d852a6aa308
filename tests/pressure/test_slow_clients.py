"""Consumers that stop reading, publishers that never stop, and slow applications: other clients go on."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
import trio.testing

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from pulsarium.broker.model.rate.publish_buffer import LARGEST_READ
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.session.outgoing import HIGH_WATER
from pulsarium.broker.session.session import sessions_of
from pulsarium.broker.session.transport import serve_plain
from pulsarium.client import ConsumerType, InitialPosition
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.loopback import listening
from tests.broker.wire import Bed, Type, Wire, plain, serving
from tests.client.in_process import in_process

MB = 1 << 20
ENTRY = plain(bytes(20_000))
BURST = 100
CONFIG = Config(managedLedgerCacheSizeMB=2, maxMessagePublishBufferSizeInMB=2)


@pytest.mark.parametrize("type", [pb.CommandSubscribe.Shared, pb.CommandSubscribe.Key_Shared])
async def test_a_consumer_that_stops_reading(type: int) -> None:
    """The consumer has all permits. Its queue has a limit, and other consumers get the messages beyond."""
    async with listening(CONFIG) as loopback:
        stuck = await loopback.connect(receive_buffer=4096)
        await stuck.subscribe(type=type)
        await stuck.flow(1_000_000)
        await stuck.quiet(0.01)
        others = [await loopback.connect() for _ in range(2)]
        await others[0].subscribe(type=type)
        await others[0].flow(1_000_000)
        await others[1].subscribe(name="another")
        await others[1].flow(1_000_000)
        publisher = await loopback.connect()
        await publisher.producer()
        (session,) = (
            each for each in sessions_of(loopback.broker) if 0 in each.consumers and each.address == _name(stuck)
        )
        seen = [0, 0]
        burst = [plain(bytes(20_000), partition_key=f"key-{number}") for number in range(BURST)]
        for _ in range(20):
            await publisher.publish(*burst)
            assert session.outgoing.size < HIGH_WATER + 2 * MB
            assert loopback.broker.cluster.cache.size < 6 * MB
            for number, wire in enumerate(others):
                with trio.move_on_after(0.001):
                    while True:
                        await wire.message()
                        seen[number] += 1
        assert session.outgoing.size >= HIGH_WATER
        while seen[1] < 20 * BURST:
            await others[1].message()
            seen[1] += 1
        if not seen[0]:
            await others[0].message()
        await others[0].send(Type.PING)
        while (answer := (await others[0].next()).command.type) == Type.MESSAGE:
            pass
        assert answer == Type.PONG
        for wire in (others[1], publisher):
            await wire.alive()


def _name(wire: Wire) -> str:
    assert isinstance(wire.stream, trio.SocketStream)
    host, port = wire.stream.socket.getsockname()
    return f"/{host}:{port}"


@asynccontextmanager
async def paired(bed: Bed) -> AsyncIterator[Wire]:
    """Connect to a broker by a pair of sockets, whose bytes arrive at once. A busy network carries some late."""
    near, far = socket.socketpair()
    far.setblocking(False)
    with near:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_plain, bed.broker, far, "/paired")
            wire = Wire(trio.SocketStream(trio.socket.from_stdlib_socket(near)))
            await wire.connect()
            yield wire
            nursery.cancel_scope.cancel()


async def test_a_flood_is_read_in_turn_with_others() -> None:
    """The broker serves a request after at most a few reads of the flood, however long the flood is."""
    async with serving() as bed, paired(bed) as fast, paired(bed) as other, trio.open_nursery() as nursery:
        await fast.producer()
        (session,) = (each for each in sessions_of(bed.broker) if each.producers)
        count = 2000
        received = [0]
        (producer,) = session.producers.values()
        nursery.start_soon(fast.write, fast.sends(*[ENTRY] * count))
        nursery.start_soon(fast.receipts, count)
        for _ in range(20):
            before = producer.bytes_in
            await other.alive()
            received.append(producer.bytes_in - before)
        assert producer.bytes_in < count * len(ENTRY), "it was over too soon to tell"
        assert max(received) <= 8 * LARGEST_READ
        nursery.cancel_scope.cancel()


@pytest.mark.usefixtures("autojump_clock")
async def test_a_slow_application_has_a_bounded_queue() -> None:
    """Another consumer on the same connection still receives messages."""
    async with in_process() as inside, inside.client() as client, AsyncExitStack() as stack:
        consumers = [
            await stack.enter_async_context(
                client.subscribe(
                    "t",
                    name,
                    consumer_type=ConsumerType.Shared,
                    initial_position=InitialPosition.Earliest,
                    receiver_queue_size=50,
                )
            )
            for name in ("slow", "quick")
        ]
        producer = await stack.enter_async_context(client.create_producer("t", batching_max_messages=10))
        for number in range(1000):
            await producer.submit(b"%d" % number)
            if number % 100 == 99:
                await producer.flush()
                for _ in range(100):
                    await consumers[1].acknowledge(await consumers[1].receive())
                stats = await _waiting(inside.bed.broker, "slow")
                assert stats <= 50 + 10
        for number in range(1000):
            message = await consumers[0].receive()
            assert message.data() == b"%d" % number
            await consumers[0].acknowledge(message)


async def _waiting(broker: Broker, name: str) -> int:
    """Return the number of unacknowledged messages of a subscription's only consumer."""
    await trio.testing.wait_all_tasks_blocked()
    (topic,) = broker.cluster.topics.loaded.values()
    assert isinstance(topic, PersistentTopic)
    (consumer,) = topic.subscriptions[name].consumers
    return consumer.unacked
