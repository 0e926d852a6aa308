"""Random changes of layouts: the active segments always tile the hash space, and no id is used twice."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.scalable.layout import HASHES, Layout, LayoutError, Segment, equal_splits

NOW = 1_000
Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["split", "merge", "rebucket", "prune"]), st.integers(0, 30), st.integers(1, 8)),
    max_size=20,
)


def changed(layout: Layout, step: Step) -> Layout:
    """Return the layout after a step, or the same one when the step does not fit."""
    kind, index, number = step
    active = layout.active()
    segment = active[index % len(active)]
    try:
        if kind == "split":
            return layout.split(segment.id, now_ms=NOW)
        if kind == "merge":
            return layout.merge(segment.id, active[(index + 1) % len(active)].id, now_ms=NOW)
        if kind == "rebucket":
            return layout.rebucket(segment.id, number, now_ms=NOW)
        return layout.prune([each.id for each in layout.segments.values() if not each.active][:number])
    except LayoutError:
        return layout


def ranges(segments: Iterable[Segment]) -> list[tuple[int, int]]:
    return [(each.start, each.end) for each in segments]


@given(st.integers(1, 40), STEPS)
def test_active_segments_tile_the_hash_space_and_ids_are_never_used_again(count: int, steps: list[Step]) -> None:
    layout = Layout.initial(count, now_ms=NOW, buckets=4)
    seen = set(layout.segments)
    for step in steps:
        after = changed(layout, step)
        added = after.segments.keys() - layout.segments.keys()
        assert not added & seen
        assert all(each >= layout.next_id for each in added)
        assert after is layout or after.epoch == layout.epoch + 1
        seen |= added
        layout = after
        starts, ends = zip(*ranges(layout.active()), strict=True)
        assert (starts[0], ends[-1]) == (0, HASHES - 1)
        assert [end + 1 for end in ends[:-1]] == list(starts[1:])
        known = layout.segments.keys()
        assert all({*each.parents, *each.children} <= known for each in layout.segments.values())


@given(st.integers(1, 40), STEPS)
def test_a_layout_survives_its_record(count: int, steps: list[Step]) -> None:
    layout = Layout.initial(count, now_ms=NOW)
    for step in steps:
        layout = changed(layout, step)
    assert Layout.read(json.loads(json.dumps(layout.record()))) == layout


@given(st.integers(0, HASHES - 2), STEPS)
def test_a_merge_undoes_a_split(index: int, steps: list[Step]) -> None:
    layout = Layout.initial(3, now_ms=NOW)
    for step in steps:
        layout = changed(layout, step)
    before = ranges(layout.active())
    wide = [each for each in layout.active() if each.start < each.end]
    split = layout.split(wide[index % len(wide)].id, now_ms=NOW)
    assert ranges(split.merge(split.next_id - 1, split.next_id - 2, now_ms=NOW).active()) == before


def test_the_last_segment_takes_the_rest_of_the_hash_space() -> None:
    assert ranges(Layout.initial(3, now_ms=NOW).active()) == [(0, 21844), (21845, 43689), (43690, 65535)]


def test_a_split_seals_the_parent_and_makes_both_halves_its_children() -> None:
    layout = Layout.initial(1, now_ms=NOW, buckets=4).split(0, now_ms=NOW + 1)
    parent, low, high = (layout.segments[each] for each in range(3))
    assert (parent.children, parent.sealed_epoch, parent.sealed_ms) == ((1, 2), 1, NOW + 1)
    assert ranges([low, high]) == [(0, 0x7FFF), (0x8000, 0xFFFF)]
    assert {low.splits, high.splits} == {equal_splits(2)}
    assert {low.parents, high.parents} == {(0,)}


def test_the_parents_of_a_merge_stand_in_the_order_of_the_call() -> None:
    assert Layout.initial(2, now_ms=NOW).merge(1, 0, now_ms=NOW).segments[2].parents == (1, 0)


@pytest.mark.parametrize(("buckets", "with_buckets", "merged"), [(1, True, 2), (4, True, 8), (1, False, 1)])
def test_a_merge_adds_the_buckets_of_both_parents(buckets: int, with_buckets: bool, merged: int) -> None:
    layout = Layout.initial(2, now_ms=NOW, buckets=buckets).merge(0, 1, now_ms=NOW, with_buckets=with_buckets)
    assert layout.segments[2].buckets == merged


def test_a_migrated_topic_has_each_partition_as_a_parent_of_each_segment() -> None:
    layout = Layout.migrated(["persistent://a/b/c-partition-0", "persistent://a/b/c-partition-1"], now_ms=NOW)
    assert [(each.id, each.parents, each.children, each.active) for each in layout.segments.values()] == [
        (0, (), (2, 3), False),
        (1, (), (2, 3), False),
        (2, (0, 1), (), True),
        (3, (0, 1), (), True),
    ]
    assert layout.next_id == 4


def test_pruning_removes_edges() -> None:
    layout = Layout.initial(1, now_ms=NOW).split(0, now_ms=NOW).prune([0])
    assert [each.parents for each in layout.segments.values()] == [(), ()]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda layout: layout.split(0, now_ms=NOW), "Cannot split non-active segment: 0"),
        (lambda layout: layout.split(99, now_ms=NOW), "Segment not found: 99"),
        (lambda layout: layout.merge(1, 99, now_ms=NOW), "Segment not found"),
        (lambda layout: layout.merge(0, 1, now_ms=NOW), "Both segments must be active"),
        (lambda layout: layout.merge(1, 1, now_ms=NOW), "Segments are not adjacent: [0000, 7fff] and [0000, 7fff]"),
        (lambda layout: layout.rebucket(0, 2, now_ms=NOW), "Cannot rebucket non-active segment: 0"),
        (lambda layout: layout.rebucket(1, 0, now_ms=NOW), "bucketCount must be in [1, 1024]: 0"),
        (lambda layout: layout.rebucket(1, 1, now_ms=NOW), "Segment 1 already has the requested entry-bucket splits"),
        (lambda layout: layout.prune([1]), "Cannot prune active segment: 1"),
    ],
)
def test_a_change_that_does_not_fit_is_refused_in_pulsars_words(change: object, text: str) -> None:
    layout = Layout.initial(1, now_ms=NOW).split(0, now_ms=NOW)
    with pytest.raises(LayoutError) as refused:
        change(layout)  # type: ignore[operator]
    assert refused.value.text == text


def test_a_range_of_one_hash_cannot_be_split() -> None:
    layout = Layout.initial(HASHES, now_ms=NOW)
    with pytest.raises(LayoutError, match="Cannot split range of size 1"):
        layout.split(7, now_ms=NOW)
