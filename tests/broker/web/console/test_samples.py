"""Samples over time: of a topic, of a subscription, and of the whole cluster."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from pulsarium.broker.lab import Lab
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.web.console.samples import MOST_ENTRIES, STEPS, Ring, Samples, _packing
from pulsarium.proto.topic_name import TopicName
from tests.broker.auth.secured import bearer, by_token
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Wire, plain

SAMPLES = "/pulsarium/samples"
OF_TOPIC = f"{SAMPLES}?topic={TOPIC}"
RATES = ("in", "out", "bytesIn", "bytesOut", "redelivered")
GAUGES = ("backlog", "unacked", "storage")


async def later(seconds: float = 2) -> None:
    """Let the clock of the test pass by, so that the current second has its frame."""
    await trio.sleep(seconds)


async def test_messages_are_in_the_frame_of_their_second(rest: Rest, sender: Wire) -> None:
    await sender.subscribe(type=Shared)
    await sender.publish(*[plain(b"x")] * 3)
    await later()
    value = await rest.get(OF_TOPIC)
    assert (sum(value["in"]), sum(value["bytesIn"])) == (3, 3 * len(plain(b"x")))
    assert (value["backlog"][-1], value["storage"][-1]) == (3, 3 * len(plain(b"x")))


async def test_each_second_has_a_value_also_without_a_move(rest: Rest, sender: Wire) -> None:
    await sender.subscribe(type=Shared)
    await sender.publish(plain(b"x"))
    await later(9)
    value = await rest.get(OF_TOPIC)
    times = value["times"]
    assert len(times) >= 8
    assert {after - before for before, after in itertools.pairwise(times)} == {value["stepMs"]} == {1000}
    assert (value["startMs"], value["endMs"]) == (times[0], times[-1])
    assert all(len(value[name]) == len(times) for name in (*RATES, *GAUGES))
    assert (value["in"][-5:], value["backlog"][-5:]) == ([0.0] * 5, [1] * 5)


async def test_a_subscription_has_what_it_was_sent_and_what_it_owes(rest: Rest, sender: Wire) -> None:
    await sender.subscribe(type=Shared, initialPosition=Earliest)
    await sender.subscribe(name="other", type=Shared, consumer_id=1, initialPosition=Earliest)
    first, second = await sender.publish(plain(b"1"), plain(b"2"))
    await sender.flow()
    await sender.messages(2)
    await sender.redeliver([second])
    await sender.message()
    await sender.ack(first)
    await later()
    value = await rest.get(f"{OF_TOPIC}&subscription=sub")
    assert [sum(value[name]) for name in ("in", "out", "redelivered")] == [2, 3, 1]
    assert [value[name][-1] for name in ("backlog", "unacked")] == [1, 1]
    other = await rest.get(f"{OF_TOPIC}&subscription=other")
    assert (sum(other["in"]), sum(other["out"]), other["backlog"][-1]) == (2, 0, 2)


async def test_a_partitioned_topic_has_the_sum_of_its_partitions(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 3)
    for index in range(3):
        await wire.producer(f"persistent://public/default/p-partition-{index}", index)
        await wire.publish(*[plain(b"x")] * (index + 1), producer_id=index)
    await later()
    value = await rest.get(f"{SAMPLES}?topic=persistent://public/default/p")
    assert (sum(value["in"]), value["storage"][-1]) == (6, 6 * len(plain(b"x")))


async def test_the_cluster_has_the_sum_of_all_topics(rest: Rest, wire: Wire) -> None:
    for number, name in enumerate(("one", "two", "non-persistent://public/default/three")):
        await wire.producer(name, number)
        await wire.subscribe(name, consumer_id=number)
        await wire.publish(plain(b"x"), producer_id=number)
    await later()
    value = await rest.get(SAMPLES)
    assert (sum(value["in"]), value["backlog"][-1]) == (3, 2)
    await rest.done("DELETE", f"{TOPICS}/one?force=true")
    await later()
    value = await rest.get(SAMPLES)
    assert (sum(value["in"]), value["backlog"][-1]) == (3, 1)


async def test_frames_of_ten_seconds_last_longer(rest: Rest, bed: Bed) -> None:
    for _ in range(4):
        wire = await bed.connect()
        await wire.producer()
        await wire.publish(plain(b"x"))
        await later(10)
    value = await rest.get(f"{OF_TOPIC}&step=10")
    assert value["stepMs"] == 10_000
    assert sum(value["in"]) == pytest.approx(0.4)
    await later(STEPS[1] + 1)
    assert sum((await rest.get(OF_TOPIC))["in"]) == 0
    assert sum((await rest.get(f"{OF_TOPIC}&step=10"))["in"]) == pytest.approx(0.4)


async def test_a_page_asks_only_for_what_it_does_not_have(rest: Rest, sender: Wire) -> None:
    await sender.publish(plain(b"x"))
    await later(5)
    before = await rest.get(OF_TOPIC)
    await sender.publish(plain(b"y"), plain(b"z"))
    await later(3)
    after = await rest.get(f"{OF_TOPIC}&after={before['endMs']}")
    assert after["times"][0] == before["endMs"] + 1000
    assert sum(after["in"]) == 2
    assert sum((await rest.get(OF_TOPIC))["in"]) == 3
    assert (await rest.get(f"{OF_TOPIC}&after={after['endMs']}"))["times"] == []


async def test_the_counters_of_a_topic_go_on_when_it_is_loaded_again(rest: Rest, sender: Wire, bed: Bed) -> None:
    await sender.publish(*[plain(b"x")] * 5)
    await later()
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    again = await bed.connect()
    await again.producer()
    await again.publish(plain(b"y"))
    await later()
    value = await rest.get(OF_TOPIC)
    assert sum(value["in"]) == 6
    assert min(value["in"]) == 0
    assert value["storage"][-1] == 6 * len(plain(b"x"))


async def test_a_topic_of_the_name_of_a_deleted_one_begins_anew(rest: Rest, sender: Wire) -> None:
    await sender.subscribe(type=Shared)
    await sender.publish(*[plain(b"x")] * 5)
    await later()
    await rest.done("DELETE", f"{TOPICS}/t?force=true")
    await later()
    value = await rest.get(f"{OF_TOPIC}&subscription=sub")
    assert (value["backlog"][-1], value["storage"][-1]) == (0, 0)
    await rest.done("PUT", f"{TOPICS}/t")
    await later()
    value = await rest.get(OF_TOPIC)
    assert (sum(value["in"]), value["backlog"][-1], value["storage"][-1]) == (5, 0, 0)


async def test_a_subscription_of_the_name_of_a_deleted_one_begins_anew(rest: Rest, sender: Wire, bed: Bed) -> None:
    await sender.subscribe(type=Shared)
    await sender.publish(*[plain(b"x")] * 5)
    await later()
    bed.topic().unsubscribe("sub")
    await later()
    assert (await rest.get(f"{OF_TOPIC}&subscription=sub"))["backlog"][-1] == 0
    assert (await rest.get(OF_TOPIC))["backlog"][-1] == 0


async def test_a_broker_at_rest_has_no_timer_for_samples(rest: Rest, sender: Wire, bed: Bed) -> None:
    machine = bed.broker.clock.machine
    await sender.publish(plain(b"x"))
    assert machine.next_in() <= 1
    await later(5)
    assert machine.next_in() == math.inf


async def test_without_a_site_nothing_is_kept(sender: Wire, bed: Bed) -> None:
    await sender.publish(plain(b"x"))
    assert bed.broker.cluster.moves.take() == ([], [])
    assert bed.broker.clock.machine.next_in() == math.inf


async def test_a_site_that_stops_leaves_no_timer(rest: Rest, sender: Wire, bed: Bed) -> None:
    await sender.publish(plain(b"x"))
    rest.site.stop()
    assert bed.broker.clock.machine.next_in() == math.inf
    assert bed.broker.cluster.moves.take() == ([], [])


async def test_what_was_there_before_the_site_is_no_move(sender: Wire, bed: Bed) -> None:
    await sender.subscribe(type=Shared)
    await sender.publish(*[plain(b"x")] * 5)
    rest = Rest(bed.broker)
    await sender.publish(plain(b"y"))
    await later()
    for value in (await rest.get(OF_TOPIC), await rest.get(SAMPLES)):
        assert (sum(value["in"]), value["backlog"][-1]) == (1, 6)


async def test_a_week_of_the_lab_leaves_no_more_than_the_ring_holds(rest: Rest, sender: Wire, bed: Bed) -> None:
    await sender.publish(plain(b"x"))
    await later()
    await bed.broker.cluster.attached(Lab).clock.advance(7 * 86_400)
    await sender.publish(plain(b"y"))
    await later()
    value = await rest.get(OF_TOPIC)
    assert (len(value["times"]), sum(value["in"])) == (STEPS[1], 1)
    assert value["endMs"] > bed.broker.clock.now_ms() - 3000


async def test_a_clock_that_goes_back_begins_a_new_history(rest: Rest, sender: Wire, bed: Bed) -> None:
    clock = bed.broker.cluster.attached(Lab).clock
    await clock.advance(3600)
    await sender.publish(plain(b"x"))
    await later()
    clock.reset()
    await sender.publish(plain(b"y"))
    await later()
    value = await rest.get(OF_TOPIC)
    assert sum(value["in"]) == 1
    assert value["endMs"] <= bed.broker.clock.now_ms()


async def test_a_clock_that_stands_still_shows_what_moved_meanwhile(rest: Rest, sender: Wire, bed: Bed) -> None:
    bed.broker.cluster.attached(Lab).clock.freeze()
    await sender.publish(plain(b"x"))
    await later()
    await sender.publish(plain(b"y"))
    await later()
    assert (await rest.get(OF_TOPIC))["in"][-1] == 2


async def test_a_move_while_samples_are_taken_is_in_the_next_frame(
    rest: Rest, sender: Wire, bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, read, moves = bed.topic(), Samples._read, [1]

    def moving(samples: Samples, read_topic: Topic) -> Iterator[None]:
        yield from read(samples, read_topic)
        if moves:
            moves.pop()
            topic.messages_in += 1
            topic.note_move()

    monkeypatch.setattr(Samples, "_read", moving)
    await sender.publish(plain(b"x"))
    await later(3)
    assert not topic.moved
    assert sum((await rest.get(OF_TOPIC))["in"]) == 2


async def test_a_frame_of_very_many_topics_spans_some_seconds_which_share_it(
    rest: Rest, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsarium.broker.web.console.samples.READS", 2)
    for number in range(8):
        await wire.producer(f"t{number}", number)
    await later(2)
    for number in range(8):
        await wire.publish(*[plain(b"x")] * 10, producer_id=number)
    await later(8)
    value = await rest.get(SAMPLES)
    assert [count for count in value["in"] if count] == [16.0] * 5
    value = await rest.get(f"{SAMPLES}?topic=t3")
    assert [count for count in value["in"] if count] == [2.0] * 5
    (row,) = (await rest.get("/pulsarium/topics?filter=t3"))["topics"]
    assert [count for count in row["trend"] if count] == [2.0] * 5


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("step=5", "step is 5; it must be one of 1, 10 seconds"),
        ("after=yesterday", "after is 'yesterday'; it must be a number, 0 or more"),
        ("subscription=s", "subscription: name its topic too"),
    ],
)
async def test_a_wrong_query_is_refused(rest: Rest, query: str, reason: str) -> None:
    assert await rest.refused("GET", f"{SAMPLES}?{query}") == (400, reason)


async def test_an_invalid_topic_has_no_samples(rest: Rest) -> None:
    assert (await rest.call("GET", f"{SAMPLES}?topic=a/b/c/d/e")).status == 412


@pytest.mark.serving(by_token(authorizationEnabled=True, superUserRoles=("admin",)))
async def test_samples_need_the_rights_of_their_page(rest: Rest) -> None:
    await rest.call("PUT", f"{TOPICS}/t", **bearer("admin"))
    await rest.call("POST", "/admin/v2/namespaces/public/default/permissions/user", ["consume"], **bearer("admin"))
    statuses = {
        (role, url): (await rest.call("GET", url, **bearer(role))).status
        for role in ("admin", "user", "nobody")
        for url in (SAMPLES, OF_TOPIC)
    }
    assert [each for each, status in statuses.items() if status == 200] == [
        ("admin", SAMPLES),
        ("admin", OF_TOPIC),
        ("user", OF_TOPIC),
    ]


def frame_of(*keys: int) -> dict[Any, bytes | None]:
    return {f"topic {key}": _packing.pack(key, *[0] * 8) for key in keys}


def test_the_oldest_frames_go_when_a_ring_is_full() -> None:
    ring = Ring(most=100, most_entries=10, since=0)
    for slot in range(8):
        ring.add(slot, frame_of(slot, slot + 1, slot + 2))
    assert (ring.entries, [slot for slot, _, _ in ring.frames], ring.since) == (9, [5, 6, 7], 5)
    assert ring.base.keys() == frame_of(*range(7)).keys()


def test_a_frame_that_is_too_old_goes_to_the_base() -> None:
    ring = Ring(most=10, most_entries=100, since=0)
    ring.add(1, frame_of(1))
    ring.add(2, {"topic 1": None})
    ring.add(11, frame_of(2))
    assert ([slot for slot, _, _ in ring.frames], ring.base) == ([2, 11], frame_of(1))
    ring.add(12, frame_of(3))
    assert ring.base == {}


def test_all_frames_together_take_less_than_100_mb() -> None:
    count = 10_000
    frame = {f"topic {key}": _packing.pack(*range(key, key + 9)) for key in range(count)}
    a_copy = sys.getsizeof(frame)  # the keys are those of the topics
    entry = (a_copy + sum(map(sys.getsizeof, frame.values()))) / count
    assert entry * MOST_ENTRIES < 100e6
