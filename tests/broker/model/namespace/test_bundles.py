"""Bundles of the hash space."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.namespace.bundles import bundle_of, even_boundaries, ranges
from pulsarium.proto.topic_name import TopicName


@pytest.mark.parametrize(
    ("bundles", "boundaries"),
    [
        (1, ["0x00000000", "0xffffffff"]),
        (3, ["0x00000000", "0x55555555", "0xaaaaaaaa", "0xffffffff"]),
        (4, ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]),
    ],
)
def test_even_boundaries(bundles: int, boundaries: list[str]) -> None:
    assert even_boundaries(bundles) == boundaries


# Where a real broker says that these topics are.
@pytest.mark.parametrize(
    ("topic", "bundle"),
    [
        ("persistent://public/default/t", "0x80000000_0xc0000000"),
        ("persistent://t1/data/single", "0x80000000_0xc0000000"),
        ("persistent://t1/data/nothere", "0xc0000000_0xffffffff"),
        ("non-persistent://t1/data/np", "0x00000000_0x40000000"),
        ("persistent://t1/data/part-partition-2", "0x00000000_0x40000000"),
        ("persistent://t1/data/part", "0x80000000_0xc0000000"),
    ],
)
def test_topics_are_where_pulsar_has_them(topic: str, bundle: str) -> None:
    assert bundle_of(even_boundaries(4), TopicName.parse(topic)) == bundle


@given(st.integers(1, 100), st.text(min_size=1).filter(lambda text: "/" not in text and text.strip()))
def test_every_topic_has_one_bundle(bundles: int, name: str) -> None:
    boundaries = even_boundaries(bundles)
    topic = TopicName("persistent", "t", "n", name.encode("utf-8", "replace").decode())
    assert bundle_of(boundaries, topic) in ranges(boundaries)
    assert len(ranges(boundaries)) == bundles
