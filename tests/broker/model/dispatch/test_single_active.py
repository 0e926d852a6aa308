"""Exclusive and Failover: the choice of the active consumer, its changes, and its messages."""

from __future__ import annotations

import json
from bisect import bisect_left
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.broker.model.dispatch.selector import hash_of
from pulsarium.broker.model.dispatch.single_active import RING_POINTS, SingleActiveDispatcher
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.conformance.recordings.releases import PULSAR_4
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.dispatch.sharing import reason
from tests.broker.steps import steps_of
from tests.broker.wire import TOPIC, Bed, Failover, Type, Wire, batch_of, plain, serving

VECTORS = PULSAR_4.folder / "139-failover-vectors.jsonl"
Exclusive = pb.CommandSubscribe.Exclusive


class Client:
    """A connection that remembers the changes of the active consumer."""

    def __init__(self) -> None:
        self.changes: list[bool] = []

    def active_consumer_change(self, consumer_id: int, is_active: bool) -> None:
        self.changes.append(is_active)


class Member:
    """A minimal consumer, with only the fields that the choice reads."""

    can_receive = True

    def __init__(self, name: str, priority_level: int = 0) -> None:
        self.name = name
        self.priority_level = priority_level
        self.consumer_id = 0
        self.client = Client()


class Subscribed:
    """A minimal subscription, with only the fields that the choice reads."""

    cursor = None
    failover_delay_ms = 0

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = SimpleNamespace(name=topic, stores=SimpleNamespace(config=Config()))
        self.failover_index = partition

    def activated(self) -> None: ...


def dispatcher(topic: str = TOPIC, partition: int = -1) -> SingleActiveDispatcher:
    return SingleActiveDispatcher(cast(Subscription, Subscribed(topic, partition)), Failover)


def chosen(made: SingleActiveDispatcher, members: list[Member]) -> str:
    for member in members:
        made.add_consumer(member)  # type: ignore[arg-type]
    assert made.active is not None
    return made.active.name


def recorded() -> list[tuple[str, list[str], str]]:
    """Return the topic, consumer names and activeConsumerName of each subscription in the transcript."""
    found = []
    for line in VECTORS.read_text().splitlines():
        noted: dict[str, Any] = json.loads(line)
        if "rest" in noted:
            topic = "persistent://" + noted["rest"].split("/persistent/")[1].removesuffix("/stats")
            found += [(topic, names, active) for active, names in noted["body"].values()]
    assert len(found) == 12
    return found


@pytest.mark.req("B-02")
@pytest.mark.parametrize(("topic", "names", "active"), recorded())
def test_the_choice_of_the_recorded_broker(topic: str, names: list[str], active: str) -> None:
    for order in (names, names[::-1]):
        assert chosen(dispatcher(topic), [Member(name) for name in order]) == active


@pytest.mark.req("B-02")
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(-1, 2)), min_size=1, max_size=6), st.integers(-1, 7))
def test_the_choice_is_of_the_first_priority_level(members: list[tuple[str, int]], partition: int) -> None:
    level = min(level for _, level in members)
    group = sorted(name for name, own in members if own == level)
    active = chosen(dispatcher(partition=partition), [Member(name, level) for name, level in members])
    if partition >= 0:
        assert active == group[partition % len(group)]
    else:
        assert active in group


def on_ring(members: list[Member]) -> Member:
    """Return the active consumer as Pulsar finds it: the owner of the next point of the lowest level's ring."""
    group = [member for member in members if member.priority_level == min(each.priority_level for each in members)]
    ring = {hash_of(f"{c.name}{j}"): c for c in sorted(group, key=lambda each: each.name) for j in range(RING_POINTS)}
    points = sorted(ring)
    return ring[points[bisect_left(points, hash_of(TOPIC)) % len(points)]]


@pytest.mark.req("B-02")
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 2)), min_size=1, max_size=9), st.randoms())
def test_the_choice_stays_that_of_the_ring_while_consumers_leave(all_: list[tuple[str, int]], random: Random) -> None:
    made, members = dispatcher(), [Member(name, level) for name, level in all_]
    chosen(made, members)
    while len(members) > 1:
        made.remove_consumer(members.pop(random.randrange(len(members))))  # type: ignore[arg-type]
        assert made.active is on_ring(members)  # type: ignore[comparison-overlap]


def test_failover_consumers_leave_without_a_step_for_each_other() -> None:
    made, members = dispatcher(), [Member(f"c{number}") for number in range(300)]
    made._tells = False
    chosen(made, members)
    assert steps_of(lambda: [made.remove_consumer(member) for member in members]) < 60 * len(members)  # type: ignore[func-returns-value, arg-type]


# commands that clients receive


async def change(wire: Wire, within: float = 10) -> bool:
    return bool((await wire.expect(Type.ACTIVE_CONSUMER_CHANGE, within)).is_active)


async def join(wire: Wire, name: str, priority_level: int, **fields: Any) -> None:
    await wire.write(
        wire.numbered(
            Type.SUBSCRIBE,
            topic=TOPIC,
            subscription="sub",
            subType=Failover,
            consumer_id=0,
            consumer_name=name,
            priority_level=priority_level,
            **fields,
        )
    )


@pytest.mark.req("B-03")
async def test_even_the_first_consumer_waits_a_second(bed: Bed, wire: Wire, sender: Wire) -> None:
    await join(wire, "a", 0)
    await wire.expect(Type.SUCCESS)
    await wire.flow()
    await sender.publish(plain(b"x"))
    assert reason(bed) is Reason.FAILOVER_DELAY
    await wire.quiet(0.99)
    assert await change(wire, 0.02)
    assert await wire.payloads(1) == [b"x"]


