"""Assignment of segments to consumers: both algorithms, and segments that must wait for their parents."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.scalable.assignment import (
    Share,
    assignable,
    bucket_ranges,
    in_order,
    round_robin,
    shared,
    undrained,
)
from pulsarium.broker.model.scalable.auto_scale import merges_before
from pulsarium.broker.model.scalable.layout import NEVER, Layout, Segment, equal_splits


def segment(
    number: int,
    start: int = 0,
    end: int = 0xFFFF,
    *,
    sealed: bool = False,
    parents: tuple[int, ...] = (),
    buckets: int = 1,
) -> Segment:
    return Segment(
        id=number,
        start=start,
        end=end,
        parents=parents,
        sealed_epoch=1 if sealed else NEVER,
        created_ms=0,
        splits=equal_splits(buckets),
    )


NAMES = st.sets(st.text(min_size=1, max_size=3), max_size=12)
SEGMENTS = st.lists(st.integers(1, 6), max_size=8).map(
    lambda counts: [segment(n, n * 16, n * 16 + 15, buckets=count) for n, count in enumerate(counts)]
)


@given(SEGMENTS, NAMES)
def test_round_robin_gives_each_segment_to_one_consumer_and_is_even(segments: list[Segment], names: set[str]) -> None:
    shares = round_robin(segments, names)
    assert shares.keys() == names
    given_out = [share.segment_id for each in shares.values() for share in each]
    assert sorted(given_out) == ([each.id for each in segments] if names else [])
    sizes = [len(each) for each in shares.values()]
    assert not sizes or max(sizes) - min(sizes) <= 1


@given(SEGMENTS, NAMES)
def test_consumers_share_a_segment_only_when_there_are_too_few_and_never_beyond_its_buckets(
    segments: list[Segment], names: set[str]
) -> None:
    shares = shared(segments, names)
    owners = Counter(share.segment_id for each in shares.values() for share in each)
    assert shares.keys() == names
    if not names:
        return
    assert all(1 <= owners[each.id] <= each.buckets for each in segments)
    if len(names) <= len(segments):
        assert shares == round_robin(segments, names)
    else:
        busy = [name for name, each in shares.items() if each]
        assert all(len(shares[name]) == 1 for name in busy)
        assert len(busy) == min(len(names), sum(each.buckets for each in segments))
        for each in shares.values():
            for share in each:
                whole = bucket_ranges(segments[share.segment_id].splits)
                assert share.buckets == (whole if owners[share.segment_id] > 1 else ())


@given(SEGMENTS, NAMES)
def test_an_assignment_does_not_depend_on_the_order_in_which_consumers_joined(
    segments: list[Segment], names: set[str]
) -> None:
    assert shared(segments, sorted(names, reverse=True)) == shared(segments, sorted(names))


def test_surplus_consumers_are_dealt_over_the_segments_in_rounds() -> None:
    segments = [segment(0, buckets=4), segment(1, buckets=2), segment(2)]
    shares = shared(segments, [f"c{index}" for index in range(6)])
    assert [[share.segment_id for share in each] for each in shares.values()] == [[0], [0], [0], [1], [1], [2]]
    assert shares["c5"] == [Share(2)]
    assert shares["c4"] == [Share(1, ((0, 0x7FFF), (0x8000, 0xFFFF)))]


def test_bucket_ranges_tile_the_hashes() -> None:
    assert bucket_ranges(equal_splits(4)) == ((0, 0x3FFF), (0x4000, 0x7FFF), (0x8000, 0xBFFF), (0xC000, 0xFFFF))
    assert bucket_ranges(()) == ((0, 0xFFFF),)


# Segment 0 is split into 1 and 2, and segment 1 is split into 3 and 4.
FAMILY = {
    0: segment(0, sealed=True),
    1: segment(1, 0, 0x7FFF, sealed=True, parents=(0,)),
    2: segment(2, 0x8000, 0xFFFF, parents=(0,)),
    3: segment(3, 0, 0x3FFF, parents=(1,)),
    4: segment(4, 0x4000, 0x7FFF, parents=(1,)),
}


def ids(drained: set[int], *, ordered: bool = True, ancestors: bool) -> list[int]:
    return [each.id for each in assignable(FAMILY, drained, ordered=ordered, ancestors=ancestors)]


def test_m1_holds_back_active_children_of_undrained_parents_and_keeps_sealed_segments() -> None:
    assert ids(set(), ancestors=False) == [1, 0]
    assert ids({0}, ancestors=False) == [1, 0, 2]
    assert ids({1}, ancestors=False) == [3, 1, 0, 4]
    assert ids({0, 1}, ancestors=False) == [3, 1, 0, 4, 2]


def test_5_0_1_waits_for_all_ancestors_and_takes_drained_segments_away() -> None:
    assert ids(set(), ancestors=True) == [0]
    assert ids({1}, ancestors=True) == [0]
    assert ids({0}, ancestors=True) == [1, 2]
    assert ids({0, 1}, ancestors=True) == [3, 4, 2]


def test_checkpoint_consumers_have_all_segments_at_once() -> None:
    everything = [each.id for each in in_order(FAMILY.values())]
    assert ids(set(), ordered=False, ancestors=False) == ids(set(), ordered=False, ancestors=True) == everything


def test_a_pruned_parent_holds_nothing_back() -> None:
    left = {each.id: each for each in FAMILY.values() if each.id != 0}
    assert [each.id for each in assignable(left, set(), ordered=True, ancestors=True)] == [1, 2]
    assert undrained(left, {1}) == []
    assert undrained(left, set()) == [1]


def test_a_layout_of_many_splits_and_merges_is_assigned_without_following_each_path() -> None:
    layout = Layout.initial(1, now_ms=0, buckets=1)
    for _ in range(50):  # the segments then have 2 ** 50 paths
        (only,) = layout.active()
        layout = layout.split(only.id, now_ms=0)
        layout = layout.merge(*(each.id for each in layout.active()), now_ms=0)
    (last,) = layout.active()
    sealed = set(layout.segments) - {last.id}
    assert assignable(layout.segments, sealed, ordered=True, ancestors=True) == [last]
    assert last not in assignable(layout.segments, sealed - {0}, ordered=True, ancestors=True)
    assert merges_before(layout, last) == 50
