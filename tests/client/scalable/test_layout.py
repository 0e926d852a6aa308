"""Tests of layouts: which segment has a key, and which layouts cannot be right."""

from __future__ import annotations

import pytest

from pulsarium.client.scalable.layout import BrokenLayout, Hashing, Layout
from pulsarium.client.topics import MOST_TOPICS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.scalable.layouts import MERGED, ONE, SPLIT, TOPIC, dag, layout, segment, segment_name

FOUR = dag(0, *(segment(index, index * 0x4000, index * 0x4000 + 0x3FFF) for index in range(4)))


@pytest.mark.parametrize(
    ("key", "m1", "new", "legacy"),
    [
        ("", 0, 0, 0),
        ("a", 1, 0, 2),
        ("key", 1, 3, 2),
        ("k0", 1, 0, 1),
        ("k3", 2, 1, 0),
        ("key0", 3, 3, 0),
        ("key59", 3, 2, 2),
        ("äöü", 1, 0, 0),
        ("你好", 2, 0, 1),
        ("00000000-0000-0000-0000-000000000000", 3, 0, 0),
    ],
)
def test_a_key_has_the_segment_that_pulsars_client_chooses(key: str, m1: int, new: int, legacy: int) -> None:
    """The expected segments are those of Murmur3_32Hash of the Java client 5.0.0-M1."""
    three = dag(0, *(segment(n, n * 21845, 21844 + n * 21845 + n // 2, legacy=f"t-partition-{n}") for n in range(3)))
    assert layout(FOUR, Hashing.LOW_BITS).segment_of(key).id == m1
    assert layout(FOUR, Hashing.HIGH_BITS).segment_of(key).id == new
    assert layout(three).segment_of(key).id == legacy


def test_the_version_of_the_broker_decides_the_hash() -> None:
    assert Hashing.of_broker("Pulsar Server5.0.0-M1") is Hashing.LOW_BITS
    assert Hashing.of_broker("Pulsar Server5.0.1") is Hashing.HIGH_BITS


def test_segments_have_their_own_topics_and_legacy_ones_those_of_before() -> None:
    old = layout(dag(0, segment(0, 0, 0xFFFF, legacy="persistent://public/default/t-partition-0")))
    assert layout(SPLIT).segments[2].topic == segment_name("8000-ffff-2")
    assert old.segments[0].topic == "persistent://public/default/t-partition-0"
    assert old.is_legacy
    assert not layout(ONE).is_legacy


def test_a_segment_knows_all_segments_before_and_after_it() -> None:
    found = layout(MERGED)
    assert found.ancestors(3) == {0, 1, 2}
    assert found.descendants(0) == {1, 2, 3}
    assert [one.id for one in found.active] == [3]


def test_a_circle_of_parents_has_an_end() -> None:
    found = layout(dag(0, segment(0, 0, 0xFFFF, parents=[1]), segment(1, 0, 5, sealed=True, parents=[0])))
    assert found.ancestors(0) == {1}


def test_a_key_has_the_entry_bucket_of_the_low_bits_of_its_hash() -> None:
    found = layout(dag(0, segment(0, 0, 0xFFFF, splits=[0x4000, 0x8000, 0xC000])))
    assert [found.segments[0].bucket_of(key) for key in ("key1", "key10", "a", "k3", "key0")] == [0, 1, 1, 2, 3]


@pytest.mark.parametrize(
    "segments",
    [
        [],
        [segment(0, 0, 0x7FFF)],
        [segment(0, 1, 0xFFFF)],
        [segment(0, 0, 0x8000), segment(1, 0x8000, 0xFFFF)],
        [segment(0, 0, 0x7FFE), segment(1, 0x8000, 0xFFFF)],
        [segment(0, 0, 0xFFFF), segment(1, 0, 0xFFFF)],
        [segment(0, 0, 0xFFFF), segment(0, 0, 0xFFFF, sealed=True)],
        [segment(0, 0, 0x10000)],
        [segment(0, 0, 0xFFFF), segment(1, 9, 8, sealed=True)],
        [segment(0, 0, 0xFFFF, sealed=True)],
        [segment(0, 0, 0xFFFF, splits=[5, 5])],
        [segment(0, 0, 0xFFFF, splits=[0])],
        [segment(0, 0, 0xFFFF, splits=[0x10000])],
    ],
)
def test_a_layout_that_does_not_cover_each_hash_once_is_broken(segments: list[pb.SegmentInfoProto]) -> None:
    with pytest.raises(BrokenLayout):
        layout(dag(0, *segments))


def test_a_layout_of_endless_segments_is_broken() -> None:
    many = dag(0)
    many.segments.extend(segment(0, 0, 0, sealed=True) for _ in range(MOST_TOPICS + 1))
    with pytest.raises(BrokenLayout, match="at most"):
        Layout.read(TOPIC, many, Hashing.HIGH_BITS)
