"""Deduplication: the state that it keeps, how long, and how it is switched on and off."""

from __future__ import annotations

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.commands.deduplicated import DUPLICATE, ON, ask, deduplication_of, put
from tests.broker.commands.refusals import refused_consumer
from tests.broker.held import HeldStorage
from tests.broker.wire import Bed, Earliest, Type, Wire, plain, serving

pytestmark = pytest.mark.req("B-27")


@pytest.mark.parametrize("interval", [1, 3, 1000])
async def test_deduplication_survives_a_restart(autojump_clock: object, interval: int) -> None:
    """The sequence ids come from a snapshot, from the entries behind the snapshot, or from both."""
    store = HeldStorage()
    config = Config(brokerDeduplicationEnabled=True, brokerDeduplicationEntriesInterval=interval)
    async with serving(config, storage=store) as bed:
        wire = await bed.connect()
        for name, last in (("p", 3), ("q", 1)):
            await wire.producer(producer_name=name)
            for number in range(last + 1):
                await ask(wire, number, plain(b"x", producer_name=name, sequence_id=number))
            await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    async with serving(config, storage=store) as bed:
        wire = await bed.connect()
        assert (await wire.producer(producer_name="q")).last_sequence_id == 1
        assert (await wire.producer(producer_name="p", producer_id=1)).last_sequence_id == 3
        assert await ask(wire, 3, producer_id=1) == DUPLICATE
        assert await ask(wire, 4, producer_id=1) != DUPLICATE


@pytest.mark.parametrize("entry", [b"\0\0\0\3xyz", b"ab"])
async def test_a_restart_over_an_entry_that_nobody_can_read(autojump_clock: object, entry: bytes) -> None:
    store = HeldStorage()
    for last in (-1, 1):
        async with serving(ON, storage=store) as bed:
            wire = await bed.connect()
            assert (await wire.producer(producer_name="p")).last_sequence_id == last
            if last < 0:
                await ask(wire, 0, entry)
                await ask(wire, 1)


async def test_a_snapshot_after_so_many_entries(autojump_clock: object) -> None:
    config = Config(brokerDeduplicationEnabled=True, brokerDeduplicationEntriesInterval=3)
    async with serving(config) as bed:
        wire = await bed.connect()
        await wire.producer(producer_name="p")
        marks = []
        for number in range(7):
            await ask(wire, number)
            cursor = deduplication_of(bed).cursor
            marks.append((cursor.mark_delete.entry_id, cursor.properties.get("p")))
        assert marks == [(-1, None)] * 2 + [(2, 2)] * 3 + [(5, 5)] * 2


async def test_a_snapshot_after_so_much_time(autojump_clock: object) -> None:
    config = Config(
        brokerDeduplicationEnabled=True,
        brokerDeduplicationSnapshotIntervalSeconds=250,
        brokerDeduplicationSnapshotFrequencyInSeconds=100,
    )
    async with serving(config) as bed:
        wire = await bed.connect(version=0)  # version 0 gets no PING
        await wire.producer(producer_name="p")
        marks = []
        for number in range(5):
            await ask(wire, number)
            await trio.sleep(101)
            marks.append(deduplication_of(bed).cursor.properties.get("p"))
        assert marks == [0, 0, 0, 3, 3]  # the first check finds no snapshot, the next ones find a recent one


async def test_ledgers_are_kept_for_the_next_snapshot(autojump_clock: object) -> None:
    config = Config(
        brokerDeduplicationEnabled=True,
        brokerDeduplicationEntriesInterval=4,
        managedLedgerMaxEntriesPerLedger=1,
        managedLedgerMinLedgerRolloverTimeMinutes=0,
    )
    async with serving(config) as bed:
        wire = await bed.connect()
        await wire.producer(producer_name="p")
        await wire.subscribe(initialPosition=Earliest)
        for number in range(3):
            await wire.ack(await ask(wire, number))
        assert len(bed.topic().ledger.ledgers) == 4  # with the empty ledger that is written next
        await wire.ack(await ask(wire, 3))
        assert len(bed.topic().ledger.ledgers) == 1


