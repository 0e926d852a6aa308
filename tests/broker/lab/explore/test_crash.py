"""Crashes of all brokers: confirmed messages stay, and acknowledgements that were not stored are lost."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.explore.explorer import Explorer, PlannedRun
from pulsarium.broker.lab.explore.plan import Scripted
from pulsarium.broker.lab.explore.script import read
from pulsarium.broker.storage.lasting import LastingStorage
from tests.broker.wire import Bed, Earliest, Individual, Type, Wire, message_id, plain, serving

A, B = plain(b"a", producer_name="me"), plain(b"b", producer_name="me", sequence_id=1)


@pytest.fixture
async def real() -> AsyncIterator[Bed]:
    """Serve a broker with deduplication and with a store that outlives crashes. Its time does not jump over timers."""
    async with serving(Config(brokerDeduplicationEnabled=True), storage=LastingStorage()) as bed:
        yield bed


async def crash(bed: Bed, nursery: trio.Nursery, text: str) -> None:
    lab = bed.broker.cluster.attached(Lab)
    await nursery.start(Explorer(lab, PlannedRun(Scripted(read([text])))).run)


async def consumer(bed: Bed) -> Wire:
    wire = await bed.connect()
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    return wire


async def producer(bed: Bed) -> Wire:
    wire = await bed.connect()
    await wire.producer(producer_name="me")
    return wire


@pytest.mark.parametrize(("decision", "kept"), [("crash-before SEND 1", [b"a"]), ("crash-after SEND 1", [b"a", b"b"])])
async def test_a_crash_loses_no_confirmed_message(
    real: Bed, nursery: trio.Nursery, decision: str, kept: list[bytes]
) -> None:
    await crash(real, nursery, decision)
    sender = await producer(real)
    await sender.publish(A)
    await sender.write(sender.sends(B))
    await sender.closed()
    await trio.testing.wait_all_tasks_blocked()
    reader = await consumer(real)
    assert await reader.payloads(len(kept)) == kept
    assert real.subscription().cursor.backlog() == len(kept)


async def test_a_crash_forgets_acknowledgements_that_were_not_stored(real: Bed, nursery: trio.Nursery) -> None:
    await crash(real, nursery, "crash-before SEND 1")
    reader, sender = await consumer(real), await producer(real)
    (position,) = await sender.publish(A)
    await reader.message()
    await reader.send(Type.ACK, consumer_id=0, message_id=[message_id(position)], ack_type=Individual)
    await sender.write(sender.sends(B))
    await reader.closed()
    await trio.testing.wait_all_tasks_blocked()
    assert await (await consumer(real)).payloads(1) == [b"a"]


async def test_deduplication_survives_a_crash(real: Bed, nursery: trio.Nursery) -> None:
    await crash(real, nursery, "crash-after SEND 0")
    sender = await producer(real)
    await sender.write(sender.sends(A))
    await sender.closed()
    await trio.testing.wait_all_tasks_blocked()
    again = await producer(real)
    again.sequences[0] = 0
    await again.publish(A)
    await (await consumer(real)).message()
    assert real.subscription().cursor.backlog() == 1


async def test_a_crash_keeps_subscriptions_with_what_they_stored(real: Bed, nursery: trio.Nursery) -> None:
    await crash(real, nursery, "crash-before SEND 1")
    sender = await producer(real)
    await sender.publish(A)
    latest = await real.connect()
    await latest.subscribe(name="latest")
    await sender.write(sender.sends(B))
    await sender.closed()
    await trio.testing.wait_all_tasks_blocked()
    back = await real.connect()
    await back.subscribe(name="other")
    subscription = real.subscription("latest")
    assert subscription.cursor.backlog() == 0
    again = await producer(real)
    await again.publish(B)
    await (await consumer(real)).messages(2)
    assert subscription.cursor.backlog() == 1
