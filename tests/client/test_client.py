"""The client as a block: what comes out of it, and what stays behind."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from pulsarium.client import connect, errors
from pulsarium.client.opening import open_client
from tests.client.hostile.clocks import on_both
from tests.client.peer import Peer, Peers, Type
from tests.client.producer.test_producer import answer_producer


@on_both
async def test_a_url_that_cannot_be_read() -> None:
    with pytest.raises(errors.InvalidUrl):
        async with connect("localhost:6650"):
            pass


@on_both
async def test_nothing_is_opened_before_it_is_needed() -> None:
    peers = Peers()
    async with open_client("pulsar://a", peers.settings):
        await anyio.lowlevel.checkpoint()
    assert peers.dialled == []
    peers.close()


@on_both
async def test_errors_come_out_as_they_are() -> None:
    """The client has a task group inside, but what the block raises is not wrapped into a group."""
    error = LookupError("mine")
    with pytest.raises(LookupError, match="mine") as caught:
        async with connect("pulsar://a"):
            raise error
    assert caught.value is error


@on_both
async def test_groups_come_out_as_they_are() -> None:
    with pytest.raises(ExceptionGroup, match="mine") as caught:
        async with connect("pulsar://a"):
            raise ExceptionGroup("mine", [ValueError()])
    assert [type(error) for error in caught.value.exceptions] == [ValueError]


def test_asyncios_own_timeouts_and_tasks_work() -> None:
    """An application need not use anyio itself."""

    async def accept(peers: Peers) -> Peer:
        peer = await peers.next()
        await peer.take_in()
        await peer.lead_here()
        await answer_producer(peer)
        await peer.expect(Type.SEND)
        return peer

    async def main() -> None:
        peers = Peers()
        accepting = asyncio.create_task(accept(peers))
        with pytest.raises(TimeoutError):
            async with (
                asyncio.timeout(0.2),
                open_client("pulsar://a", peers.settings) as client,
                client.create_producer("t") as producer,
            ):
                await asyncio.gather(*(producer.send(b"%d" % n) for n in range(3)))
        peer = await accepting
        await peer.expect(Type.CLOSE_PRODUCER)
        await peer.close()
        peers.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
