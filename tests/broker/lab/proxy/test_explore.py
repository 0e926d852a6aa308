"""Explorations through a proxy: the kinds that change frames do the same as in a broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.lowlevel

from pulsarium.broker.lab.explore.explorer import Explorer, PlannedRun
from pulsarium.broker.lab.explore.kinds import KINDS, ONLY_BROKER, check
from pulsarium.broker.lab.explore.plan import Scripted
from pulsarium.broker.lab.explore.script import read
from pulsarium.broker.lab.faults import Stall
from pulsarium.broker.testing.exploring import topics_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.lab.proxy.actions import stored
from tests.broker.lab.proxy.behind import Behind, behind
from tests.broker.wire import TOPIC, Earliest, Type, plain

SIZE = 1000  # bytes of a message


@asynccontextmanager
async def explored(*texts: str) -> AsyncIterator[tuple[Behind, PlannedRun]]:
    """Run a proxy that makes the decisions of these texts."""
    run = PlannedRun(Scripted(check(read(texts))))
    kinds = [kind for kind in KINDS.values() if not kind.only_broker]
    async with behind() as it, trio.open_nursery() as nursery:
        await nursery.start(Explorer(it.lab, run, kinds).run)
        yield it, run
        nursery.cancel_scope.cancel()


async def test_a_duplicate_is_stored_and_answered_once() -> None:
    async with explored("duplicate SEND 0") as (it, run):
        sender = await it.sender(TOPIC)
        assert len(await sender.publish(plain(b"a"))) == 1
        await sender.publish(plain(b"b", sequence_id=1))
        assert await stored(it, TOPIC, 3) == [b"a", b"a", b"b"]
        assert [each.kind for each in run.made] == ["duplicate"]
        assert {each.place.kind for each in run.passed}.isdisjoint(ONLY_BROKER)


async def test_messages_of_a_shared_consumer_are_swapped() -> None:
    """The first message is held until the others wait behind it."""
    async with explored("reorder MESSAGE 1") as (it, _):
        sender = await it.sender(TOPIC)
        await sender.publish(*(plain(b"%d" % number * SIZE, sequence_id=number) for number in range(3)))
        held = it.lab.faults.add(Stall(), "MESSAGE", count=1)
        wire = await it.connect()
        await wire.subscribe(type=pb.CommandSubscribe.Shared, initialPosition=Earliest)
        await wire.flow()
        while not any(each.tap and each.tap.held > 3 * SIZE for each in it.lab.taps.connections.all()):
            await trio.lowlevel.checkpoint()
        held.remove()
        assert [each[:1] for each in await wire.payloads(3)] == [b"0", b"2", b"1"]


async def test_the_topics_of_a_run_are_those_of_its_producers_and_consumers() -> None:
    async with behind() as it:
        with it.lab.captures.start() as capture:
            sender = await it.sender("orders")
            await sender.refused(Type.SUBSCRIBE, topic="bills-partition-1", subscription="s", subType=0, consumer_id=0)
            await sender.ask(Type.LOOKUP, topic="persistent://public/default/other")
            assert [*topics_of(capture.records())] == [*map(TopicName.parse, ("orders", "bills-partition-1"))]