async def test_only_the_maximum_number_of_producers_is_kept(autojump_clock: object) -> None:
    config = Config(
        brokerDeduplicationEnabled=True,
        brokerDeduplicationEntriesInterval=1,
        brokerDeduplicationMaxNumberOfProducers=2,
    )
    async with serving(config) as bed:
        wire = await bed.connect()
        for number in range(4):
            await wire.producer(producer_name=f"p{number}", producer_id=number)
            await ask(wire, 0, producer_id=number)
        deduplication = deduplication_of(bed)
        assert len(deduplication.cursor.properties) == 2
        assert deduplication.last_sequence_id("p3") == 0


async def test_producers_that_left_long_ago_are_forgotten(autojump_clock: object) -> None:
    config = Config(brokerDeduplicationEnabled=True, brokerDeduplicationProducerInactivityTimeoutMinutes=3)
    async with serving(config) as bed:
        gone, stays = await bed.connect(), await bed.connect(version=0)  # version 0 gets no PING
        await gone.producer(producer_name="gone")
        await stays.producer(producer_name="stays")
        for wire in (gone, stays):
            await ask(wire, 7)
        await stays.ask(Type.CLOSE_PRODUCER, producer_id=0)
        await stays.producer(producer_name="stays")
        await gone.ask(Type.CLOSE_PRODUCER, producer_id=0)
        deduplication = deduplication_of(bed)
        await trio.sleep(170)
        assert deduplication.last_sequence_id("gone") == 7
        await trio.sleep(80)
        assert deduplication.last_sequence_id("gone") == -1
        assert deduplication.last_sequence_id("stays") == 7
        assert deduplication.cursor.properties == {"stays": 7}


# on and off


async def test_deduplication_can_be_switched_while_in_use(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    await ask(wire, 5)
    put(bed, True)
    assert await ask(wire, 5) != DUPLICATE  # deduplication does not read entries that are stored already
    assert await ask(wire, 5) == DUPLICATE
    cursor = deduplication_of(bed).cursor
    assert (cursor.name, cursor.mark_delete.entry_id) == ("pulsar.dedup", 0)
    put(bed, False)
    assert bed.topic().log.cursors == {}
    assert await ask(wire, 5) != DUPLICATE
    put(bed, True)
    assert (await wire.producer(producer_name="q", producer_id=1)).last_sequence_id == -1
    assert await ask(wire, 5) != DUPLICATE


async def test_switching_deduplication_off_trims_the_ledgers_that_only_its_cursor_kept(autojump_clock: object) -> None:
    config = Config(managedLedgerMaxEntriesPerLedger=1, managedLedgerMinLedgerRolloverTimeMinutes=0)
    async with serving(config) as bed:
        wire = await bed.connect()
        await wire.producer(producer_name="p")
        await ask(wire, 0)
        put(bed, True)
        for number in range(1, 4):
            await ask(wire, number)
        assert len(bed.topic().ledger.ledgers) == 4  # with the empty ledger that is written next
        put(bed, False)
        await ask(wire, 4)  # the turn of the change is over
        assert len(bed.topic().ledger.ledgers) == 2


async def test_a_topic_without_it_forgets_what_was_kept(autojump_clock: object) -> None:
    store = HeldStorage()
    for config in (ON, Config()):
        async with serving(config, storage=store) as bed:
            wire = await bed.connect()
            await wire.producer(producer_name="p")
            assert await ask(wire, 5) != DUPLICATE
    assert not [path for path in store.metadata if path.endswith("pulsar.dedup")]


@pytest.mark.serving(ON)
async def test_its_cursor_is_no_subscription(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    assert bed.topic().subscriptions == {}
    for durable in (True, False):
        refusal = await refused_consumer(wire, "pulsar.dedup", durable=durable)
        assert refusal == (pb.ProducerBusy, "Subscription with reserved subscription name attempted")
