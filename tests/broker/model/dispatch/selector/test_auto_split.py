"""Key_Shared with auto-split: a new consumer takes half of the widest range."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.broker.model.dispatch.selector import AutoSplit
from pulsarium.broker.model.errors import ConsumerAssignError
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.dispatch.selector.recordings import consumer, owners

END = 65536  # the end of the last range in stats


def split_of(*names: str) -> tuple[AutoSplit, list[Consumer]]:
    made, members = AutoSplit(), [consumer(name) for name in names]
    for member in members:
        made.add(member)
    return made, members


@pytest.mark.req("B-07")
def test_the_newcomer_gets_the_lower_half_of_the_first_widest() -> None:
    made, (a, b, c, d, e) = split_of("a", "b", "c", "d", "e")
    assert made.ranges() == {
        e: [(0, 8192)],
        c: [(8193, 16384)],
        b: [(16385, 32768)],
        d: [(32769, 49152)],
        a: [(49153, END)],
    }


def test_the_next_range_takes_over_from_who_leaves() -> None:
    made, (a, b, c) = split_of("a", "b", "c")
    made.remove(b)
    assert made.ranges() == {c: [(0, 16384)], a: [(16385, END)]}


def test_the_range_before_takes_over_the_end() -> None:
    made, (a, b, c) = split_of("a", "b", "c")
    made.remove(a)
    assert made.ranges() == {c: [(0, 16384)], b: [(16385, END)]}
    made.remove(b)
    assert made.ranges() == {c: [(0, END)]}


def test_auto_split_without_consumers_selects_nobody() -> None:
    made, (only,) = split_of("a")
    assert made.select(1) is made.select(END - 1) is only
    made.remove(only)
    made.remove(only)
    assert made.select(1) is None
    assert made.ranges() == {}


@pytest.mark.req("B-08")
def test_auto_split_hashes_begin_at_0() -> None:
    made, _ = split_of("a")
    assert made.hash_of_key(b"key-0") == 63679
    assert made.hash_of_key(b"") == 1


def test_auto_split_refuses_more_consumers_than_hashes() -> None:
    made = AutoSplit()
    made.size = 4
    for name in "abcd":
        made.add(consumer(name))
    with pytest.raises(ConsumerAssignError) as refused:
        made.add(consumer("e"))
    assert refused.value.text == "No more range can assigned to new consumer, assigned consumers 4"
    assert refused.value.code == pb.ConsumerAssignError
    assert len(made.ranges()) == 4


@settings(max_examples=15, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=30))
def test_every_hash_has_one_owner_with_auto_split(program: list[int | None]) -> None:
    """A step of None adds a consumer, and a number removes the consumer at this index."""
    made, members = AutoSplit(), list[Consumer]()
    for step in program:
        if step is None:
            members.append(consumer("a"))
            made.add(members[-1])
        elif members:
            made.remove(members.pop(step % len(members)))
        ranges = made.ranges()
        assert set(ranges) == set(members)
        for member, ((start, end),) in ranges.items():
            assert made.select(max(start, 1)) is made.select(min(end, END - 1)) is member
        assert all(len(each) == 1 for each in ranges.values())
    told = owners(made, 0, END - 1)
    assert told == [made.select(point) for point in range(END)]
    assert not members or None not in told
