"""The default hash ring, compared with the stats and deliveries of a real broker.

Choice of the selector of a Key_Shared subscription.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.broker.model.dispatch.selector import AutoSplit, ConsistentHashRing, key_of, selector_for
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.subscription.options import KeySharedOptions
from tests.broker.model.dispatch.selector.recordings import consumer, deliveries, lines, owners

LAST = 65535


def ring_of(*names: str, points: int = 100) -> tuple[ConsistentHashRing, list[Consumer]]:
    made, members = ConsistentHashRing(points), [consumer(name) for name in names]
    for member in members:
        made.add(member)
    return made, members


def recorded_ranges(number: int) -> list[dict[str, list[tuple[int, int]]]]:
    """Return keyHashRangeArrays by consumerName, for each stats call of a transcript that has them."""
    found = []
    for line in lines(number):
        body = line.get("body") if "rest" in line else None
        consumers = body["consumers"] if isinstance(body, dict) else body
        if consumers and isinstance(consumers[0], dict):
            found.append({each["consumerName"]: [(s, e) for s, e in each["keyHashRangeArrays"]] for each in consumers})
    return found


@pytest.mark.req("B-07")
@pytest.mark.parametrize("number", [69, 122])
@pytest.mark.parametrize("order", ["c0 c1 c2", "c2 c0 c1"])
def test_the_ring_has_the_recorded_ranges(number: int, order: str) -> None:
    (shown,) = recorded_ranges(number)
    assert sum(len(ranges) for ranges in shown.values()) == 213
    made, _ = ring_of(*order.split())
    assert {member.name: ranges for member, ranges in made.ranges().items()} == shown


@pytest.mark.req("B-07", "B-08", "B-09")
def test_the_ring_selects_as_in_the_recorded_deliveries() -> None:
    """Transcript 069 has messages with all kinds of keys, and without a key."""
    made, members = ring_of("c0", "c1", "c2")
    came = list(deliveries(69))
    assert len(came) == 25
    for metadata, connection, _ in came:
        assert made.select(made.hash_of_key(key_of(metadata))) is members["ABC".index(connection)]


@pytest.mark.req("B-07")
def test_the_ring_tells_consumers_of_one_name_apart() -> None:
    """Transcript 122 shows that the second consumer of a name has points of its own."""
    made, members = ring_of("x", "x")
    came = list(deliveries(122))
    assert [connection for _, connection, _ in came].count("B") == 2
    for metadata, connection, _ in came:
        assert made.select(made.hash_of_key(key_of(metadata))) is members["AB".index(connection)]


@pytest.mark.req("B-07")
def test_the_recorded_keys_move_to_who_joins() -> None:
    """Transcript 070 shows that two of six keys move to the consumer that joins, at the hashes that drain."""
    made, (c0,) = ring_of("c0")
    assert made.select(23426) is c0
    c1 = consumer("c1")
    made.add(c1)
    keys = {f"key-{number}": made.hash_of_key(f"key-{number}".encode()) for number in range(6)}
    assert {point for point in keys.values() if made.select(point) is c1} == {23426, 55278}
    made.remove(c1)
    assert {made.select(point) for point in keys.values()} == {c0}


def test_a_ring_without_consumers_selects_nobody() -> None:
    made = ConsistentHashRing(100)
    assert made.select(1) is None
    assert made.ranges() == {}
    made.remove(consumer("a"))


@pytest.mark.req("B-07")
def test_one_consumer_owns_the_whole_ring() -> None:
    made, (only,) = ring_of("a")
    assert made.ranges() == {only: [(1, LAST)]}
    assert made.select(1) is made.select(LAST) is only


@pytest.mark.req("B-07")
def test_the_name_index_of_one_that_left_is_given_again() -> None:
    made, (first, second) = ring_of("x", "x")
    before = made.ranges()
    made.remove(first)
    again = consumer("x")
    made.add(again)
    assert made.ranges() == {again: before[first], second: before[second]}


@pytest.mark.req("B-07")
def test_of_two_at_one_point_the_first_has_it() -> None:
    """The ring has so many points that some hundreds of them belong to two consumers."""
    made, (a, b, c) = ring_of("a", "b", "c", points=5_000)
    alone, _ = ring_of("a", points=5_000)
    assert all(made.select(point) is a for point in alone._ends)
    made.remove(a)
    assert all(made.select(point) is b for point in ring_of("b", points=5_000)[0]._ends)
    made.remove(c)
    assert made.ranges() == {b: [(1, LAST)]}
    made.add(a)
    assert all(made.select(point) is b for point in ring_of("b", points=5_000)[0]._ends)
    assert any(made.select(point) is a for point in alone._ends)


names = st.lists(st.sampled_from(["a", "b", "c0", "c1", "c2", "x", ""]), min_size=1, max_size=12)


@settings(max_examples=15, deadline=None)
@given(names, st.sampled_from([1, 3, 100]))
def test_every_hash_has_the_owner_that_ranges_say(members: list[str], points: int) -> None:
    made, _ = ring_of(*members, points=points)
    told = owners(made, 1, LAST)
    assert None not in told
    assert told == [made.select(point) for point in range(1, LAST + 1)]
    for ranges in made.ranges().values():
        assert ranges == sorted(ranges)
        assert all(one[1] + 1 < other[0] for one, other in pairwise(ranges))


@settings(max_examples=40, deadline=None)
@given(names, st.sampled_from(["a", "c0", "x", "new"]), st.sampled_from([1, 3, 100, 400]))
def test_adding_and_removing_a_consumer_restores_the_ring(members: list[str], newcomer: str, points: int) -> None:
    made, _ = ring_of(*members, points=points)
    before = made.ranges()
    guest = consumer(newcomer)
    made.add(guest)
    made.remove(guest)
    assert made.ranges() == before
    assert guest not in made._name_index


@settings(max_examples=40, deadline=None)
@given(names, st.data())
def test_a_consumer_that_joins_or_leaves_moves_only_its_own_hashes(members: list[str], data: st.DataObject) -> None:
    made, present = ring_of(*members)
    probes = range(1, LAST + 1, 97)
    before = {point: made.select(point) for point in probes}
    leaver = data.draw(st.sampled_from(present))
    made.remove(leaver)
    for point, owner in before.items():
        now = made.select(point)
        assert now is not leaver
        assert owner is leaver or now is owner


def test_a_broker_may_halve_ranges_where_others_have_a_ring() -> None:
    assert isinstance(selector_for(KeySharedOptions(), Config()), ConsistentHashRing)
    halving = Config(subscriptionKeySharedUseConsistentHashing=False)
    assert isinstance(selector_for(KeySharedOptions(), halving), AutoSplit)


def test_a_broker_says_how_many_points_a_consumer_has_on_the_ring() -> None:
    chosen = selector_for(KeySharedOptions(), Config(subscriptionKeySharedConsistentHashingReplicaPoints=7))
    assert isinstance(chosen, ConsistentHashRing)
    assert chosen._points == 7
