"""Deletion of inactive topics (B-41)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
import trio
from trio.testing import MockClock

from pulsarium.broker.model.compaction.compactor import Steps, TwoPhaseCompactor, Writer
from pulsarium.broker.model.compaction.raw import RawReader
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.upkeep.policed import fresh, patient, set_policies
from tests.broker.wire import TOPIC, Bed, Type, Wire

EVERY = 60  # in seconds: brokerDeleteInactiveTopicsFrequencySeconds, and the time until an unused topic is deleted
CAUGHT_UP = "delete_when_subscriptions_caught_up"


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with patient() as bed:
        yield bed


def exists(bed: Bed, name: str = TOPIC) -> bool:
    return bed.broker.topics.exists(TopicName.parse(name))


def set_inactivity(bed: Bed, *, delete: bool = True, seconds: int = EVERY, mode: str = CAUGHT_UP) -> None:
    policy = {"deleteWhileInactive": delete, "maxInactiveDurationSeconds": seconds, "inactiveTopicDeleteMode": mode}
    set_policies(bed.broker, inactive_topic_policies=policy)


@pytest.mark.req("B-41")
async def test_a_topic_without_producers_and_subscriptions_goes(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.send(
        Type.WATCH_TOPIC_LIST,
        request_id=1,
        watcher_id=0,
        namespace="public/default",
        topics_pattern="public/default/.*",
    )
    await wire.expect(Type.WATCH_TOPIC_LIST_SUCCESS)
    await sender.publish(fresh(bed.broker, b"0"))
    await trio.sleep(5 * EVERY - 5)
    assert exists(bed)
    await sender.ask(Type.CLOSE_PRODUCER, producer_id=0)
    await trio.sleep(EVERY)
    assert exists(bed)  # unused for less than a minute at the last check
    await trio.sleep(EVERY)
    assert not exists(bed)
    update = await wire.expect(Type.WATCH_TOPIC_UPDATE)
    assert list(update.deleted_topics) == [TOPIC]
    assert not bed.broker.topics.loaded
    await sender.producer()
    assert exists(bed)


@pytest.mark.req("B-41")
async def test_a_subscription_keeps_an_inactive_topic(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await trio.sleep(5 * EVERY)
    assert exists(bed)
    await wire.subscribe()
    await trio.sleep(EVERY / 2)
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0)
    await trio.sleep(EVERY)
    assert exists(bed)
    await trio.sleep(EVERY)
    assert not exists(bed)


@pytest.mark.req("B-41")
@pytest.mark.parametrize("running", [False, True])
async def test_compaction_keeps_an_inactive_topic(bed: Bed, sender: Wire, running: bool) -> None:
    """Compaction keeps the topic by its subscription, or while it runs under delete_when_subscriptions_caught_up."""
    await sender.publish(fresh(bed.broker, b"0"))
    await sender.ask(Type.CLOSE_PRODUCER, producer_id=0)
    topic = bed.topic()
    if running:
        topic.compaction.compactor = Endless()
        set_inactivity(bed)
    topic.compaction.trigger()
    await trio.sleep(5 * EVERY)
    assert exists(bed)
    assert topic.compaction.status == ("RUNNING" if running else "SUCCESS")
    if running:
        topic.compaction.close()
        await trio.sleep(3 * EVERY)
        assert not exists(bed)


class Endless(TwoPhaseCompactor):
    """A compactor that never ends."""

    def compact(self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool) -> Steps:
        while True:
            yield True


@pytest.mark.req("B-41")
async def test_a_topic_goes_once_its_subscriptions_have_caught_up(bed: Bed, wire: Wire, sender: Wire) -> None:
    set_inactivity(bed)
    await wire.subscribe()
    (sent,) = await sender.publish(fresh(bed.broker, b"0"))
    await sender.ask(Type.CLOSE_PRODUCER, producer_id=0)
    await trio.sleep(5 * EVERY)
    assert bed.subscription().cursor.backlog() == 1
    await wire.ack(sent)
    await trio.sleep(5 * EVERY)
    assert exists(bed)  # a consumer is connected
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await trio.sleep(EVERY + 1)
    assert not exists(bed)


@pytest.mark.req("B-41")
async def test_a_policy_may_keep_an_inactive_topic(bed: Bed, sender: Wire) -> None:
    set_inactivity(bed, delete=False)
    await sender.ask(Type.CLOSE_PRODUCER, producer_id=0)
    await trio.sleep(5 * EVERY)
    assert exists(bed)
    set_inactivity(bed, seconds=10 * EVERY)
    await trio.sleep(4 * EVERY)
    assert exists(bed)
    await trio.sleep(2 * EVERY)
    assert not exists(bed)


@pytest.mark.req("B-41")
async def test_retention_by_time_keeps_what_was_published(bed: Bed, wire: Wire, sender: Wire) -> None:
    set_policies(bed.broker, retention_policies={"retentionTimeInMinutes": 10, "retentionSizeInMB": -1})
    await sender.publish(fresh(bed.broker, b"0"))
    await wire.producer(topic=TOPIC + "-empty")
    await sender.aclose()
    await wire.aclose()
    await trio.sleep(3 * EVERY)
    assert exists(bed)
    assert not exists(bed, TOPIC + "-empty")
    set_policies(bed.broker, retention_policies={"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    await trio.sleep(20 * EVERY)
    assert exists(bed)
    set_policies(bed.broker, retention_policies={"retentionTimeInMinutes": 10, "retentionSizeInMB": -1})
    await trio.sleep(EVERY + 1)
    assert not exists(bed)


@pytest.mark.req("B-41")
async def test_a_partitioned_topic_stays_although_its_partitions_go(bed: Bed, wire: Wire) -> None:
    name = TopicName.parse("parted")
    bed.broker.topics.create_partitions(name, 2)
    await trio.sleep(3 * EVERY)
    assert not exists(bed, str(name.partition(0)))
    assert bed.broker.metadata.partitions_of(name) == 2
    await wire.producer(topic=str(name.partition(1)))


@pytest.mark.req("B-41")
async def test_topics_that_are_not_persistent_go_too(bed: Bed, wire: Wire) -> None:
    name = "non-persistent://public/default/n"
    await wire.producer(topic=name)
    await trio.sleep(3 * EVERY)
    assert exists(bed, name)
    await wire.aclose()
    await trio.sleep(2 * EVERY + 1)
    assert not exists(bed, name)


@pytest.mark.req("B-41")
async def test_no_inactive_topic_goes_where_deletion_is_off(autojump_clock: MockClock) -> None:
    async with patient(brokerDeleteInactiveTopicsEnabled=False) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.aclose()
        set_inactivity(bed, seconds=1)
        await trio.sleep(5 * EVERY)
        assert exists(bed)


DELETES_PARENTS = {"brokerDeleteInactivePartitionedTopicMetadataEnabled": True}


@pytest.mark.req("B-41")
async def test_a_partitioned_topic_goes_with_its_last_partition_where_that_is_on(autojump_clock: MockClock) -> None:
    async with patient(**DELETES_PARENTS) as bed:
        name, wire = TopicName.parse("parted"), await bed.connect()
        bed.broker.topics.create_partitions(name, 2)
        bed.broker.metadata.put_topic_policies(name, {"max_producers_per_topic": 5})
        await wire.producer(topic=str(name.partition(1)))
        await trio.sleep(3 * EVERY)
        assert not exists(bed, str(name.partition(0)))
        assert bed.broker.metadata.partitions_of(name) == 2
        await wire.aclose()
        await trio.sleep(3 * EVERY)
        assert bed.broker.metadata.partitions_of(name) == 0
        assert not bed.broker.metadata.topic_policies


@pytest.mark.req("B-41")
async def test_a_non_persistent_partitioned_topic_goes_with_its_first_partition(autojump_clock: MockClock) -> None:
    async with patient(**DELETES_PARENTS) as bed:
        name, wire, other = (
            TopicName.parse("non-persistent://public/default/n"),
            await bed.connect(),
            await bed.connect(),
        )
        bed.broker.topics.create_partitions(name, 2)
        await wire.producer(topic=str(name.partition(0)))
        await other.producer(topic=str(name.partition(1)))
        await other.aclose()
        await trio.sleep(3 * EVERY)
        assert exists(bed, str(name.partition(0)))
        assert bed.broker.metadata.partitions_of(name) == 0
