"""Expiry of messages by TTL (B-24)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock

from pulsarium.broker.config.keys import APPEND_BROKER_TIMESTAMP
from pulsarium.broker.model.ledger.position import EARLIEST
from tests.broker.model.upkeep.policed import fresh, patient, set_policies
from tests.broker.wire import Bed, Earliest, Shared, Wire, message_id, plain

EVERY = 300  # in seconds, from messageExpiryCheckIntervalInMinutes


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with patient() as bed:
        yield bed


@pytest.mark.req("B-24")
async def test_old_messages_are_acknowledged_for_everybody(bed: Bed, wire: Wire, sender: Wire) -> None:
    set_policies(bed.broker, message_ttl_in_seconds=60)
    await wire.subscribe()
    await wire.subscribe(name="other", consumer_id=1)
    old = await sender.publish(*(fresh(bed.broker, b"%d" % number) for number in range(3)))
    await trio.sleep(EVERY - 30)
    (young,) = await sender.publish(fresh(bed.broker, b"young"))
    await trio.sleep(31)
    for name in ("sub", "other"):
        subscription = bed.subscription(name)
        assert subscription.cursor.mark_delete == old[-1]
        assert subscription.expired.total == 3
        assert bed.broker.clock.now_ms() - subscription.expired.tried_ms <= 1000
        assert subscription.mark_delete_advanced_ms == subscription.expired.tried_ms
    await wire.flow()
    assert (await wire.message()).position == young


@pytest.mark.req("B-24")
async def test_consumers_stay_and_owe_nothing_of_it(bed: Bed, wire: Wire, sender: Wire) -> None:
    """Expired messages no longer count as unacknowledged, but the consumer does not get back their permits."""
    set_policies(bed.broker, message_ttl_in_seconds=60)
    await wire.subscribe(type=Shared)
    await wire.flow(3)
    sent = await sender.publish(*(fresh(bed.broker, b"%d" % number) for number in range(5)))
    await wire.messages(3)
    await wire.redeliver([sent[0]])
    await wire.alive()
    (consumer,) = bed.subscription().consumers
    assert (consumer.unacked, consumer.permits) == (2, 0)
    await trio.sleep(EVERY + 1)
    assert (consumer.unacked, consumer.permits, dict(consumer.pending)) == (0, 0, {})
    await wire.flow(10)
    await wire.quiet()
    await sender.publish(fresh(bed.broker, b"new"))
    assert await wire.payloads(1) == [b"new"]
    await wire.ack(sent[1])  # a late ACK is no error


@pytest.mark.req("B-24")
@pytest.mark.parametrize("seconds", [10, 60, 3600])
async def test_a_message_expires_at_its_age_and_no_later(bed: Bed, wire: Wire, sender: Wire, seconds: int) -> None:
    await wire.subscribe()
    sent = await sender.publish(
        fresh(bed.broker, b"old", age=seconds + 0.1), fresh(bed.broker, b"young", age=seconds - 0.1)
    )
    set_policies(bed.broker, message_ttl_in_seconds=seconds)
    assert bed.subscription().cursor.mark_delete == sent[0]


@pytest.mark.req("B-24")
async def test_a_ttl_that_is_set_is_heeded_at_once(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    sent = await sender.publish(fresh(bed.broker, b"old", age=100), fresh(bed.broker, b"young"))
    set_policies(bed.broker, message_ttl_in_seconds=60)
    assert bed.subscription().cursor.mark_delete == sent[0]
    set_policies(bed.broker, message_ttl_in_seconds=0)
    await trio.sleep(EVERY + 1)
    assert bed.subscription().cursor.mark_delete == sent[0]


@pytest.mark.req("B-24")
async def test_without_a_ttl_nothing_expires(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await sender.publish(plain(b"of 1970"))
    await trio.sleep(EVERY + 1)
    assert bed.subscription().cursor.backlog() == 1


@pytest.mark.req("B-24")
async def test_readers_expire_too_but_not_alone(bed: Bed, wire: Wire, sender: Wire) -> None:
    set_policies(bed.broker, message_ttl_in_seconds=60)
    start = message_id(EARLIEST)
    await wire.subscribe(name="reader", durable=False, start_message_id=start)
    await sender.publish(fresh(bed.broker, b"0"))
    await trio.sleep(EVERY + 1)
    assert bed.subscription("reader").cursor.backlog() == 1
    await wire.subscribe(name="durable", consumer_id=1, initialPosition=Earliest)
    await trio.sleep(EVERY + 1)
    assert bed.subscription("reader").cursor.backlog() == 0
    assert bed.subscription("durable").cursor.backlog() == 0


@pytest.mark.req("B-24")
async def test_the_brokers_stamp_counts_where_there_is_one(autojump_clock: MockClock) -> None:
    stamped = {"brokerEntryMetadataInterceptors": (APPEND_BROKER_TIMESTAMP,)}
    async with patient(**stamped, ttlDurationDefaultInSeconds=60) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        await trio.sleep(EVERY - 30)
        await wire.publish(plain(b"of 1970, says its producer"))
        await trio.sleep(31)
        assert bed.subscription().cursor.backlog() == 1
        await trio.sleep(EVERY)
        assert bed.subscription().cursor.backlog() == 0
