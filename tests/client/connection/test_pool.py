"""Connections of the pool, and lookups of topics.

Choice of a broker's address: with TLS or without, directly or through the service URL.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import ByteStream
from trio.testing import MockClock

from pulsarium.client import Client, errors
from pulsarium.client.connection.connection import Connection, ConsumerHandler, ReplyFrame
from pulsarium.client.connection.lookup import BinaryLookup, connection_to
from pulsarium.client.connection.pool import Pool
from pulsarium.client.connection.service_url import BrokerAddress, BrokerUrls, parse
from pulsarium.client.connection.settings import Settings
from pulsarium.client.errors import OperationNotSupported
from pulsarium.client.opening import open_client
from pulsarium.client.topics import MOST_TOPICS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.both import on_both
from tests.client.peer import Peer, Peers, Type

Response = pb.CommandLookupTopicResponse
TOPIC = "persistent://public/default/t"
A, B, C = BrokerAddress("a", 6650), BrokerAddress("b", 6650), BrokerAddress("c", 6650)


class Asking:
    """A client that looks a topic up, and the peers that it connects to."""

    def __init__(self, peers: Peers, client: Client) -> None:
        self.peers = peers
        self.client = client
        self.counted: list[int] = []
        self.found: list[Connection] = []
        self.failed: list[errors.PulsarError] = []

    async def ask(self) -> None:
        try:
            if not self.counted:
                self.counted.append(await self.client._core.brokers.partitions(TOPIC))
            self.found.append(await self.client._core.brokers.connect_to(TOPIC))
        except errors.PulsarError as error:
            self.failed.append(error)

    async def partitions(self, peer: Peer, count: int = 0) -> None:
        asked = await peer.expect(Type.PARTITIONED_METADATA)
        assert asked.topic == TOPIC
        await peer.say(Type.PARTITIONED_METADATA_RESPONSE, request_id=asked.request_id, partitions=count)

    async def answer(self, peer: Peer, response: int, **fields: Any) -> pb.CommandLookupTopic:
        asked: pb.CommandLookupTopic = await peer.expect(Type.LOOKUP)
        assert asked.topic == TOPIC
        await peer.say(Type.LOOKUP_RESPONSE, request_id=asked.request_id, response=response, **fields)
        return asked


@asynccontextmanager
async def asking(url: str = "pulsar://a", **settings: Any) -> AsyncIterator[tuple[Asking, list[Peer]]]:
    peers = Peers(**settings)
    seen: list[Peer] = []
    async with anyio.create_task_group() as tasks, open_client(url, peers.settings) as client:
        asking = Asking(peers, client)
        tasks.start_soon(asking.ask)
        yield asking, seen
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
    for peer in seen:
        await peer.close()
    peers.close()


async def met(asking: Asking, seen: list[Peer]) -> tuple[Peer, pb.CommandConnect]:
    peer = await asking.peers.next()
    seen.append(peer)
    return peer, await peer.take_in()


async def counted(asking: Asking, seen: list[Peer]) -> Peer:
    """Accept the client's connection, and answer that the topic has no partitions."""
    peer, _ = await met(asking, seen)
    await asking.partitions(peer)
    return peer


async def ended(peer: Peer) -> None:
    """Read the client's commands until the client closes the connection."""
    with suppress(anyio.EndOfStream):
        while True:
            await peer.next()


async def done(asking: Asking) -> None:
    while not asking.found and not asking.failed:
        await anyio.lowlevel.checkpoint()


@on_both
async def test_one_broker_one_connection() -> None:
    async with asking() as (asks, seen):
        peer, connect = await met(asks, seen)
        assert not connect.HasField("proxy_to_broker_url")
        await asks.partitions(peer)
        await asks.answer(peer, Response.Connect, brokerServiceUrl="pulsar://a:6650", proxy_through_service_url=True)
        await done(asks)
        assert asks.peers.dialled == [A]
        async with anyio.create_task_group() as tasks:  # the second lookup opens no second connection
            tasks.start_soon(asks.ask)
            await asks.answer(peer, Response.Connect, brokerServiceUrl="pulsar://a:6650")
        assert asks.found[0] is asks.found[1]
        assert asks.peers.dialled == [A]


