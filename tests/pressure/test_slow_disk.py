"""Publishers that are faster than the disk: they wait, in bounded memory, and no other client waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
import trio
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.model.rate.publish_buffer import BESIDE_OTHERS, LARGEST_READ, OF_ONE_CONNECTION, READS_ALONE
from pulsarium.broker.session.session import Session, sessions_of
from pulsarium.broker.storage.interface import Done, EntryRun
from pulsarium.broker.storage.memory import MemoryStorage
from tests.broker.held import HeldStorage
from tests.broker.wire import Bed, Type, Wire, plain, serving

MB = 1 << 20
BUFFER = 2  # MB
CONFIG = Config(managedLedgerCacheSizeMB=1, maxMessagePublishBufferSizeInMB=BUFFER)
BOUND = BUFFER * MB + 2 * LARGEST_READ
"""Bytes that one flood may leave unstored: the buffer, and a read or two more."""
ENTRY = plain(bytes(50_000))
FLOOD = 200  # entries: much more than BOUND

pytestmark = pytest.mark.usefixtures("autojump_clock")


def session_of(bed: Bed, number: int) -> Session:
    """Return the session of the connection with this number, counted from 1 in the order of opening."""
    (found,) = (each for each in sessions_of(bed.broker) if each.address.endswith(f":{number}"))
    return found


async def flood(wire: Wire, nursery: trio.Nursery) -> None:
    """Send far more messages than the broker lets wait. The rest is on its way until the broker reads it."""
    nursery.start_soon(wire.write, wire.sends(*[ENTRY] * FLOOD))
    await trio.testing.wait_all_tasks_blocked()


class Flooded(NamedTuple):
    """A broker with a slow store, and the single connection that floods it, as far as the broker reads."""

    store: HeldStorage
    bed: Bed
    wire: Wire


@asynccontextmanager
async def flooded(config: Config = CONFIG) -> AsyncIterator[Flooded]:
    store = HeldStorage()
    async with serving(config, storage=store) as bed, trio.open_nursery() as nursery:
        wire = await bed.connect()
        await wire.producer()
        store.holding = True
        await flood(wire, nursery)
        yield Flooded(store, bed, wire)


async def test_memory_is_bounded_and_nobody_else_waits() -> None:
    store = HeldStorage()
    async with serving(CONFIG, storage=store) as bed, trio.open_nursery() as nursery:
        fast, other = await bed.connect(), await bed.connect()
        await fast.producer()
        await other.producer("other")
        await other.subscribe("other")
        await other.publish(*[plain(b"kept")] * 10, producer_id=0)
        store.holding = True
        await flood(fast, nursery)
        assert not session_of(bed, 1).may_read
        assert BESIDE_OTHERS < bed.broker.turn.unstored < BESIDE_OTHERS + 2 * LARGEST_READ
        assert bed.broker.cluster.cache.size < BESIDE_OTHERS + 2 * LARGEST_READ + MB
        await other.alive()
        await other.flow(10)
        assert await other.payloads(10) == [b"kept"] * 10
        await fast.quiet()
        store.release()
        positions = await fast.receipts(FLOOD)
        assert positions == sorted(set(positions))
        await fast.alive()
        assert bed.broker.cluster.cache.size <= MB


async def test_each_publisher_stops_at_once_when_others_have_filled_the_buffer() -> None:
    store = HeldStorage()
    async with serving(CONFIG, storage=store) as bed, trio.open_nursery() as nursery:
        wires = [await bed.connect() for _ in range(8)]
        for number, wire in enumerate(wires):
            await wire.producer(f"t{number}")
        store.holding = True
        for wire in wires:
            await flood(wire, nursery)
        assert bed.broker.turn.unstored < BOUND + len(wires) * 2 * LARGEST_READ
        store.release()
        for wire in wires:
            assert len(await wire.receipts(FLOOD)) == FLOOD


async def test_reading_resumes_when_half_of_the_buffer_is_stored() -> None:
    async with flooded() as (store, bed, wire):
        session, turn = session_of(bed, 1), bed.broker.turn
        most = turn.unstored
        while not session.may_read:
            assert turn.unstored > BUFFER * MB // 2
            store.release(1)
            for _ in range(3):
                await trio.lowlevel.checkpoint()
        assert most > BUFFER * MB
        store.release()
        assert len(await wire.receipts(FLOOD)) == FLOOD


async def test_a_single_flood_takes_its_share_alone() -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed, trio.open_nursery() as nursery:
        fast, other = await bed.connect(), await bed.connect()
        await fast.producer()
        await other.producer("other")
        store.holding = True
        await flood(fast, nursery)
        share = bed.broker.turn.unstored
        assert OF_ONE_CONNECTION - LARGEST_READ < share < OF_ONE_CONNECTION + 2 * LARGEST_READ
        assert share < bed.broker.config.maxMessagePublishBufferSizeInMB * MB / 4
        await other.write(other.sends(*[ENTRY] * 2))
        await trio.testing.wait_all_tasks_blocked()
        assert bed.broker.turn.unstored > share + 2 * 50_000
        assert not session_of(bed, 1).may_read
        assert session_of(bed, 2).may_read
        store.release()
        assert len(await other.receipts(2)) == 2
        assert len(await fast.receipts(FLOOD)) == FLOOD


async def test_a_flood_takes_less_after_another_connection_published() -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed, trio.open_nursery() as nursery:
        fast, other = await bed.connect(), await bed.connect()
        await fast.producer()
        await other.producer("other")
        await other.publish(plain(b"x"))
        store.holding = True
        await flood(fast, nursery)
        assert BESIDE_OTHERS < bed.broker.turn.unstored < BESIDE_OTHERS + 2 * LARGEST_READ
        store.release()
        assert len(await fast.receipts(FLOOD)) == FLOOD


async def test_a_flood_takes_more_again_when_the_other_connection_is_silent() -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed, trio.open_nursery() as nursery:
        fast, other = await bed.connect(), await bed.connect()
        await fast.producer()
        await other.producer("other")
        await other.publish(plain(b"x"))
        for _ in range(READS_ALONE):
            await fast.publish(plain(b"x"))
        store.holding = True
        await flood(fast, nursery)
        assert bed.broker.turn.unstored > OF_ONE_CONNECTION - LARGEST_READ
        store.release()
        assert len(await fast.receipts(FLOOD)) == FLOOD


async def test_small_reads_count_as_well() -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        store.holding = True
        small = plain(bytes(5_000))
        while session_of(bed, 1).may_read:
            await wire.write(wire.sends(small))
            await trio.testing.wait_all_tasks_blocked()
            assert bed.broker.turn.unstored < OF_ONE_CONNECTION
        store.release()


async def test_a_publisher_within_its_share_does_not_wait_for_others() -> None:
    store = HeldStorage()
    async with serving(Config(maxMessagePublishBufferSizeInMB=4), storage=store) as bed, trio.open_nursery() as nursery:
        wires = [await bed.connect() for _ in range(12)]
        for number, wire in enumerate(wires):
            await wire.producer(f"t{number}")
        store.holding = True
        for wire in wires:
            await flood(wire, nursery)
        most = bed.broker.config.maxMessagePublishBufferSizeInMB * MB
        while not session_of(bed, 1).may_read:
            store.release(1)
            for _ in range(3):
                await trio.lowlevel.checkpoint()
        assert most / 2 < bed.broker.turn.unstored < most
        store.release()
        for wire in wires:
            assert len(await wire.receipts(FLOOD)) == FLOOD


async def test_a_message_larger_than_the_share() -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed, trio.open_nursery() as nursery:
        wire = await bed.connect()
        await wire.producer()
        large = plain(bytes(4 * MB))
        store.holding = True
        nursery.start_soon(wire.write, wire.sends(large, large, large))
        await trio.testing.wait_all_tasks_blocked()
        assert 4 * MB < bed.broker.turn.unstored < 9 * MB
        store.release()
        assert len(await wire.receipts(3)) == 3


async def test_a_publisher_that_is_thrown_out_while_it_waits() -> None:
    store = HeldStorage()
    async with serving(CONFIG, storage=store) as bed, trio.open_nursery() as nursery:
        wire, other = await bed.connect(), await bed.connect()
        await wire.producer()
        store.holding = True
        await flood(wire, nursery)
        session_of(bed, 1).close("enough")
        bed.broker.turn.finish()
        await trio.testing.wait_all_tasks_blocked()
        assert len(sessions_of(bed.broker)) == 1
        store.release()
        await other.producer()
        assert len(await other.publish(*[ENTRY] * 3)) == 3
        nursery.cancel_scope.cancel()


async def test_a_commit_that_fails_lets_publishers_go_on() -> None:
    async with flooded() as (store, bed, wire):
        store.fail()
        store.release()
        for _ in range(FLOOD):
            answer = await wire.next()
            while answer.command.type not in (Type.SEND_ERROR, Type.SEND_RECEIPT):
                answer = await wire.next()
            if answer.command.type == Type.SEND_ERROR and not session_of(bed, 1).producers:
                break
        assert session_of(bed, 1).may_read
        await wire.rest()
        await wire.alive()
        assert bed.broker.cluster.cache.size <= MB


async def test_no_buffer_no_limit() -> None:
    async with flooded(Config(managedLedgerCacheSizeMB=1, maxMessagePublishBufferSizeInMB=0)) as (store, bed, wire):
        assert bed.broker.cluster.cache.size > FLOOD * 50_000
        store.release()
        assert len(await wire.receipts(FLOOD)) == FLOOD


class SlowSpill(MemoryStorage):
    """A spill that finishes when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.spills: list[tuple[int, EntryRun, Done]] = []

    def spill(self, ledger_id: int, run: EntryRun, done: Done) -> None:
        self.spills.append((ledger_id, run, done))

    def go_on(self) -> None:
        spills, self.spills = self.spills, []
        for _, _, done in spills:  # no consumer reads the entries again
            done(None)


