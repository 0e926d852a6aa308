"""A client with one producer, against a broker that the test plays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from pulsarium.client import Client, Producer
from pulsarium.client.opening import open_client
from pulsarium.proto import entry
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.peer import Peer, Peers, Type

TOPIC = "persistent://public/default/t"
UNASKED = 2**64 - 1


class Stage:
    """A client with one producer, and the connection it is on."""

    def __init__(self, peers: Peers, peer: Peer, client: Client, producer: Producer) -> None:
        self.peers = peers
        self.peer = peer
        self.client = client
        self.producer = producer
        self.producer_id = 0

    async def sent(self) -> tuple[pb.CommandSend, pb.MessageMetadata, bytes]:
        """Return the next SEND, and the metadata and payload of its entry."""
        base, trailing = await self.peer.next()
        assert base.type == Type.SEND, base
        assert entry.checksum_matches(trailing)
        return base.send, entry.parse_metadata(trailing), entry.payload_of(trailing)

    async def payloads(self, count: int) -> list[bytes]:
        return [(await self.sent())[2] for _ in range(count)]

    async def receipt(self, sequence_id: int, entry_id: int = 0) -> None:
        await self.peer.say(
            Type.SEND_RECEIPT,
            producer_id=self.producer_id,
            sequence_id=sequence_id,
            message_id={"ledgerId": 9, "entryId": entry_id},
        )

    async def refuse(self, sequence_id: int, error: int) -> None:
        await self.peer.say(Type.SEND_ERROR, producer_id=0, sequence_id=sequence_id, error=error, message="no")


async def answer_producer(peer: Peer, **success: Any) -> pb.CommandProducer:
    asked: pb.CommandProducer = await peer.expect(Type.PRODUCER)
    await peer.say(Type.PRODUCER_SUCCESS, **{"request_id": asked.request_id, "producer_name": "named", **success})
    return asked


@asynccontextmanager
async def producing(success: dict[str, Any] | None = None, **options: Any) -> AsyncIterator[Stage]:
    """Connect a client and open a producer. At the end, abandon the messages that the test leaves unconfirmed."""
    peers = Peers()
    async with anyio.create_task_group() as tasks, open_client("pulsar://a", peers.settings) as client:
        found: list[Peer] = []

        async def accept() -> None:
            peer = await peers.next()
            found.append(peer)
            await peer.take_in()
            await peer.lead_here()
            await answer_producer(peer, **(success or {}))

        tasks.start_soon(accept)
        creating = client.create_producer("t", **options)
        producer = await creating.__aenter__()
        stage = Stage(peers, found[0], client, producer)
        yield stage
        producer.abandon()
        await creating.__aexit__(None, None, None)
    await stage.peer.close()
    peers.close()
