"""Producers that nobody wants any more before they are open."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest

from pulsarium.client import errors
from pulsarium.client.opening import open_client
from tests.client.hostile.clocks import on_both
from tests.client.peer import Peers, Type
from tests.client.producer.test_producer import UNASKED, producing


@on_both
async def test_one_that_is_cancelled_is_closed_once_it_is_open() -> None:
    """Not before: that would close nothing (137-pipelined), and then it is closed twice."""
    peers = Peers()
    async with open_client("pulsar://a", peers.settings) as client, anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def create() -> None:
            with scope:
                await client.create_producer("t").__aenter__()

        tasks.start_soon(create)
        peer = await peers.next()
        await peer.take_in()
        await peer.lead_here()
        asked = await peer.expect(Type.PRODUCER)
        scope.cancel()
        await peer.say(Type.PING)
        await peer.expect(Type.PONG)
        await peer.say(Type.PRODUCER_SUCCESS, request_id=asked.request_id, producer_name="p")
        assert (await peer.expect(Type.CLOSE_PRODUCER)).producer_id == asked.producer_id
        await peer.say(Type.PING)
        await peer.expect(Type.PONG)
    await peer.close()
    peers.close()


@on_both
@pytest.mark.parametrize("how", ["closed", "abandoned"])
async def test_one_that_ends_while_it_is_opened_again_is_closed_once(how: str) -> None:
    async with producing(batching_enabled=False) as stage, anyio.create_task_group() as tasks:
        peer = stage.peer
        await peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        await peer.lead_here_again()
        asked = await peer.expect(Type.PRODUCER)
        if how == "closed":
            tasks.start_soon(stage.producer.aclose)
        else:
            stage.producer.abandon()
        await anyio.wait_all_tasks_blocked()
        await peer.say(Type.PRODUCER_SUCCESS, request_id=asked.request_id, producer_name="p")
        await peer.expect(Type.CLOSE_PRODUCER)
        await peer.say(Type.PING)
        await peer.expect(Type.PONG)
        with suppress(errors.AlreadyClosed):
            stage.producer.send_nowait(b"1")
            pytest.fail("it is closed")