async def test_without_a_data_directory_the_spill_is_waited_for() -> None:
    store = SlowSpill()
    async with serving(CONFIG, storage=store) as bed, trio.open_nursery() as nursery:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()  # keeps unacknowledged entries
        await flood(wire, nursery)
        assert BUFFER * MB < bed.broker.cluster.cache.size - MB < BOUND + MB
        received = len([each for each in await wire.rest() if each.command.type == Type.SEND_RECEIPT])
        assert 0 < received < FLOOD
        assert not session_of(bed, 1).may_read
        rest: list[tuple[int, int]] = []

        async def take_rest() -> None:
            rest.extend(await wire.receipts(FLOOD - received))

        nursery.start_soon(take_rest)
        for _ in range(5_000):  # some task is always ready, so that no timer fires
            store.go_on()
            await trio.lowlevel.checkpoint()
        assert len(rest) == FLOOD - received
        nursery.cancel_scope.cancel()


async def test_pings_of_the_broker_do_not_end_a_publisher_that_waits() -> None:
    """The publisher cannot answer the PINGs, because the broker does not read from its connection."""
    async with flooded() as (store, bed, wire):
        await trio.sleep(bed.broker.config.keepAliveIntervalSeconds * 3.5)
        assert sessions_of(bed.broker)
        store.release()
        received = 0
        while received < FLOOD:
            received += (await wire.next()).command.type == Type.SEND_RECEIPT
