"""Offsets of a checkpoint, and the splits that follow from them."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.pipeline.source.offsets import TopicOffset, TopicRange, decode, encode, splits, subscription_of
from pulsarium.pipeline.source.places import FIRST, ReadPosition

positions = st.builds(ReadPosition, st.integers(0, 5), st.integers(0, 5), st.integers(0, 3))
offsets = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.builds(
        TopicOffset,
        positions,
        st.lists(positions, max_size=4).map(tuple),
        begin=st.none(),
        opened=st.sampled_from(["", "2026-11-30T12:00:00.123Z"]),
    ),
)


@given(offsets)
def test_json_and_back(kept: dict[str, TopicOffset]) -> None:
    assert decode(json.loads(json.dumps(encode(kept, "s")))) == kept


def test_equal_offsets_are_equal_texts() -> None:
    one, other = TopicOffset(ReadPosition(1, 2)), TopicOffset(ReadPosition(3, 4), (ReadPosition(3, 1),))
    assert json.dumps(encode({"a": one, "b": other}, "s")) == json.dumps(encode({"b": other, "a": one}, "s"))


@given(offsets, offsets)
def test_splits_cover_the_range_once(start: dict[str, TopicOffset], end: dict[str, TopicOffset]) -> None:
    end = {topic: TopicOffset(one.next, tuple(sorted(one.cuts))) for topic, one in end.items()}
    found = splits(encode(start, "s"), encode(end, "s"))
    for topic, until in end.items():
        at = start[topic].next if topic in start else FIRST
        own = [split for split in found if split.topic == topic]
        if at >= until.next:
            assert own == []
            continue
        assert own[0].start == at
        assert own[-1].end == until.next
        assert all(one.end == other.start for one, other in pairwise(own))
        assert all(split.start < split.end for split in own)
        assert {split.start for split in own[1:]} == {cut for cut in until.cuts if at < cut < until.next}


def test_nothing_between_equal_offsets() -> None:
    kept = encode({"a": TopicOffset(ReadPosition(1, 2), (ReadPosition(1, 1),))}, "s")
    assert splits(kept, kept) == []


def test_a_new_topic_begins_at_its_first_message() -> None:
    [split] = splits({}, encode({"a": TopicOffset(ReadPosition(1, 2))}, "s"))
    assert split == TopicRange("a", FIRST, ReadPosition(1, 2))


@pytest.mark.parametrize("kept", [{"a": {}}, {"a": {"next": "1:2"}}, {"a": {"next": "x", "cuts": ""}}, {"a": 3}])
def test_another_sources_checkpoint(kept: dict[str, dict[str, str]]) -> None:
    with pytest.raises(ValueError, match="not"):
        decode(kept)


def test_offsets_without_a_subscription_are_of_another_source() -> None:
    with pytest.raises(ValueError, match="the checkpoint is of another source"):
        subscription_of({"a": {"next": "1:2", "cuts": ""}})
