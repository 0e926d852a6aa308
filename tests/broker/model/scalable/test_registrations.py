"""Registered consumers of a scalable topic: joining, leaving, reconnecting, and the order of draining."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from pulsarium.broker.clock import Time, Timeline
from pulsarium.broker.model.scalable.layout import Layout, Segment
from pulsarium.broker.model.scalable.registrations import (
    Assignment,
    InvalidRegistrationError,
    Registrations,
    Rules,
)
from pulsarium.broker.storage.interface import Done
from pulsarium.proto.topic_name import TopicName

NAME = TopicName.parse("topic://public/default/t")
M1 = Rules(grace=3, as_m1=True, faults=True)
RELEASED = Rules(grace=3, faults=True)
BETTER = Rules(grace=3)


class Keeper:
    """A turn that commits at once."""

    def after_commit(self, done: Done) -> None:
        done(None)


class Topic:
    """A topic whose drained segments the test chooses."""

    name = NAME

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.drained: set[int] = set()
        self.made: dict[str, str] = {}
        self.registered: dict[str, list[str]] = {}
        self.saved: tuple[dict[str, str], dict[str, list[str]]] = ({}, {})

    def save(self) -> None:
        self.saved = {**self.made}, {**self.registered}

    def is_drained(self, segment: Segment, subscription: str) -> bool:
        return segment.id in self.drained


class Client:
    """A connection that appends its assignments to a list that all clients share."""

    def __init__(self, name: str, told: list[tuple[str, list[int]]]) -> None:
        self.name, self._told = name, told

    def assigned(self, consumer_id: int, assignment: Assignment) -> None:
        self._told.append((self.name, [each.segment.id for each in assignment.placed]))


class Bench:
    """A topic, its registrations and a clock that the test moves."""

    def __init__(self, segments: int, rules: Rules) -> None:
        self.clock = Timeline(Time(trio.current_time, 0.0, trio.current_time, 0.0), lambda: None, lambda: None)
        self.clock.freeze()
        self.keeper = Keeper()
        self.topic = Topic(Layout.initial(segments, now_ms=0, buckets=1 if rules.as_m1 else 4))
        self._told: list[tuple[str, list[int]]] = []
        self.rules = rules
        self.registrations = self.restarted()

    def restarted(self) -> Registrations:
        self.topic.made, self.topic.registered = self.topic.saved
        return Registrations(self.topic, self.clock, self.keeper, self.rules)

    def join(self, name: str, *, ordered: bool = True, subscription: str = "s", client: Client | None = None) -> Client:
        client = client or Client(name, self._told)
        self.registrations.join(subscription, name, client, 1, ordered=ordered)
        return client

    def drop(self, client: Client, name: str = "") -> None:
        self.registrations.disconnected("s", name or client.name, client)

    def change(self, layout: Layout) -> None:
        self.topic.layout = layout
        self.registrations.layout_changed()

    def split(self, segment: int) -> None:
        self.change(self.topic.layout.split(segment, now_ms=0))

    def after(self, seconds: float) -> None:
        """Advance the clock, and fire each timer at its time."""
        until = self.clock.monotonic() + seconds
        while (step := self.clock.next_in()) <= until - self.clock.monotonic():
            self.clock.jump(step)
            self.clock.fire_due()
        self.clock.jump(until - self.clock.monotonic())

    @property
    def told(self) -> list[tuple[str, list[int]]]:
        """Return the assignments that clients received since the last call."""
        told = self._told[:]
        self._told.clear()
        return told


Make = Callable[..., Bench]


@pytest.fixture
async def bench() -> Make:
    def make(segments: int = 1, rules: Rules = M1) -> Bench:
        return Bench(segments, rules)

    return make


async def test_everybody_is_told_when_a_consumer_joins(bench: Make) -> None:
    four = bench(4)
    four.join("c2")
    assert four.told == [("c2", [0, 1, 2, 3])]
    four.join("c1")
    assert four.told == [("c2", [1, 3]), ("c1", [0, 2])]
    for name in ("c3", "c4", "c5"):
        four.told.clear()
        four.join(name)
    assert four.told[-5:] == [("c2", [1]), ("c1", [0]), ("c3", [2]), ("c4", [3]), ("c5", [])]


async def test_a_consumer_that_is_back_in_time_has_its_segments_and_nobody_else_is_told(bench: Make) -> None:
    two = bench(2)
    first = two.join("c1")
    two.join("c2")
    two.told.clear()
    two.drop(first)
    two.after(2.9)
    assert two.told == [("c1", [0, 1]), ("c1", [0]), ("c2", [1])][3:]
    two.join("c1")
    assert two.told == [("c1", [0])]
    two.after(10)
    assert two.told == []


async def test_the_others_share_the_segments_of_a_consumer_whose_grace_period_is_over(bench: Make) -> None:
    two = bench(2)
    first = two.join("c1")
    two.join("c2")
    assert len(two.told) == 3
    two.drop(first)
    two.after(3)
    assert two.told == [("c2", [0, 1])]
    assert two.registrations.counts() == {"s": 1}


async def test_the_last_registration_takes_its_subscription_with_it_unless_rest_made_the_subscription(
    bench: Make,
) -> None:
    one = bench()
    one.registrations.create("made", "STREAM")
    for subscription in ("s", "made"):
        one.join("c1", subscription=subscription)
        one.registrations.leave(subscription, "c1")
    assert one.topic.saved == ({"made": "STREAM"}, {})


async def test_a_subscription_keeps_the_type_that_it_was_made_with(bench: Make) -> None:
    one = bench()
    one.registrations.create("a", "STREAM")
    one.registrations.create("a", "QUEUE")
    assert one.topic.saved == ({"a": "STREAM"}, {})


async def test_a_deleted_subscription_tells_its_consumers_nothing(bench: Make) -> None:
    one = bench()
    client = one.join("c1")
    one.told.clear()
    one.registrations.delete("s")
    one.drop(client)
    one.split(0)
    one.after(100)
    assert one.told == [("c1", [0])][1:]
    assert one.topic.saved == ({}, {})


@pytest.mark.parametrize(("rules", "left"), [(M1, 0), (RELEASED, 0), (BETTER, 1)])
async def test_a_second_connection_takes_over_and_pulsar_forgets_it_with_the_first(
    bench: Make, rules: Rules, left: int
) -> None:
    two = bench(2, rules)
    first = two.join("c1")
    two.join("c1")
    two.drop(first)
    two.after(3)
    assert two.registrations.counts().get("s", 0) == left


async def test_a_restarted_broker_waits_for_its_consumers_as_long_as_for_others(bench: Make) -> None:
    two = bench(2)
    two.join("c1")
    two.join("c2")
    assert len(two.told) == 3
    two.registrations.close()
    two.after(100)
    two.registrations = two.restarted()
    two.join("c2")
    assert two.told == [("c2", [1])]
    two.after(3)
    assert two.told == [("c2", [0, 1])]


async def test_consumers_of_a_controller_that_moved_must_register_again(bench: Make) -> None:
    two = bench(2)
    two.join("c1")
    two.join("c2")
    assert len(two.told) == 3
    two.registrations.moved()
    two.join("c1")
    assert two.told == [("c1", [0])]
    two.after(3)
    assert two.told == [("c1", [0, 1])]


# draining


async def test_children_come_two_seconds_after_a_split_whose_parent_is_drained(bench: Make) -> None:
    one = bench()
    one.join("c1")
    one.split(0)
    assert one.told == [("c1", [0]), ("c1", [0])]
    one.topic.drained = {0}
    one.after(1.9)
    assert one.told == []
    one.after(0.1)
    assert one.told == [("c1", [1, 0, 2])]


async def test_looks_for_drained_segments_become_rare_and_progress_makes_them_frequent_again(bench: Make) -> None:
    two = bench(2)
    two.join("c1")
    two.change(two.topic.layout.split(0, now_ms=0).split(1, now_ms=0))
    looks: list[float] = []
    begin = two.clock.monotonic()

    def is_drained(segment: Segment, subscription: str) -> bool:
        if segment.id == 1:  # the other segment is checked at the same times
            looks.append(round(two.clock.monotonic() - begin))
        return segment.id in two.topic.drained

    two.topic.is_drained = is_drained  # type: ignore[method-assign]
    two.after(2000)
    assert looks == [2, 6, 14, 30, 62, 126, 254, 510, 1022, 1922]
    two.topic.drained = {0}
    two.after(830)
    assert looks[10:] == [2822, 2824, 2828]


async def test_a_missing_parent_waits_for_ever_and_then_for_one_look(bench: Make) -> None:
    two = bench(1)
    two.join("c1")
    two.join("c2")
    two.split(0)
    two.after(5)
    assert two.told[-2:] == [("c1", [0]), ("c2", [])]
    two.topic.drained = {0}
    two.after(1)
    assert two.told == [("c1", [1, 2]), ("c2", [0])]


async def test_checkpoint_consumers_wait_for_nothing_until_a_stream_consumer_joins(bench: Make) -> None:
    one = bench()
    one.join("c1", ordered=False)
    one.split(0)
    assert one.told == [("c1", [0]), ("c1", [1, 0, 2])]
    one.join("c2")
    assert one.told == [("c1", [0]), ("c1", [0]), ("c2", [])]


async def test_drained_segments_leave_the_assignments_of_5_0_1(bench: Make) -> None:
    one = bench(1, RELEASED)
    one.join("c1")
    one.split(0)
    one.topic.drained = {0}
    one.after(2)
    assert one.told[-1] == ("c1", [1, 2])


async def test_surplus_consumers_share_the_buckets_of_5_0_1(bench: Make) -> None:
    one = bench(1, RELEASED)
    one.join("c1")
    one.join("c2")
    assignment = one.registrations.assignment("s", "c2")
    assert assignment.placed[0].buckets == ((0, 0x3FFF), (0x4000, 0x7FFF), (0x8000, 0xBFFF), (0xC000, 0xFFFF))


async def test_a_consumer_that_joins_or_comes_back_is_told_by_the_answer_alone(bench: Make) -> None:
    two = bench(2, RELEASED)
    two.join("c1")
    assert two.told == []
    second = two.join("c2")
    assert two.told == [("c1", [0])]
    two.drop(second)
    two.join("c2")
    assert two.told == []


async def test_a_subscription_that_had_a_checkpoint_consumer_shares_no_buckets(bench: Make) -> None:
    one = bench(1, RELEASED)
    one.join("c1", ordered=False)
    one.join("c2")
    assert one.registrations.assigned("s") == [("c1", True, [0]), ("c2", True, [])]
    assert one.registrations.is_of_checkpoints("s")


async def test_registrations_are_shown_in_the_order_of_names(bench: Make) -> None:
    two = bench(2, RELEASED)
    two.join("c2")
    two.join("c1")
    assert [name for name, _, _ in two.registrations.assigned("s")] == ["c1", "c2"]


async def test_all_descendants_of_a_segment_that_is_not_drained_are_blocked(bench: Make) -> None:
    one = bench(1, RELEASED)
    one.join("c1")
    one.split(0)
    one.split(1)
    assert one.registrations.blocked("s") == {1, 2, 3, 4}
    one.topic.drained = {0}
    one.after(2)
    assert one.registrations.blocked("s") == {3, 4}


async def test_nothing_is_blocked_for_checkpoint_consumers(bench: Make) -> None:
    one = bench(1, RELEASED)
    one.join("c1", ordered=False)
    one.join("c2")
    one.split(0)
    assert one.registrations.blocked("s") == set()


@pytest.mark.parametrize(("rules", "known"), [(M1, {}), (RELEASED, {"s": 0}), (BETTER, {})])
async def test_the_controller_of_5_0_1_remembers_a_subscription_that_its_consumers_left(
    bench: Make, rules: Rules, known: dict[str, int]
) -> None:
    one = bench(1, rules)
    one.join("c1")
    one.registrations.leave("s", "c1")
    assert one.registrations.counts() == known
    assert one.topic.saved == ({}, {})


async def test_a_consumer_needs_a_name(bench: Make) -> None:
    with pytest.raises(InvalidRegistrationError) as error:
        bench().join("")
    assert str(error.value) == "Path(/topics/public/default/t/subscriptions/s/consumers/) is invalid"
