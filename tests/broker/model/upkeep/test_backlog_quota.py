"""Backlog quotas: the broker refuses producers, or skips messages of slow subscriptions (B-26, P-06)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic.backlog import backlog_size, oldest_ms, size_after
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.conftest import run_without_waiting
from tests.broker.model.upkeep.policed import fresh, patient, set_policies
from tests.broker.model.upkeep.trimmed import publish
from tests.broker.model.upkeep.trimmed import topic_of as topic_in
from tests.broker.model.upkeep.trimmed import topics as topics_with
from tests.broker.wire import TOPIC, Bed, Shared, Type, Wire

EVERY = 60  # in seconds, from backlogQuotaCheckIntervalInSeconds
HOLDS = int(pb.ProducerBlockedQuotaExceededError)
FAILS = int(pb.ProducerBlockedQuotaExceededException)
REFUSAL = (
    "org.apache.pulsar.broker.service.BrokerServiceException$TopicBacklogQuotaExceededException: "
    "Cannot create producer on topic with backlog quota exceeded"
)


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with patient(managedLedgerMaxEntriesPerLedger=10, managedLedgerMinLedgerRolloverTimeMinutes=0) as bed:
        yield bed


def set_quota(bed: Bed, policy: str, *, size: int = -1, seconds: int = -1) -> None:
    kind = "destination_storage" if size >= 0 else "message_age"
    set_policies(bed.broker, backlog_quota_map={kind: {"limitSize": size, "limitTime": seconds, "policy": policy}})


# sizes and ages of backlogs


@given(st.integers(0, 9), st.integers(-1, 9))
def test_the_estimate_is_exact_where_entries_are_of_one_size(entries: int, mark: int) -> None:
    async def check() -> None:
        topic = topic_in(topics_with(managedLedgerMaxEntriesPerLedger=3))
        cursor = topic.subscribe("a", earliest=True).cursor
        kept = publish(topic, entries)
        size = topic.ledger.size // entries if entries else 0
        passed = min(mark + 1, entries)
        if passed:
            cursor.ack_cumulative(kept[passed - 1])
        assert backlog_size(topic.log) == (entries - passed) * size

    run_without_waiting(check)


async def test_without_a_durable_subscription_there_is_no_backlog() -> None:
    topic = topic_in(topics_with())
    topic.open_reader("reader", None, earliest=True)
    publish(topic)
    assert (backlog_size(topic.log), oldest_ms(topic.log)) == (0, None)
    assert size_after(topic.ledger, Position(10**6, 0)) == 0


async def test_age_is_that_of_closed_ledgers(mock_clock: MockClock) -> None:
    topic: PersistentTopic = topic_in(topics_with(managedLedgerMaxEntriesPerLedger=2))
    cursor = topic.subscribe("a", earliest=True).cursor
    (first,) = publish(topic)
    mock_clock.jump(100)
    assert oldest_ms(topic.log) is None  # the ledger is still open
    closed_ms = topic.now_ms()
    second, _ = publish(topic, 2)
    mock_clock.jump(100)
    cursor.ack(first)
    assert oldest_ms(topic.log) == closed_ms
    cursor.ack(second)
    assert oldest_ms(topic.log) is None


# producers


@pytest.mark.req("P-06", "B-26")
@pytest.mark.parametrize(("policy", "code"), [("producer_request_hold", HOLDS), ("producer_exception", FAILS)])
async def test_producers_are_disconnected_and_refused(
    bed: Bed, wire: Wire, sender: Wire, policy: str, code: int
) -> None:
    set_quota(bed, policy, size=1000)
    await wire.subscribe()
    sent = await sender.publish(*(fresh(bed.broker, bytes(400)) for _ in range(4)))  # the check comes later
    closed = await sender.expect(Type.CLOSE_PRODUCER, within=EVERY + 1)
    assert (closed.producer_id, closed.request_id) == (0, 2**64 - 1)
    assert not bed.topic().producers
    assert await sender.refused(Type.PRODUCER, topic=TOPIC, producer_id=1) == (code, REFUSAL)
    await wire.flow()
    await wire.messages(4)
    await wire.ack(*sent[:3])
    await sender.producer(producer_id=1)


@pytest.mark.req("P-06", "B-26")
async def test_producers_are_disconnected_because_of_age(bed: Bed, wire: Wire, sender: Wire) -> None:
    set_quota(bed, "producer_exception", seconds=90)
    await wire.subscribe()
    await sender.publish(fresh(bed.broker, b"0"))
    await sender.quiet(3 * EVERY)  # the age of entries in an open ledger is unknown
    await sender.publish(*(fresh(bed.broker, b"x") for _ in range(10)))
    await sender.publish(fresh(bed.broker, b"x"))
    await sender.quiet(EVERY)
    await sender.expect(Type.CLOSE_PRODUCER, within=EVERY + 1)
    assert await sender.refused(Type.PRODUCER, topic=TOPIC, producer_id=1) == (FAILS, REFUSAL)


@pytest.mark.req("B-26")
async def test_below_the_limit_nothing_happens(bed: Bed, wire: Wire, sender: Wire) -> None:
    set_quota(bed, "producer_exception", size=2000)
    await wire.subscribe()
    await sender.publish(*(fresh(bed.broker, bytes(400)) for _ in range(4)))
    await sender.quiet(2 * EVERY)
    await sender.producer(producer_id=1)


@pytest.mark.req("B-26")
async def test_backlogs_are_not_looked_at_where_that_is_off(autojump_clock: MockClock) -> None:
    async with patient(backlogQuotaCheckEnabled=False, backlogQuotaDefaultLimitBytes=1) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        await wire.publish(fresh(bed.broker, b"0"))
        await wire.quiet(2 * EVERY)
        assert (await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1))[0] == HOLDS


# consumers


@pytest.mark.req("P-06", "B-26")
async def test_the_slowest_subscription_loses_messages(bed: Bed, wire: Wire, sender: Wire) -> None:
    set_quota(bed, "consumer_backlog_eviction", size=10_000)
    await wire.subscribe(type=Shared)
    await wire.subscribe(name="fast", consumer_id=1)
    await wire.flow(2)
    await wire.flow(100, consumer_id=1)
    sent = await sender.publish(*(fresh(bed.broker, bytes(970)) for _ in range(20)))
    await wire.messages(22)
    await wire.ack(*sent[:15], consumer_id=1)
    size = bed.topic().ledger.size // 20
    await trio.sleep(EVERY + 1)
    slow, fast = bed.subscription(), bed.subscription("fast")
    skipped = int((20 * size - 9_000) / size)  # only whole entries, and not below 90 % of the quota
    assert slow.cursor.backlog() == 20 - skipped == 10
    assert backlog_size(bed.topic().log) == 10 * size
    assert fast.cursor.backlog() == 5
    (consumer,) = slow.consumers
    assert (consumer.unacked, dict(consumer.pending)) == (0, {})
    await sender.alive()  # producers stay connected
    await wire.flow(100)
    assert [(await wire.message()).position for _ in range(10)] == sent[10:]


@pytest.mark.req("B-26")
async def test_ledgers_older_than_the_quota_are_skipped(bed: Bed, wire: Wire, sender: Wire) -> None:
    set_quota(bed, "consumer_backlog_eviction", seconds=90)
    await wire.subscribe()
    for _ in range(25):
        await sender.publish(fresh(bed.broker, b"x"))
    await trio.sleep(EVERY + 1)
    assert bed.subscription().cursor.backlog() == 25
    await trio.sleep(EVERY)
    assert bed.subscription().cursor.backlog() == 5  # these are in the open ledger
    assert len(bed.topic().ledger.ledgers) == 1
    await trio.sleep(250 * 60)  # the last ledger is closed by its age
    assert bed.subscription().cursor.backlog() == 0


# the precise age


async def test_a_precise_age_is_that_of_the_oldest_entry(autojump_clock: MockClock) -> None:
    async with patient(preciseTimeBasedBacklogQuotaCheck=True) as bed:
        wire, sender = await bed.connect(), await bed.connect()
        await wire.subscribe()
        await sender.producer()
        topic = bed.topic()
        assert oldest_ms(topic.log) is None
        ages = (80, 40)
        published = [topic.now_ms() - age * 1000 for age in ages]
        sent = await sender.publish(*(fresh(bed.broker, b"x", age=age) for age in ages))
        await wire.flow()
        await wire.messages(2)
        for position, time in zip(sent, published, strict=True):
            assert oldest_ms(topic.log) == time  # although the ledger is still open
            await wire.ack(position)
        assert oldest_ms(topic.log) is None


@pytest.mark.req("P-06", "B-26")
async def test_a_precise_age_disconnects_producers(autojump_clock: MockClock) -> None:
    async with patient(preciseTimeBasedBacklogQuotaCheck=True) as bed:
        set_quota(bed, "producer_exception", seconds=90)
        wire, sender = await bed.connect(), await bed.connect()
        await wire.subscribe()
        await sender.producer()
        await sender.publish(fresh(bed.broker, b"x"))
        await sender.quiet(EVERY)
        await sender.expect(Type.CLOSE_PRODUCER, within=EVERY + 1)
        assert await sender.refused(Type.PRODUCER, topic=TOPIC, producer_id=1) == (FAILS, REFUSAL)


@pytest.mark.req("B-26")
async def test_a_precise_age_expires_single_messages_of_each_subscription(autojump_clock: MockClock) -> None:
    async with patient(preciseTimeBasedBacklogQuotaCheck=True) as bed:
        set_quota(bed, "consumer_backlog_eviction", seconds=100)
        wire, sender = await bed.connect(), await bed.connect()
        await wire.subscribe()
        await wire.subscribe(name="other", consumer_id=1)
        await sender.producer()
        await sender.publish(fresh(bed.broker, b"old", age=80), fresh(bed.broker, b"almost", age=40))
        await sender.publish(fresh(bed.broker, b"new"))
        await trio.sleep(EVERY + 1)
        for name in ("sub", "other"):
            subscription = bed.subscription(name)
            assert (subscription.cursor.backlog(), subscription.expired.total) == (1, 2)