@pytest.mark.req("B-03")
async def test_a_standby_is_told_before_its_success(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    await join(wire, "a", 0)
    await join(other, "b", 1)
    assert not await change(other)
    await other.expect(Type.SUCCESS)
    await wire.expect(Type.SUCCESS)
    assert await change(wire)
    assert not await change(other)
    await other.ask(Type.CLOSE_CONSUMER, consumer_id=0)  # a standby that leaves does not change the active consumer
    await wire.quiet(2)


@pytest.mark.req("B-03", "B-18")
async def test_the_next_one_takes_over_with_what_was_not_acknowledged(bed: Bed, wire: Wire, sender: Wire) -> None:
    second, third = [await bed.connect() for _ in range(2)]
    for level, consumer in enumerate((wire, second, third)):
        await consumer.subscribe(type=Failover, priority_level=level)
        await consumer.flow()
    assert await change(wire)
    positions = await sender.publish(*[plain(b"%d" % i) for i in range(4)])
    await wire.messages(4)
    await wire.ack(positions[1])
    for consumer in (second, third):
        assert not await change(consumer)  # told on SUBSCRIBE
        assert not await change(consumer)  # told again when the first consumer became active
    await wire.aclose()
    await sender.publish(plain(b"4"))
    await second.quiet(0.9)
    assert await change(second, 0.2)
    assert not await change(third)
    messages = await second.messages(4)
    assert [message.payload for message in messages] == [b"0", b"2", b"3", b"4"]
    assert [message.redelivery_count for message in messages] == [0] * 4
    await third.quiet()


@pytest.mark.req("B-03")
async def test_a_consumer_of_higher_priority_takes_over_and_the_old_one_gets_no_more(
    bed: Bed, wire: Wire, sender: Wire
) -> None:
    better = await bed.connect()
    await wire.subscribe(type=Failover, priority_level=1)
    await wire.flow()
    assert await change(wire)
    await sender.publish(plain(b"0"))
    await wire.messages(1)
    await better.subscribe(type=Failover, priority_level=0)
    await better.flow()
    await sender.publish(plain(b"1"))
    await wire.quiet(0.9)
    assert await change(better)
    assert not await change(wire)
    assert await better.payloads(2) == [b"0", b"1"]
    await wire.quiet()


@pytest.mark.req("B-03")
async def test_changes_within_one_delay_are_told_once(bed: Bed, wire: Wire) -> None:
    others = [await bed.connect() for _ in range(2)]
    await wire.subscribe(type=Failover, priority_level=2)
    await wire.quiet(0.4)
    await others[0].subscribe(type=Failover, priority_level=1)
    await others[1].subscribe(type=Failover, priority_level=0)
    assert not await change(wire, 0.7)
    assert not await change(others[0])
    assert await change(others[1])
    for consumer in (wire, *others):
        await consumer.quiet(2)


@pytest.mark.req("B-03", "W-10")
@pytest.mark.parametrize("version", [11, 12])
async def test_only_clients_since_v12_are_told(bed: Bed, sender: Wire, version: int) -> None:
    old = await bed.connect(version)
    await old.subscribe(type=Failover)
    await old.flow()
    await sender.publish(plain(b"x"))
    if version >= 12:
        assert await change(old)
    assert await old.payloads(1) == [b"x"]


@pytest.mark.req("B-03")
@pytest.mark.parametrize("delay", [0, 5000])
async def test_the_failover_delay_is_configured(autojump_clock: object, delay: int) -> None:
    async with serving(Config(activeConsumerFailoverDelayTimeMillis=delay)) as bed:
        wire, other = await bed.connect(), await bed.connect()
        await wire.producer()
        await wire.publish(plain(b"x"))
        started = bed.broker.clock.monotonic()
        await wire.subscribe(type=Failover, initialPosition=pb.CommandSubscribe.Earliest)
        await wire.flow()
        await other.subscribe(type=Failover, priority_level=1)
        assert await change(wire)
        assert delay / 1000 <= bed.broker.clock.monotonic() - started < delay / 1000 + 0.1
        assert await wire.payloads(1) == [b"x"]
        assert not await change(other)


@pytest.mark.req("B-01")
async def test_exclusive_consumers_hear_of_no_change(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    await wire.quiet(2)
    await wire.subscribe(type=Exclusive, name="other", consumer_id=1)
    await wire.quiet(2)


@pytest.mark.req("B-01", "B-05")
async def test_order_and_permits_over_many_reads(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    seen: list[int] = []
    for number in range(0, 1000, 50):
        entries = [plain(b"%d" % i) if i % 7 else batch_of(b"%d" % i, b"y", b"z") for i in range(number, number + 50)]
        await sender.publish(*entries)
        await wire.flow(63)
        received = await wire.rest(0.01)
        seen += [r.command.message.message_id.entryId for r in received]
    await wire.flow(1000)
    seen += [r.command.message.message_id.entryId for r in await wire.rest(0.01)]
    assert seen == list(range(1000))


async def test_exclusive_says_why_nothing_more_is_delivered(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await sender.publish(plain(b"x"), plain(b"y"))
    assert reason(bed) is Reason.NO_PERMITS
    await wire.flow(1)
    await wire.messages(1)
    assert reason(bed) is Reason.NO_PERMITS
    await wire.flow(2)
    await wire.messages(1)
    assert reason(bed) is Reason.CAUGHT_UP
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    assert reason(bed) is Reason.NO_CONSUMER