@on_both
async def test_the_pool_connects_through_the_service_url() -> None:
    async with asking() as (asks, seen):
        peer = await counted(asks, seen)
        await asks.answer(peer, Response.Connect, brokerServiceUrl="pulsar://b:6650", proxy_through_service_url=True)
        _, connect = await met(asks, seen)
        assert connect.proxy_to_broker_url == "b:6650"
        await done(asks)
        assert asks.peers.dialled == [A, A]


@on_both
async def test_redirects_of_brokers_are_followed() -> None:
    async with asking() as (asks, seen):
        a, _ = await met(asks, seen)
        await asks.partitions(a)
        first = await asks.answer(a, Response.Redirect, brokerServiceUrl="pulsar://b:6650", authoritative=True)
        b, _ = await met(asks, seen)
        second = await asks.answer(b, Response.Redirect, brokerServiceUrl="pulsar://c:6650", authoritative=False)
        c, _ = await met(asks, seen)
        third = await asks.answer(c, Response.Connect, brokerServiceUrl="pulsar://c:6650")
        assert [asked.authoritative for asked in (first, second, third)] == [False, True, False]
        await done(asks)
        assert asks.peers.dialled == [A, B, C]
        assert asks.found[0].address == "c:6650"


async def test_redirects_that_take_their_time(autojump_clock: MockClock) -> None:
    async with asking(operation_timeout=30) as (asks, seen):
        peer = await counted(asks, seen)
        start = anyio.current_time()
        while not asks.failed:
            with anyio.move_on_after(100):
                await asks.answer(peer, Response.Redirect, brokerServiceUrl="pulsar://a:6650")
                await anyio.sleep(9)
        assert type(asks.failed[0]) is errors.Timeout
        assert anyio.current_time() - start < 150


@on_both
async def test_a_refused_lookup_is_raised_as_its_error() -> None:
    async with asking() as (asks, seen):
        peer = await counted(asks, seen)
        await asks.answer(peer, Response.Failed, error=pb.AuthorizationError, message="not yours")
        await done(asks)
        assert isinstance(asks.failed[0], errors.AuthorizationError)


@on_both
async def test_the_next_address_is_tried() -> None:
    async with asking("pulsar://b,c") as (asks, seen):
        asks.peers.refused.add(B)
        peer = await counted(asks, seen)
        await asks.answer(peer, Response.Connect, brokerServiceUrl="pulsar://c:6650")
        await done(asks)
        assert asks.peers.dialled == [B, C]


@on_both
async def test_all_addresses_where_nobody_listens_are_named() -> None:
    async with asking("pulsar://a,b") as (asks, _):
        asks.peers.refused |= {A, B}
        await done(asks)
        (error,) = asks.failed
        assert isinstance(error, errors.ConnectError)
        assert str(error) == "a:6650: connection refused; b:6650: connection refused"


async def test_a_connection_that_does_not_come(autojump_clock: MockClock) -> None:
    """The limit connection_timeout covers a dial that hangs and a broker that never answers CONNECT."""

    async def hang(address: BrokerAddress) -> ByteStream:
        await anyio.sleep_forever()
        raise AssertionError

    async with open_client("pulsar://a", Settings(dial=hang, connection_timeout=3)) as client:
        start = anyio.current_time()
        with pytest.raises(errors.ConnectError, match="within 3 s"):
            await client._core.brokers.connect_to(TOPIC)
        assert anyio.current_time() - start == pytest.approx(3)
    peers = Peers(connection_timeout=3)
    async with open_client("pulsar://a", peers.settings) as client:
        with pytest.raises(errors.ConnectError, match="within 3 s"):
            await client._core.brokers.connect_to(TOPIC)
    silent = await peers.next()
    await silent.expect(Type.CONNECT)
    with pytest.raises(anyio.EndOfStream):
        await silent.next()
    await silent.close()
    peers.close()


