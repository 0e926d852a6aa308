"""Namespaces with clocks of their own: two namespaces of one broker, each with a topic."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.clock import NamespaceClock
from pulsarium.broker.lab.namespaces import create_namespace
from pulsarium.broker.lab.steering import ClockError
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import Bed, Shared, Wire, plain, serving

HOUR, DAY = 3600, 86_400
A, B = "public/a", "public/b"


def topic_in(namespace: str) -> str:
    return f"persistent://{namespace}/t"


class Stage:
    """A broker with two namespaces, and a connection for each."""

    def __init__(self, bed: Bed, lab: Lab, wires: dict[str, Wire]) -> None:
        self.bed, self.lab, self.wires = bed, lab, wires

    def clock(self, namespace: str) -> NamespaceClock:
        return self.lab.clock.of(namespace)

    def topic(self, namespace: str) -> PersistentTopic:
        return self.bed.broker.topics.find_persistent(TopicName.parse(topic_in(namespace)))

    async def publish(self, namespace: str, payload: bytes, *, after: float = 0.0) -> None:
        """Publish a message that is due in `after` seconds of the namespace's time."""
        now_ms = self.clock(namespace).now_ms()
        due: dict[str, Any] = {"deliver_at_time": now_ms + round(after * 1000)} if after else {}
        await self.wires[namespace].publish(plain(payload, publish_time=now_ms, **due))

    async def silent(self, namespace: str) -> None:
        await self.wires[namespace].alive()
        assert not self.wires[namespace].inbox


@asynccontextmanager
async def stage(policies: dict[str, object] | None = None, **config: Any) -> AsyncIterator[Stage]:
    async with serving(Config(**config)) as bed:
        lab, wires = bed.broker.cluster.attached(Lab), {}
        for namespace in (A, B):
            create_namespace(bed.broker.cluster, namespace, policies or {})
            wire = wires[namespace] = await bed.connect()
            await wire.producer(topic=topic_in(namespace))
            await wire.subscribe(topic=topic_in(namespace), type=Shared)
            await wire.flow()
        yield Stage(bed, lab, wires)


async def test_two_namespaces_freeze_and_advance_without_each_other() -> None:
    async with stage() as s:
        for namespace in (A, B):
            await s.publish(namespace, b"week", after=7 * DAY)
        s.clock(A).freeze()
        frozen = s.clock(A).now_ms()
        await s.clock(A).advance(7 * DAY)
        assert await s.wires[A].payloads(1) == [b"week"]
        await s.silent(B)
        assert (s.clock(A).frozen, s.clock(B).frozen, s.lab.clock.frozen) == (True, False, False)
        assert s.clock(A).now_ms() - frozen == 7 * DAY * 1000
        assert (s.clock(B).offset_ms, s.lab.clock.offset_ms) == (0, 0)
        assert s.lab.clock.namespaces == [A]
        await s.clock(B).advance(7 * DAY + 1)
        assert await s.wires[B].payloads(1) == [b"week"]
        assert s.lab.clock.namespaces == [A, B]


async def test_a_timer_that_waits_already_goes_along_when_its_namespace_gets_its_own_time() -> None:
    async with stage() as s:
        await s.publish(A, b"hour", after=HOUR)
        await s.lab.clock.advance(HOUR - 600)
        await s.clock(A).advance(540)
        await s.silent(A)
        await s.lab.clock.advance(DAY)
        await s.silent(A)
        assert s.clock(A).next_in == pytest.approx(30, abs=30)  # a busy machine spends some of the last minute
        await s.clock(A).run_next()
        await s.clock(A).advance(1)
        assert await s.wires[A].payloads(1) == [b"hour"]


async def test_reading_a_clock_gives_no_namespace_its_own_time() -> None:
    async with stage() as s:
        clock = s.clock(A)
        earliest = s.lab.clock.now_ms()
        assert earliest <= clock.now_ms() <= s.lab.clock.now_ms()
        assert (clock.frozen, clock.is_own) == (False, False)
        await s.lab.clock.advance(DAY)
        s.lab.clock.freeze()
        assert (clock.now_ms(), clock.frozen) == (s.lab.clock.now_ms(), True)
        greatest = s.lab.clock.offset_ms  # it falls while the machine's time passes
        assert greatest >= clock.offset_ms >= s.lab.clock.offset_ms
        assert s.lab.clock.namespaces == []


async def test_a_namespaces_own_time_goes_on_from_the_brokers() -> None:
    async with stage() as s:
        await s.lab.clock.advance(DAY)
        s.lab.clock.freeze()
        await s.clock(A).advance(HOUR)
        assert s.clock(A).frozen
        assert s.clock(A).now_ms() == s.lab.clock.now_ms() + HOUR * 1000
        s.clock(A).resume()
        assert (s.clock(A).frozen, s.lab.clock.frozen) == (False, True)


async def test_steering_or_resetting_the_brokers_clock_moves_no_namespace_with_its_own_time() -> None:
    async with stage() as s:
        s.clock(A).freeze()
        before = s.clock(A).now_ms()
        await s.lab.clock.advance(DAY)
        s.lab.clock.reset()
        assert (s.clock(A).now_ms(), s.clock(A).frozen, s.lab.clock.offset_ms) == (before, True, 0)


