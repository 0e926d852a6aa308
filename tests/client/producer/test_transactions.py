"""What a producer sends in transactions: with whom it shares entries, and what waits for it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pulsarium.client import errors
from pulsarium.client.transaction.transaction import Transaction
from pulsarium.proto import entry
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import Played
from tests.client.peer import Peer, Type
from tests.client.transaction.stage import coordinated


class Sends:
    """Every SEND, answered when the test says so."""

    def __init__(self, played: Played) -> None:
        self.played = played
        self.commands: list[pb.CommandSend] = []
        self._peers: list[Peer] = []
        played.on[Type.SEND] = self._take

    async def _take(self, peer: Peer, body: Any) -> None:
        sent = pb.CommandSend()
        sent.CopyFrom(body)
        self.commands.append(sent)
        self._peers.append(peer)

    def told(self) -> list[tuple[int, int | None]]:
        """Of each entry the number of its first message, and its transaction."""
        return [
            (one.sequence_id, one.txnid_least_bits if one.HasField("txnid_least_bits") else None)
            for one in self.commands
        ]

    async def confirm(self, index: int) -> None:
        await self.played.answer(self._peers[index], self.commands[index])

    async def refuse(self, index: int) -> None:
        command = self.commands[index]
        error: dict[str, Any] = {"error": pb.NotAllowedError, "message": "no"}
        await self._peers[index].say(
            Type.SEND_ERROR, producer_id=command.producer_id, sequence_id=command.sequence_id, **error
        )


async def begun(client: Any, count: int) -> list[Transaction]:
    return [await client.begin_transaction() for _ in range(count)]


@on_both
async def test_an_entry_is_of_one_transaction() -> None:
    async with coordinated() as (_, played, client):
        async with client.create_producer("t", batching_max_publish_delay=10.0) as producer:
            one, two = await begun(client, 2)
            for txn in (one, one, two, None, two, two):
                await producer.submit(b"x", txn=txn)
            await producer.flush()
        sends = [base.send for base in played.seen if base.type == Type.SEND]
        assert [(one.num_messages, one.txnid_least_bits, one.HasField("txnid_most_bits")) for one in sends] == [
            (2, 1, True),
            (1, 2, True),
            (1, 0, False),
            (2, 2, True),
        ]


@on_both
async def test_the_metadata_says_it_as_well() -> None:
    found: list[pb.MessageMetadata] = []
    async with coordinated() as (_, _, client):
        talk = Peer.next

        async def noticing(peer: Peer) -> tuple[pb.BaseCommand, bytes]:
            base, trailing = await talk(peer)
            if base.type == Type.SEND:
                found.append(entry.parse_metadata(trailing))
            return base, trailing

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Peer, "next", noticing)
            async with client.create_producer("t") as producer, client.transaction() as txn:
                await producer.send(b"x", txn=txn)
                await producer.send(b"plain")
    assert [(one.txnid_most_bits, one.txnid_least_bits) for one in found] == [(0, 1), (0, 0)]
    assert [one.HasField("txnid_least_bits") for one in found] == [True, False]


@on_both
async def test_the_first_in_a_transaction_goes_alone() -> None:
    """Java's broker may take a while before it stores it, and what is in none would overtake it."""
    async with coordinated() as (_, played, client):
        sends = Sends(played)
        async with client.create_producer("t", batching_enabled=False) as producer:
            (txn,) = await begun(client, 1)
            receipts = [await producer.submit(b"x", txn=one) for one in (None, txn, None, txn, None)]
            await anyio.sleep(1)
            assert sends.told() == [(0, None), (1, 1)]
            await sends.confirm(0)
            await anyio.sleep(1)
            assert len(sends.commands) == 2
            await sends.confirm(1)
            await anyio.sleep(1)
            assert sends.told() == [(0, None), (1, 1), (2, None), (3, 1), (4, None)]
            for index in (2, 3, 4):
                await sends.confirm(index)
            for receipt in receipts:
                await receipt.wait()


@on_both
async def test_the_first_on_every_connection() -> None:
    async with coordinated() as (_, played, client):
        sends = Sends(played)
        async with client.create_producer("t", batching_enabled=False) as producer:
            (txn,) = await begun(client, 1)
            for one in (txn, None, txn):
                await producer.submit(b"x", txn=one)
            await anyio.sleep(1)
            await sends.confirm(0)
            await anyio.sleep(1)
            assert sends.told() == [(0, 1), (1, None), (2, 1)]
            for stream in played.streams:
                await stream.aclose()
            sends.commands.clear()
            sends._peers.clear()
            await producer.submit(b"x")
            await anyio.sleep(5)
            assert sends.told() == [(1, None), (2, 1)]
            for index in (0, 1):
                await sends.confirm(index)
            await anyio.sleep(1)
            assert sends.told() == [(1, None), (2, 1), (3, None)]
            await sends.confirm(2)


@on_both
async def test_a_first_one_that_is_refused_lets_the_next_go_alone() -> None:
    async with coordinated() as (_, played, client):
        sends = Sends(played)
        async with client.create_producer("t", batching_enabled=False) as producer:
            (txn,) = await begun(client, 1)
            receipts = [await producer.submit(b"x", txn=one) for one in (txn, None, txn, None)]
            await anyio.sleep(1)
            await sends.refuse(0)
            await anyio.sleep(1)
            assert sends.told() == [(0, 1), (1, None), (2, 1)]
            with pytest.raises(errors.NotAllowedError):
                await receipts[0].wait()
            for index in (1, 2):
                await sends.confirm(index)
            await anyio.sleep(1)
            assert sends.told()[3:] == [(3, None)]
            await sends.confirm(3)
            await producer.flush()
