"""Auto scale and the collection of sealed segments on the broker's clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config, Profile
from pulsarium.broker.config.profile import PULSAR_5_0, PULSAR_5_0_M1
from pulsarium.broker.model.scalable.auto_scale import Times
from pulsarium.broker.model.scalable.controller import Controller, Operation
from pulsarium.broker.model.subscription.skip import skip_all
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.scalable.silent import Silent
from tests.broker.wire import Bed, Earliest, plain, serving

NAME = TopicName.parse("topic://public/default/t")
DAY = 86_400

pytestmark = pytest.mark.usefixtures("autojump_clock")


def led(bed: Bed, segments: int = 1) -> Controller:
    cluster = bed.broker.cluster
    return cluster.controllers.lead(cluster.scalable.create(NAME, segments), bed.broker)


def join(controller: Controller, *names: str, ordered: bool = True) -> None:
    for name in names:
        controller.registrations.join("s", name, Silent(), 1, ordered=ordered)


def sizes(controller: Controller) -> list[int]:
    return [each.id for each in controller.topic.layout.active()]


async def traffic(controller: Controller, messages: int, seconds: int) -> None:
    """Spread so many messages a second evenly over the active segments, at times between the measurements."""
    await trio.sleep(5)
    for _ in range(seconds // 10):
        active = controller.topic.layout.active()
        for each in active:
            segment = controller.topic.loaded_segment(each)
            assert segment is not None
            segment.messages_in += messages * 10 // len(active)
        await trio.sleep(10)


@pytest.fixture
async def m1() -> AsyncIterator[Bed]:
    async with serving(profile=PULSAR_5_0_M1) as bed:
        yield bed


@pytest.fixture
async def released() -> AsyncIterator[Bed]:
    async with serving(profile=PULSAR_5_0) as bed:
        yield bed


async def test_m1_gives_each_consumer_a_segment_and_waits_for_the_cool_down(m1: Bed) -> None:
    controller = led(m1)
    join(controller, "c1", "c2", "c3")
    await trio.sleep(1)
    assert sizes(controller) == [1, 2]
    assert controller.last is not None
    assert (controller.last.kind, controller.last.trigger, controller.last.segments) == (
        "split",
        "consumer-count",
        (0,),
    )
    await trio.sleep(58)
    assert sizes(controller) == [1, 2]
    await trio.sleep(2)
    assert sizes(controller) == [3, 4, 2]


async def test_consumers_of_5_0_1_get_buckets_while_there_is_little_traffic(released: Bed) -> None:
    controller = led(released)
    join(controller, *(f"c{number}" for number in range(4)))
    await trio.sleep(1)
    assert sizes(controller) == [0]
    join(controller, "c4")
    await trio.sleep(1)
    assert [each.buckets for each in controller.topic.layout.active()] == [8]
    assert controller.last is not None
    assert controller.last.kind == "rebucket"


async def test_a_split_by_hand_begins_the_cool_down_too(m1: Bed) -> None:
    controller = led(m1)
    controller.topic.split(0)
    await trio.sleep(30)
    assert controller.last == Operation("split", "manual", (0,), controller.last.at_ms if controller.last else 0)
    join(controller, "c1", "c2", "c3")
    await trio.sleep(29)
    assert sizes(controller) == [1, 2]
    await trio.sleep(2)
    assert len(sizes(controller)) == 3


@pytest.mark.parametrize("kind", ["split", "merge", "rebucket"])
async def test_the_next_controller_knows_when_the_segments_were_changed(released: Bed, kind: str) -> None:
    controller = led(released, 2)
    topic, controllers = controller.topic, released.broker.cluster.controllers
    {"split": lambda: topic.split(0), "merge": lambda: topic.merge(0, 1), "rebucket": lambda: topic.rebucket(0, 8)}[
        kind
    ]()
    await trio.sleep(30)
    times = controller.times
    controllers.release(topic)
    assert controllers.lead(topic, released.broker).times == times == Times(**{kind: getattr(times, kind)}) != Times()


async def test_a_day_of_traffic_splits_in_the_morning_and_merges_at_night(released: Bed) -> None:
    controller = led(released)
    await traffic(controller, 60_000, DAY // 4)
    assert len(sizes(controller)) == 6
    await traffic(controller, 12_000, DAY // 4)
    assert len(sizes(controller)) == 6
    await trio.sleep(DAY // 2)
    assert len(sizes(controller)) == 1
    assert controller.last is not None
    assert controller.last.kind == "merge"


@pytest.mark.parametrize("profile", [PULSAR_5_0_M1, PULSAR_5_0], ids=["m1", "5.0"])
async def test_a_policy_of_the_topic_switches_auto_scale_off(profile: Profile) -> None:
    async with serving(profile=profile) as bed:
        controller = led(bed)
        controller.topic.set_policy({"enabled": False})
        join(controller, *(f"c{number}" for number in range(9)))
        await trio.sleep(DAY)
        assert sizes(controller) == [0]


async def test_sealed_segments_go_once_everybody_has_drained_them(m1: Bed) -> None:
    controller = led(m1)
    topic = controller.topic
    topic.set_policy({"enabled": False})
    join(controller, "c1")
    topic.split(0)
    await trio.sleep(DAY // 24)
    assert 0 in topic.layout.segments  # c1 has no cursor in segment 0
    controller.registrations.leave("s", "c1")
    await trio.sleep(61)
    assert sorted(topic.layout.segments) == [1, 2]
    assert topic.layout.epoch == 2
    assert all(each.parents == () for each in topic.layout.active())


@pytest.mark.serving(Config(scalableTopicAutoScaleEnabled=False))
async def test_a_legacy_segment_stays_while_a_subscription_of_older_clients_has_a_backlog(bed: Bed) -> None:
    legacy, cluster = "persistent://public/default/t", bed.broker.cluster
    wire = await bed.connect()
    await wire.subscribe(topic=legacy, name="older", initialPosition=Earliest)
    await wire.producer(legacy)
    await wire.publish(plain(b"m"))
    topic = cluster.scalable.migrate(TopicName.parse(legacy), force=True)
    cluster.controllers.lead(topic, bed.broker)
    await trio.sleep(DAY)
    assert 0 in topic.layout.segments
    skip_all(cluster.topics.find_persistent(TopicName.parse(legacy)).subscriptions["older"])
    await trio.sleep(61)
    assert 0 not in topic.layout.segments


async def test_retention_keeps_sealed_segments(m1: Bed) -> None:
    controller = led(m1)
    retention = {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1}
    m1.broker.metadata.namespaces["public/default"]["retention_policies"] = retention
    m1.broker.topics._policies.clear()
    controller.topic.split(0)
    await trio.sleep(59 * 60)
    assert 0 in controller.topic.layout.segments
    await trio.sleep(3 * 60)
    assert 0 not in controller.topic.layout.segments


async def test_a_deleted_topic_has_no_controller_and_a_new_one_begins_afresh(m1: Bed) -> None:
    controller = led(m1)
    join(controller, "c1", "c2")
    m1.broker.cluster.scalable.delete(NAME, force=True)
    await trio.sleep(DAY)
    again = led(m1)
    assert again is not controller
    assert again.registrations.counts() == {}
    assert sizes(again) == [0]


async def test_registrations_survive_a_restart(tmp_path: Any) -> None:
    async with serving(Config(), data=tmp_path) as bed:
        controller = led(bed, 2)
        join(controller, "c1")
        controller.registrations.create("made", "QUEUE")
    async with serving(Config(), data=tmp_path) as bed:
        cluster = bed.broker.cluster
        topic = cluster.scalable.find(NAME)
        assert topic is not None
        assert topic.subscriptions == ["made", "s"]
        controller = cluster.controllers.lead(topic, bed.broker)
        assert controller.registrations.counts() == {"s": 1}
        await trio.sleep(61)
        assert topic.subscriptions == ["made"]


async def test_loads_are_measured_at_the_interval_and_change_by_the_part_of_the_keys() -> None:
    config = Config(scalableTopicLoadReportIntervalSeconds=40, scalableTopicLoadReportRateChangeThreshold=0.5)
    async with serving(config) as bed:
        controller = led(bed)
        segment = controller.topic.loaded_segment(controller.topic.layout.segments[0])
        assert segment is not None
        rates = []
        await trio.sleep(45)
        for messages in (4000, 5600, 8000):  # 100, 140 and 200 messages a second
            segment.messages_in += messages
            await trio.sleep(40)
            rates.append(controller.meter.loads[0].rates[0])
        assert rates == [100, 100, 200]


@pytest.mark.serving(Config(scalableTopicAutoScaleIntervalSeconds=500))
async def test_auto_scale_looks_at_the_interval_of_the_key(bed: Bed) -> None:
    controller = led(bed)
    await trio.sleep(5)
    segment = controller.topic.loaded_segment(controller.topic.layout.segments[0])
    assert segment is not None
    segment.messages_in += 10_000_000
    await trio.sleep(480)
    assert sizes(controller) == [0]
    segment.messages_in += 10_000_000
    await trio.sleep(20)
    assert sizes(controller) == [1, 2]