async def test_a_reset_namespace_follows_the_brokers_clock_again_and_its_timers_keep_the_time_that_they_have_left() -> (
    None
):
    async with stage() as s:
        await s.clock(A).advance(DAY)
        await s.publish(A, b"hour", after=HOUR)
        s.clock(A).freeze()
        s.clock(A).reset()
        assert (s.clock(A).is_own, s.clock(A).frozen, s.clock(A).offset_ms) == (False, False, 0)
        assert s.topic(A).stores.clock.monotonic() >= DAY  # the monotonic clock never goes back
        await s.lab.clock.advance(DAY + HOUR + 2)  # the message is due by the wall clock
        assert await s.wires[A].payloads(1) == [b"hour"]
        assert s.lab.clock.namespaces == []


async def test_checks_of_a_namespace_run_by_its_own_time() -> None:
    async with stage(policies={"message_ttl_in_seconds": HOUR}) as s:
        for namespace in (A, B):
            await s.wires[namespace].subscribe(topic=topic_in(namespace), name="ttl", consumer_id=9)
            await s.publish(namespace, b"old")

        def expired(namespace: str) -> int:
            return s.topic(namespace).subscriptions["ttl"].expired.total

        await s.clock(A).advance(HOUR + 301)
        assert (expired(A), expired(B)) == (1, 0)
        s.clock(B).freeze()
        await s.lab.clock.advance(DAY)
        assert expired(B) == 0
        s.clock(B).reset()
        await s.lab.clock.advance(301)
        assert expired(B) == 1


async def test_an_unused_topic_is_deleted_by_its_namespaces_time() -> None:
    async with stage() as s:
        names = {namespace: TopicName.parse(f"persistent://{namespace}/unused") for namespace in (A, B)}
        for name in names.values():
            s.bed.broker.topics.create(name)
        await s.clock(A).advance(HOUR)
        assert {namespace: s.bed.broker.topics.exists(name) for namespace, name in names.items()} == {A: False, B: True}


async def test_two_namespaces_advance_at_the_same_time() -> None:
    async with stage() as s:
        for namespace in (A, B):
            for hours in range(1, 6):
                await s.publish(namespace, b"%d" % hours, after=hours * HOUR)
        async with trio.open_nursery() as nursery:
            for namespace, hours in ((A, 3), (B, 5)):
                nursery.start_soon(s.clock(namespace).advance, hours * HOUR + 1)
        assert await s.wires[A].payloads(3) == [b"1", b"2", b"3"]
        assert await s.wires[B].payloads(5) == [b"1", b"2", b"3", b"4", b"5"]
        await s.silent(A)


async def test_an_advance_of_the_brokers_clock_takes_no_namespace_along_that_gets_its_own_time_meanwhile() -> None:
    async with stage() as s:
        s.bed.broker.clock.call_later(HOUR, lambda: s.clock(A).resume())
        await s.lab.clock.advance(DAY)
        assert not s.clock(A).frozen
        assert s.clock(A).offset_ms == pytest.approx(HOUR * 1000, abs=5000)


async def test_an_idle_namespace_goes_to_its_next_timer_by_itself() -> None:
    async with stage() as s:
        await s.publish(B, b"other", after=DAY)
        s.clock(A).auto_advance = True
        await s.publish(A, b"week", after=7 * DAY)
        assert await s.wires[A].payloads(1) == [b"week"]
        await s.silent(B)
        s.clock(A).reset()
        assert not s.clock(A).auto_advance


async def test_deleting_a_namespace_removes_its_clock_and_a_new_one_of_the_name_has_the_brokers_time() -> None:
    async with stage() as s:
        old = s.clock(A)
        await old.advance(DAY)
        s.bed.broker.cluster.delete_namespace(A)
        assert s.lab.clock.namespaces == []
        with pytest.raises(ClockError, match="public/a does not exist"):
            s.clock(A)
        create_namespace(s.bed.broker.cluster, A, {})
        assert (s.clock(A).offset_ms, s.clock(A).is_own) == (0, False)
        with pytest.raises(ClockError, match="public/a was deleted"):
            old.freeze()


@pytest.mark.parametrize("end", ["reset", "delete"])
async def test_an_advance_ends_with_the_namespaces_own_time(end: str) -> None:
    async with stage() as s:
        clock = s.clock(A)

        def over() -> None:
            if end == "reset":
                clock.reset()
            else:
                s.bed.broker.cluster.delete_namespace(A)

        s.bed.broker.clock.of(A).call_later(HOUR, over)
        await clock.advance(DAY)
        assert (clock.is_own, s.lab.clock.offset_ms, s.lab.clock.frozen, s.bed.broker.clock.frozen) == (
            False,
            0,
            False,
            False,
        )


@pytest.mark.parametrize("how", ["reset", "restore"])
async def test_another_state_ends_each_namespaces_own_time(tmp_path: Path, how: str) -> None:
    async with stage() as s:
        await s.lab.state.snapshot(tmp_path / "snapshot")
        await s.clock(A).advance(DAY)
        if how == "reset":
            await s.lab.state.reset(lab=False)
        else:
            await s.lab.state.restore(tmp_path / "snapshot")
            assert s.clock(A).offset_ms == 0
        assert s.lab.clock.namespaces == []


async def test_topics_of_a_namespace_have_its_time_on_every_broker() -> None:
    async with serving(brokers=2) as bed:
        lab, cluster = bed.broker.cluster.attached(Lab), bed.broker.cluster
        names = [TopicName.parse(f"persistent://public/default/t{index}") for index in range(8)]
        for name in names:
            cluster.topics.create(name)
        await lab.clock.of("public/default").advance(30)
        ahead = {round((cluster.topics.find(name).now_ms() - lab.clock.now_ms()) / 1000) for name in names}
        assert ahead == {30}
