"""A played broker with transaction coordinators."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pulsarium.client.client import Client
from pulsarium.client.transaction.coordinator import ASSIGN
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.played import Played, playing, saying
from tests.client.peer import Peer, Type

END = {pb.COMMIT: "commit", pb.ABORT: "abort"}


class Told:
    """A transaction coordinator that records its requests in order, and gives the answers that a test sets."""

    def __init__(self, played: Played, coordinators: int) -> None:
        self.asked: list[Any] = []
        self.refusals: dict[int, list[int | None]] = {}
        """The errors of the next answers, by type. None ends the connection in place of an answer."""
        self._number = 0

        async def partitions(peer: Peer, body: Any) -> None:
            count = coordinators if body.topic == ASSIGN else 0
            await peer.say(Type.PARTITIONED_METADATA_RESPONSE, request_id=body.request_id, partitions=count)

        async def new(peer: Peer, body: Any) -> None:
            self.asked.append(("new", body.tc_id, body.txn_ttl_millis))
            self._number += 1
            fields = {"txnid_most_bits": body.tc_id, "txnid_least_bits": self._number}
            await self._answer(peer, body, Type.NEW_TXN, **fields)

        async def connect(peer: Peer, body: Any) -> None:
            self.asked.append(("connect", body.tc_id))
            await self._answer(peer, body, Type.TC_CLIENT_CONNECT_REQUEST)

        async def partition(peer: Peer, body: Any) -> None:
            self.asked.append(("partition", body.txnid_least_bits, *body.partitions))
            await self._answer(peer, body, Type.ADD_PARTITION_TO_TXN)

        async def subscription(peer: Peer, body: Any) -> None:
            (one,) = body.subscription
            self.asked.append(("subscription", body.txnid_least_bits, one.topic, one.subscription))
            await self._answer(peer, body, Type.ADD_SUBSCRIPTION_TO_TXN)

        async def end(peer: Peer, body: Any) -> None:
            self.asked.append((END[body.txn_action], body.txnid_least_bits))
            await self._answer(peer, body, Type.END_TXN)

        played.on |= {
            Type.PARTITIONED_METADATA: partitions,
            Type.NEW_TXN: new,
            Type.TC_CLIENT_CONNECT_REQUEST: connect,
            Type.ADD_PARTITION_TO_TXN: partition,
            Type.ADD_SUBSCRIPTION_TO_TXN: subscription,
            Type.END_TXN: end,
        }

    async def _answer(self, peer: Peer, body: Any, kind: int, **fields: Any) -> None:
        refusals = self.refusals.get(kind, [])
        if not refusals:
            await saying(kind + 1, **fields)(peer, body)
        elif (error := refusals.pop(0)) is None:
            await peer.close()
        else:
            await saying(kind + 1, error=error, message="no")(peer, body)


@asynccontextmanager
async def coordinated(coordinators: int = 1, **settings: Any) -> AsyncIterator[tuple[Told, Played, Client]]:
    """Yield the transaction coordinators of a played broker, the broker, and a client."""
    async with playing(**settings) as (played, client):
        yield Told(played, coordinators), played, client