@on_both
async def test_several_connections_to_a_broker() -> None:
    """Openings use the connections in turn, and the pool opens at most `connections_per_broker` of them."""
    peers = Peers(connections_per_broker=2)
    met: list[Peer] = []

    async def accept() -> None:
        while True:
            met.append(await peers.next())
            await met[-1].take_in()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(accept)
        async with open_client("pulsar://a", peers.settings) as client:
            found = [await client._core.brokers.connect_to_any() for _ in range(4)]
            assert found[0] is found[2]
            assert found[1] is found[3]
            assert found[0] is not found[1]
            assert peers.dialled == [A, A]
        tasks.cancel_scope.cancel()
    for peer in met:
        await peer.close()
    peers.close()


async def test_connections_that_nobody_uses_are_closed(autojump_clock: MockClock) -> None:
    async with asking() as (asks, seen):
        peer = await counted(asks, seen)
        await asks.answer(peer, Response.Connect, brokerServiceUrl="pulsar://a:6650")
        await done(asks)
        start = anyio.current_time()
        for _ in range(2):
            await peer.expect(Type.PING)
            await peer.say(Type.PONG)
        await ended(peer)
        assert 60 <= anyio.current_time() - start <= 90
        assert asks.client._core.brokers._pool._connections == {}


async def test_a_used_connection_stays(autojump_clock: MockClock) -> None:
    class Consumer:
        def on_lost(self, error: errors.PulsarError, owner: object = None) -> None:
            raise AssertionError(error)

    async with asking() as (asks, seen):
        peer = await counted(asks, seen)
        await asks.answer(peer, Response.Connect, brokerServiceUrl="pulsar://a:6650")
        await done(asks)
        asks.found[0].attach_consumer(1, cast(ConsumerHandler, Consumer()))
        for _ in range(10):
            await peer.expect(Type.PING)
            await peer.say(Type.PONG)
        assert not asks.found[0].is_lost
        asks.found[0].detach_consumer(1)


@on_both
async def test_brokers_that_name_others_leave_nothing_behind() -> None:
    """The broker names hosts that refuse the connection."""
    async with asking() as (asks, seen):
        peer = await counted(asks, seen)
        await asks.answer(peer, Response.Connect, brokerServiceUrl="pulsar://a:6650")
        await done(asks)
        for number in range(50):
            asks.peers.refused.add(BrokerAddress(f"h{number}", 6650))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(asks.ask)
                await asks.answer(peer, Response.Connect, brokerServiceUrl=f"pulsar://h{number}")
        assert {type(error) for error in asks.failed} == {errors.ConnectError}
        assert len(asks.failed) == 50
        assert asks.client._core.brokers._pool._opening == {}
        assert len(asks.client._core.brokers._pool._connections) == 1


@pytest.mark.parametrize("host", ["x" * 64 + ".y", "a..b", "a\0b"], ids=["long", "empty", "null"])
@on_both
async def test_hosts_that_are_none(host: str) -> None:
    async with open_client("pulsar://a", Settings()) as client:
        for tls in (False, True):
            with anyio.fail_after(30), pytest.raises(errors.PulsarError):
                await client._core.brokers._pool.get(BrokerAddress(host, 1, tls))


@on_both
async def test_a_connection_asks_for_its_listener() -> None:
    async with asking(listener_name="outside") as (asks, seen):
        peer = await counted(asks, seen)
        asked = await asks.answer(peer, Response.Connect, brokerServiceUrl="pulsar://a:6650")
        assert asked.advertised_listener_name == "outside"
        await done(asks)
    async with asking() as (asks, seen):
        peer = await counted(asks, seen)
        asked = await asks.answer(peer, Response.Connect, brokerServiceUrl="pulsar://a:6650")
        assert not asked.HasField("advertised_listener_name")
        await done(asks)


@on_both
async def test_refusals_without_an_error() -> None:
    async with asking() as (asks, seen):
        peer = await counted(asks, seen)
        await asks.answer(peer, Response.Failed)
        await done(asks)
    async with asking() as (asks, seen):
        peer, _ = await met(asks, seen)
        asked = await peer.expect(Type.PARTITIONED_METADATA)
        failed = pb.CommandPartitionedTopicMetadataResponse.Failed
        await peer.say(Type.PARTITIONED_METADATA_RESPONSE, request_id=asked.request_id, response=failed)
        await done(asks)
        assert type(asks.failed[0]) is errors.UnknownError


