"""Delivery of messages with deliver_at_time on Shared and Key_Shared (B-21)."""

from __future__ import annotations

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.reasons import Reason
from tests.broker.model.dispatch.sharing import got, joined, payloads, why
from tests.broker.wall import Wall
from tests.broker.wire import Bed, Exclusive, Failover, KeyShared, Shared, Wire, batch_of, plain

SHARING = pytest.mark.parametrize("type", [Shared, KeyShared])


def in_ms(bed: Bed, delay: int, payload: bytes = b"later") -> bytes:
    return plain(payload, deliver_at_time=bed.broker.clock.now_ms() + delay, partition_key="k")


@pytest.mark.req("B-21")
@SHARING
async def test_a_message_comes_when_its_time_does(bed: Bed, sender: Wire, type: int) -> None:
    wire = await joined(bed, "c", type=type)
    (position,) = await sender.publish(in_ms(bed, 20_000))
    await sender.publish(plain(b"now", partition_key="k"))
    assert await payloads(wire) == [b"now"]
    assert why(bed, position) is Reason.DELAYED
    await trio.sleep(18)
    assert await got(wire) == []
    await trio.sleep(3.5)
    assert await payloads(wire) == [b"later"]


@pytest.mark.req("B-21")
@SHARING
async def test_a_delayed_message_comes_when_the_machine_slept_past_its_time(wall: Wall, bed: Bed, type: int) -> None:
    sender = await bed.connect()
    await sender.producer()
    wire = await joined(bed, "c", type=type)
    await sender.publish(in_ms(bed, 1_800_000))
    await trio.sleep(1)
    wall.ahead += 3600
    assert (await wire.message(1.5)).payload == b"later"


@pytest.mark.req("B-21")
@pytest.mark.serving(Config(keepAliveIntervalSeconds=0))
@SHARING
async def test_a_delayed_message_waits_for_its_time_after_the_clock_was_set_back(
    wall: Wall, bed: Bed, type: int
) -> None:
    sender = await bed.connect()
    await sender.producer()
    wire = await joined(bed, "c", type=type)
    await sender.publish(in_ms(bed, 20_000))
    await trio.sleep(1)
    wall.ahead -= 3600
    await wire.quiet(3600 + 16)
    assert (await wire.message(5)).payload == b"later"


@pytest.mark.req("B-21")
@pytest.mark.parametrize("type", [Exclusive, Failover])
async def test_exclusive_and_failover_subscriptions_do_not_delay(bed: Bed, sender: Wire, type: int) -> None:
    wire = await joined(bed, "c", type=type)
    await trio.sleep(1.5)
    await wire.rest(0.001)
    await sender.publish(in_ms(bed, 60_000))
    assert await payloads(wire) == [b"later"]


@pytest.mark.req("B-21")
@SHARING
async def test_the_earliest_delayed_message_comes_first(bed: Bed, sender: Wire, type: int) -> None:
    wire = await joined(bed, "c", type=type)
    await sender.publish(*[in_ms(bed, seconds * 1000, b"%d" % seconds) for seconds in (15, 5, 10)])
    assert [(await wire.message(60)).payload for _ in range(3)] == [b"5", b"10", b"15"]


@pytest.mark.req("B-21")
@SHARING
async def test_delayed_messages_do_not_wait_for_who_left(bed: Bed, sender: Wire, type: int) -> None:
    wire = await joined(bed, "c", type=type)
    await sender.publish(in_ms(bed, 10_000), plain(b"now", partition_key="k"))
    assert await payloads(wire) == [b"now"]
    await wire.aclose()
    other = await joined(bed, "d", type=type)
    assert await payloads(other) == [b"now"]
    assert (await other.message(60)).payload == b"later"


@pytest.mark.req("B-21")
async def test_a_batch_waits_as_a_whole(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared)
    await sender.publish(batch_of(b"a", b"b", deliver_at_time=bed.broker.clock.now_ms() + 5000), num_messages=2)
    assert await got(wire) == []
    assert (await wire.message()).position.entry_id == 0


@pytest.mark.req("B-21", "S423-40", "S423-41")
async def test_a_delayed_message_acknowledged_before_its_time_is_not_delivered(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared)
    await sender.publish(*[in_ms(bed, 5000, b"%d" % number) for number in range(2)])
    (ledger,) = bed.subscription().topic.ledger.ledgers
    await wire.ack(Position(ledger, 0))
    assert (await wire.message()).payload == b"1"
    await wire.quiet(20)


@pytest.mark.req("B-21")
async def test_a_delayed_message_without_permits_waits_longer(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared, permits=1)
    await sender.publish(plain(b"now"), in_ms(bed, 5000))
    assert await payloads(wire) == [b"now"]
    await trio.sleep(20)
    assert await got(wire) == []
    await wire.flow(1)
    assert await payloads(wire) == [b"later"]


@pytest.mark.req("B-21")
async def test_a_namespace_may_switch_delayed_delivery_off(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared)
    await sender.publish(in_ms(bed, 3_600_000))
    assert await got(wire) == []
    metadata = bed.broker.metadata
    off = {"delayed_delivery_policies": {"active": False, "tickTime": 1000, "maxDeliveryDelayInMillis": 0}}
    metadata.put_namespace("public/default", {**metadata.namespaces["public/default"], **off})
    assert await payloads(wire) == [b"later"]
    await sender.publish(in_ms(bed, 3_600_000))
    assert await payloads(wire) == [b"later"]


@pytest.mark.req("B-21")
async def test_a_nearer_time_is_not_held_up_by_a_farther_one(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared)
    await sender.publish(in_ms(bed, 3_600_000, b"far"))
    assert await got(wire) == []
    await sender.publish(in_ms(bed, 5000, b"near"))
    assert (await wire.message()).payload == b"near"
