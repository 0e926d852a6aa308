"""Topics that move to another cluster take their producers and consumers along (PIP-188)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from pulsarium.client.client import Client
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.opening import open_client
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.clocks import on_both
from tests.client.peer import Peer, Peers, Type

PRODUCER, CONSUMER = pb.CommandTopicMigrated.Producer, pb.CommandTopicMigrated.Consumer
A, NEW, OWNER = BrokerAddress("a", 6650), BrokerAddress("new", 6650), BrokerAddress("owner", 6650)


class Brokers:
    """The played brokers, in the order in which the client connected."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self.met: list[Peer] = []

    async def next(self) -> Peer:
        self.met.append(await self._peers.next())
        await self.met[-1].take_in()
        return self.met[-1]

    async def opened(self, peer: Peer) -> None:
        """Answer the PRODUCER or SUBSCRIBE of a client with success."""
        base, _ = await peer.next()
        if base.type == Type.SUBSCRIBE:
            await peer.say(Type.SUCCESS, request_id=base.subscribe.request_id)
            await peer.expect(Type.FLOW)
        else:
            assert base.type == Type.PRODUCER
            request_id = base.producer.request_id
            await peer.say(Type.PRODUCER_SUCCESS, request_id=request_id, producer_name="p", producer_ready=True)


async def use(client: Client, kind: pb.CommandTopicMigrated.ResourceType) -> None:
    opening = client.create_producer("t") if kind == PRODUCER else client.subscribe("t", "s")
    async with opening:
        await anyio.sleep_forever()


@asynccontextmanager
async def moving(kind: pb.CommandTopicMigrated.ResourceType) -> AsyncIterator[tuple[Brokers, Peers, Peer]]:
    """Start to open a producer or a consumer, and yield before the broker has answered its PRODUCER or SUBSCRIBE."""
    peers = Peers(starting_backoff_interval=0.001)
    async with anyio.create_task_group() as tasks, open_client("pulsar://a", peers.settings) as client:
        tasks.start_soon(use, client, kind)
        brokers = Brokers(peers)
        peer = await brokers.next()
        await peer.lead_here()
        yield brokers, peers, peer
        tasks.cancel_scope.cancel()
        for met in brokers.met:
            await met.close()
    peers.close()


@pytest.mark.parametrize("kind", [PRODUCER, CONSUMER], ids=["producer", "consumer"])
@on_both
async def test_a_migrated_topic_is_looked_up_and_opened_there(kind: pb.CommandTopicMigrated.ResourceType) -> None:
    async with moving(kind) as (brokers, peers, old):
        await brokers.opened(old)
        other = CONSUMER if kind == PRODUCER else PRODUCER
        for resource_id, resource in ((7, kind), (0, other)):  # resources that this connection does not have
            url = "pulsar://wrong"
            await old.say(Type.TOPIC_MIGRATED, resource_id=resource_id, resource_type=resource, brokerServiceUrl=url)
        await old.say(Type.TOPIC_MIGRATED, resource_id=0, resource_type=kind, brokerServiceUrl="pulsar://new:6650")
        new = await brokers.next()
        await new.lead_here_again("pulsar://owner:6650")
        owner = await brokers.next()
        await brokers.opened(owner)
        assert peers.dialled == [A, NEW, OWNER]
        # later lookups go to the new cluster
        await owner.close()
        await new.lead_here_again("pulsar://new:6650")
        await brokers.opened(new)
        assert peers.dialled == [A, NEW, OWNER]


@pytest.mark.parametrize("kind", [PRODUCER, CONSUMER], ids=["producer", "consumer"])
@on_both
async def test_a_topic_that_migrates_before_it_is_open_is_opened_there(
    kind: pb.CommandTopicMigrated.ResourceType,
) -> None:
    """The old broker never answers the request after it has sent TOPIC_MIGRATED."""
    async with moving(kind) as (brokers, peers, old):
        await old.next()
        await old.say(Type.TOPIC_MIGRATED, resource_id=0, resource_type=kind, brokerServiceUrl="pulsar://new:6650")
        new = await brokers.next()
        await new.lead_here_again("pulsar://new:6650")
        await brokers.opened(new)
        assert peers.dialled == [A, NEW]


@pytest.mark.parametrize("url", ["", "new:6650", "pulsar://", "pulsar://new:x", "http://new", "pulsar+ssl://new:99999"])
@on_both
async def test_a_migration_to_nowhere_moves_nothing(url: str) -> None:
    async with moving(PRODUCER) as (brokers, peers, old):
        await brokers.opened(old)
        await old.say(
            Type.TOPIC_MIGRATED,
            resource_id=0,
            resource_type=PRODUCER,
            brokerServiceUrl=url,
            brokerServiceUrlTls="pulsar+ssl://new",
        )
        await old.lead_here_again()
        await brokers.opened(old)
        assert peers.dialled == [A]