@on_both
async def test_more_partitions_than_can_be() -> None:
    for count in (MOST_TOPICS + 1, 2**32 - 1):
        async with asking() as (asks, seen):
            peer, _ = await met(asks, seen)
            await asks.partitions(peer, count)
            await done(asks)
            assert type(asks.failed[0]) is errors.OperationNotSupported
            assert str(count) in str(asks.failed[0])


@on_both
async def test_another_answer_than_was_asked_for() -> None:
    """The client ends the connection to a broker that answers with another command."""
    async with asking() as (asks, seen):
        peer, _ = await met(asks, seen)
        asked = await peer.expect(Type.PARTITIONED_METADATA)
        await peer.say(Type.SUCCESS, request_id=asked.request_id)
        await done(asks)
        assert type(asks.failed[0]) is errors.ConnectError
        assert "SUCCESS for PARTITIONED_METADATA" in str(asks.failed[0])
        await ended(peer)


@on_both
async def test_after_the_end_nothing_opens() -> None:
    peers = Peers()
    async with open_client("pulsar://a", peers.settings) as client:
        pass
    with pytest.raises(errors.AlreadyClosed):
        await client._core.brokers.connect_to(TOPIC)
    assert peers.dialled == []
    peers.close()


BOTH = {"brokerServiceUrl": "pulsar://b:6650", "brokerServiceUrlTls": "pulsar+ssl://b:6651"}


class Answering:
    """A pool whose connections all give the same answer, and that records their addresses."""

    def __init__(self, **answer: Any) -> None:
        self.answer = Response(request_id=1, response=Response.Connect, **answer)
        self.asked: list[tuple[BrokerAddress, BrokerAddress | None]] = []

    async def get(self, address: BrokerAddress, proxy_to: BrokerAddress | None = None) -> Answering:
        self.asked.append((address, proxy_to))
        return self

    def next_request_id(self) -> int:
        return 1

    async def request(self, command: pb.BaseCommand) -> ReplyFrame:
        return ReplyFrame(pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=self.answer), b"")


def where(service: str, **answer: Any) -> tuple[BrokerAddress, BrokerAddress | None]:
    """Return the address that the client connects to for a topic, and the address of the broker behind a proxy."""
    pool = Answering(**answer)
    lookup = BinaryLookup(cast(Pool, pool), parse(service))
    anyio.run(lookup.connection_for, "t")
    return pool.asked[-1]


def test_the_url_of_the_same_kind_is_taken() -> None:
    assert where("pulsar://a", **BOTH) == (BrokerAddress("b", 6650), None)
    assert where("pulsar+ssl://a", **BOTH) == (BrokerAddress("b", 6651, True), None)


def test_a_lookup_may_lead_through_the_service_url() -> None:
    proxied = {**BOTH, "proxy_through_service_url": True}
    assert where("pulsar://a", **proxied) == (BrokerAddress("a", 6650), BrokerAddress("b", 6650))
    assert where("pulsar+ssl://a", **proxied) == (BrokerAddress("a", 6651, True), BrokerAddress("b", 6651, True))


def test_a_broker_without_such_a_port() -> None:
    with pytest.raises(OperationNotSupported, match="without TLS only"):
        where("pulsar+ssl://a", brokerServiceUrl="pulsar://b:6650")
    with pytest.raises(OperationNotSupported, match="with TLS only"):
        where("pulsar://a", brokerServiceUrlTls="pulsar+ssl://b:6651")


def test_a_broker_that_another_named() -> None:
    pool = Answering()
    proxy = BrokerAddress("a", 6651, True)
    anyio.run(
        lambda: connection_to(
            cast(Pool, pool), BrokerUrls(BOTH["brokerServiceUrl"], BOTH["brokerServiceUrlTls"]), tls=True, proxy=proxy
        )
    )
    assert pool.asked == [(BrokerAddress("a", 6651, True), BrokerAddress("b", 6651, True))]
