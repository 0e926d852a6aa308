"""Subscriptions that reach damaged entries. The stores have real threads, so the tests take real time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.lab.why.explain import explain
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.damaged import flip
from tests.broker.loopback import until
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Exclusive, KeyShared, Shared, Wire, message_id, plain, serving

COUNT = 6
DAMAGED = 2
TYPES = pytest.mark.parametrize("type", [Exclusive, Shared, KeyShared])


@asynccontextmanager
async def backlog(data: Path, damaged: int = DAMAGED, type: int = Shared, **config: Any) -> AsyncIterator[Bed]:
    """Start a broker again on a topic in which one row is damaged."""
    async with serving(data=data) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=type)
        for number in range(COUNT):  # each message is a row, and all rows are one block after the start
            await wire.publish(plain(b"%d" % number))
    flip(data, damaged)
    async with serving(Config(**config), data=data) as bed:
        yield bed


def has_tried(subscription: PersistentSubscription, loads: int) -> bool:
    cache = subscription.topic.stores.cache
    return (cache.loads, subscription.reason) == (loads, Reason.UNREADABLE)


async def stuck(bed: Bed, wire: Wire) -> PersistentSubscription:
    """Assert that only the messages before the damage are delivered, and return the subscription."""
    await wire.flow()
    assert await wire.payloads(DAMAGED) == [b"0", b"1"]
    subscription = bed.subscription()
    await until(lambda: subscription.reason is Reason.UNREADABLE)
    await wire.alive()
    return subscription


@TYPES
async def test_entries_before_damage_are_delivered_and_the_damage_is_tried_again_later(
    tmp_path: Path, type: int, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with backlog(tmp_path, type=type, keepAliveIntervalSeconds=0) as bed:
        wire = await bed.connect()
        await wire.subscribe(type=type)
        subscription = await stuck(bed, wire)
        for tried, pause in enumerate((15, 30, 60, 60), bed.broker.cluster.cache.loads):
            mock_clock.jump(pause - 0.1)
            await wire.flow(1)
            await wire.alive()
            assert has_tried(subscription, tried)  # a FLOW causes no new try
            mock_clock.jump(0.2)
            await until(partial(has_tried, subscription, tried + 1))
        assert caplog.text.count("entries cannot be read") == 1
        flip(tmp_path, DAMAGED)  # repairs the row, as when only a cable was loose
        mock_clock.jump(61)
        assert await wire.payloads(COUNT - DAMAGED) == [b"2", b"3", b"4", b"5"]
        await until(lambda: subscription.reason is Reason.CAUGHT_UP)


@TYPES
async def test_damaged_entries_are_skipped_when_configured(
    tmp_path: Path, type: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with backlog(tmp_path, type=type, autoSkipNonRecoverableData=True) as bed:
        wire = await bed.connect()
        await wire.subscribe(type=type)
        await wire.flow()
        found = await wire.messages(COUNT - 1)
        assert [message.payload for message in found] == [b"0", b"1", b"3", b"4", b"5"]
        cursor, last = bed.subscription().cursor, found[-1].position
        skipped = Position(last.ledger_id, DAMAGED)
        assert cursor.is_acked(skipped)
        assert caplog.text.count("damaged entries are skipped") == 1
        assert f"{skipped}" in caplog.text
        await wire.redeliver()
        again = await wire.messages(COUNT - 1)
        assert [message.position for message in again] == [message.position for message in found]
        assert caplog.text.count("damaged entries are skipped") == 1
        await wire.ack(*[message.position for message in again])
        await wire.alive()
        assert cursor.mark_delete == last


async def test_skipping_damage_can_be_configured_while_a_subscription_waits(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with backlog(tmp_path) as bed:
        wire = await bed.connect()
        await wire.subscribe(type=Shared)
        await stuck(bed, wire)
        bed.broker.cluster.dynamic.put("autoSkipNonRecoverableData", "true")
        await wire.flow(1)
        assert await wire.payloads(3) == [b"3", b"4", b"5"]


@pytest.mark.parametrize("skip", [False, True])
async def test_an_entry_damaged_before_its_redelivery_is_handled(tmp_path: Path, skip: bool) -> None:
    config = Config(managedLedgerCacheSizeMB=0, autoSkipNonRecoverableData=skip)
    async with serving(config, data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=Shared)
        await wire.flow()
        for number in range(COUNT):
            await wire.write(wire.sends(plain(b"%d" % number)))
            frames = {(await wire.next()).command.type for _ in range(2)}
            assert frames == {pb.BaseCommand.SEND_RECEIPT, pb.BaseCommand.MESSAGE}
        flip(tmp_path, DAMAGED)
        subscription = bed.subscription()
        await wire.redeliver()
        if skip:
            assert await wire.payloads(COUNT - 1) == [b"0", b"1", b"3", b"4", b"5"]
            await until(lambda: subscription.reason is Reason.CAUGHT_UP)
        else:
            assert await wire.payloads(DAMAGED) == [b"0", b"1"]
            await until(lambda: subscription.reason is Reason.UNREADABLE)


async def test_why_names_the_damaged_entries(tmp_path: Path) -> None:
    async with backlog(tmp_path) as bed:
        wire, cluster = await bed.connect(), bed.broker.cluster
        await wire.subscribe(type=Shared)
        subscription = await stuck(bed, wire)
        ledger = subscription.cursor.read_position.ledger_id
        for message in (None, f"{ledger}:{DAMAGED}"):
            why = explain(cluster, TOPIC, "sub", message)
            assert why.reason == "unreadable"
            assert f"ledger {ledger}: damaged entries from {DAMAGED} on" in why.text
            assert "autoSkipNonRecoverableData" in why.text
        behind = explain(cluster, TOPIC, "sub", f"{ledger}:{COUNT - 1}")
        assert behind.reason == "unreadable"
        assert f"damaged entries from {DAMAGED} on" in behind.text
        assert "the broker tries again at" in behind.text
        subscription.acknowledge(None, [Position(ledger, DAMAGED)], save_now=False)
        assert explain(cluster, TOPIC, "sub", f"{ledger}:{DAMAGED}").reason == "acknowledged"
        await wire.flow(1)  # an operator may skip the entry too
        assert await wire.payloads(3) == [b"3", b"4", b"5"]


async def test_whoever_else_reads_damaged_entries_is_told(tmp_path: Path) -> None:
    async with backlog(tmp_path, damaged=COUNT - 1) as bed:
        wire, rest = await bed.connect(), Rest(bed.broker)
        await wire.subscribe(type=Shared)
        code, text = await wire.refused(pb.BaseCommand.GET_LAST_MESSAGE_ID, consumer_id=0)
        assert code == pb.MetadataError
        assert "Failed to get batch size for entry ledger" in text
        code, text = await wire.refused(pb.BaseCommand.SEEK, consumer_id=0, message_publish_time=5)
        assert code == pb.PersistenceError
        assert text.startswith("Error when resetting subscription: ledger")
        last = bed.subscription().topic.ledger.last_confirmed
        for path in (f"ledger/{last.ledger_id}/entry/{last.entry_id}", f"subscription/sub/position/{COUNT}"):
            assert (await rest.call("GET", f"{TOPICS}/t/{path}")).status == 500
        assert (await rest.call("GET", f"{TOPICS}/t/stats")).status == 200
        await wire.ask(pb.BaseCommand.SEEK, consumer_id=0, message_id=message_id(Position(last.ledger_id, 0)))


async def test_compaction_of_damaged_entries_fails(tmp_path: Path) -> None:
    async with backlog(tmp_path) as bed:
        wire, rest = await bed.connect(), Rest(bed.broker)
        await wire.subscribe(type=Shared)
        compaction = f"{TOPICS}/t/compaction"
        assert (await rest.call("PUT", compaction)).status == 204
        status = ""
        for _ in range(500):
            status = (await rest.call("GET", compaction)).json["status"]
            if status != "RUNNING":
                break
            await trio.sleep(0.01)
        assert status == "ERROR"
