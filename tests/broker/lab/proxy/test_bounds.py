"""The bounds of what a proxy holds: for a side that does not read, and for a rule that holds frames."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from typing import Final

import pytest
import trio
import trio.testing

from pulsarium.broker.lab.faults import Answer, Delay, Duplicate, Stall
from pulsarium.broker.lab.faults.rule import Action
from pulsarium.broker.lab.proxy.outbox import Outbox
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.lab.proxy.behind import Sides, two_sides
from tests.broker.loopback import HANGS, MB, until
from tests.broker.wire import Type, frame_of

MOST: Final = 32 * MB
"""More than the proxy and the sockets of both sides hold, and far less than a client or a broker could send."""
ENTRY: Final = bytes(1 << 14)
SEND: Final = frame_of(Type.SEND, ENTRY, producer_id=1, sequence_id=1)
MESSAGE: Final = frame_of(Type.MESSAGE, ENTRY, consumer_id=1, message_id=pb.MessageIdData(ledgerId=1, entryId=1))


async def stands_still(sides: Sides, side: trio.SocketStream, data: bytes) -> None:
    """Check that a side which sends without end comes to a stand before it has sent much."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sides.send, side, data)
        await until(lambda: sides.sent)
        await trio.testing.wait_all_tasks_blocked(0.2)
        assert sides.sent < MOST
        nursery.cancel_scope.cancel()


async def test_a_client_that_does_not_read_holds_the_broker_back() -> None:
    async with two_sides() as sides:
        await stands_still(sides, sides.broker, MESSAGE)


async def test_a_broker_that_does_not_read_holds_the_client_back() -> None:
    async with two_sides() as sides:
        await stands_still(sides, sides.client, SEND)


@pytest.mark.parametrize("action", [Delay(10**6), Stall()], ids=lambda each: each.kind)
async def test_frames_of_a_client_that_a_rule_holds_stay_with_the_client(action: Action) -> None:
    async with two_sides() as sides, trio.open_nursery() as nursery:
        sides.it.lab.faults.add(action, "SEND", count=None)
        nursery.start_soon(discard, sides.broker)
        await stands_still(sides, sides.client, SEND)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("action", [Delay(10**6), Stall()], ids=lambda each: each.kind)
async def test_frames_of_a_broker_that_a_rule_holds_stay_with_the_broker(action: Action) -> None:
    async with two_sides() as sides, trio.open_nursery() as nursery:
        sides.it.lab.faults.add(action, "MESSAGE", count=None)
        nursery.start_soon(discard, sides.client)
        await stands_still(sides, sides.broker, MESSAGE)
        nursery.cancel_scope.cancel()


async def test_a_client_that_does_not_read_the_answers_of_a_rule_is_read_no_more() -> None:
    async with two_sides() as sides:
        sides.it.lab.faults.add(Answer(message="no" * 4096), "SEEK", count=None)
        await stands_still(sides, sides.client, frame_of(Type.SEEK, consumer_id=1, request_id=1))


@pytest.mark.parametrize("sender", ["client", "broker"])
async def test_many_copies_of_a_long_frame_take_the_memory_of_a_few(sender: str) -> None:
    entry, place = bytes(MB), pb.MessageIdData(ledgerId=1, entryId=1)
    async with two_sides() as sides:
        if sender == "client":
            source, sink = sides.client, sides.broker
            data = frame_of(Type.SEND, entry, producer_id=1, sequence_id=1)
        else:
            source, sink = sides.broker, sides.client
            data = frame_of(Type.MESSAGE, entry, consumer_id=1, message_id=place)
        for name in ("SEND", "MESSAGE"):
            sides.it.lab.faults.add(Duplicate(100), name)
        tracemalloc.start()
        try:
            await source.send_all(data)
            left = 101 * len(data)
            while left:
                left -= len(await sink.receive_some(MB))
            assert tracemalloc.get_traced_memory()[1] < MOST
        finally:
            tracemalloc.stop()


async def test_both_sides_go_on_when_the_rules_that_held_them_are_gone() -> None:
    async with two_sides() as sides, trio.open_nursery() as nursery:
        rules = [sides.it.lab.faults.add(Stall(), name, count=None) for name in ("SEND", "MESSAGE")]
        for side, data in ((sides.client, SEND), (sides.broker, MESSAGE)):
            nursery.start_soon(sides.send, side, data)
        await until(lambda: sides.sent)
        await trio.testing.wait_all_tasks_blocked(0.2)
        for rule in rules:
            rule.remove()
        for side in (sides.client, sides.broker):
            got = 0
            while got < MOST:
                got += len(await side.receive_some(MB))
        nursery.cancel_scope.cancel()


async def test_all_who_wait_for_room_go_on_when_there_is_room() -> None:
    sink, reader = trio.testing.lockstep_stream_pair()
    with trio.fail_after(HANGS):
        async with trio.open_nursery() as nursery:
            outbox = Outbox(sink, nursery)
            outbox.put([SEND])
            for _ in range(2):
                nursery.start_soon(outbox.at_most, 0)
            await trio.testing.wait_all_tasks_blocked()
            await reader.receive_some(len(SEND))


async def discard(side: trio.SocketStream) -> None:
    """Read a side to its end."""
    with suppress(trio.BrokenResourceError):
        while await side.receive_some(MB):
            pass
