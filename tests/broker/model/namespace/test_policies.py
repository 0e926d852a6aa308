"""Policies of a namespace as one object, and the hash ranges of its bundles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import MOST_BUNDLES
from pulsarium.broker.model.namespace.policies import (
    bundle_named,
    bundle_of,
    even_boundaries,
    hash_position,
    is_readable,
    middle,
    ranges,
    read_bundles,
    read_policies,
    split_at,
    topics_middle,
    whole_policies,
)
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.policies import NAMESPACE_DEFAULTS


def test_stored_policies_stand_between_defaults_in_pulsars_order() -> None:
    kept = {"migrated": True, "persistence": {"bookkeeperEnsemble": 1}, "properties": {"a": "b"}}
    shown = whole_policies(kept, Config(defaultNumberOfNamespaceBundles=2))
    assert list(shown) == [name for name in NAMESPACE_DEFAULTS if name in shown]
    assert shown | kept == shown
    assert shown["bundles"]["numBundles"] == 2
    assert "retention_policies" not in shown


def test_policies_unknown_to_pulsar_are_not_stored() -> None:
    assert read_policies({"deleted": True, "unknown": 1, "persistence": None}) == {"deleted": True}


@pytest.mark.parametrize(
    ("name", "value", "readable"),
    [
        ("message_ttl_in_seconds", 5, True),
        ("message_ttl_in_seconds", "x", False),
        ("retention_policies", {}, True),
        ("retention_policies", [], False),
        ("replication_clusters", ["a"], True),
        ("replication_clusters", [1], False),
        ("deduplicationEnabled", True, True),
        ("deduplicationEnabled", {}, False),
        ("deleted", "x", False),
        ("subscription_auth_mode", "Prefix", True),
        ("resource_group_name", "x", True),
        ("resource_group_name", {}, False),
        ("unknown", object(), True),
        ("persistence", None, True),
    ],
)
def test_policies_are_readable_by_their_kind(name: str, value: Any, readable: bool) -> None:
    assert is_readable(name, value) is readable


@pytest.mark.parametrize(
    "sent",
    [
        {"numBundles": MOST_BUNDLES + 1},
        {"boundaries": ["0x00000000", "0x80000000"]},
        {"boundaries": ["0x1", "0xffffffff"]},
        {"boundaries": "0x00000000"},
        {"boundaries": ["nothing"]},
        {"boundaries": ["-0x1", "0xffffffff"]},
    ],
)
def test_bundles_that_make_no_sense_are_refused(sent: Any) -> None:
    with pytest.raises(ValueError, match="bundles"):
        read_bundles(sent, 4)


@pytest.mark.parametrize("sent", [None, "x", {}, {"numBundles": "x"}, {"numBundles": 0}, {"boundaries": []}])
def test_bundles_that_are_not_said_are_the_default(sent: Any) -> None:
    assert read_bundles(sent, 4)["numBundles"] == 4


@pytest.mark.parametrize(
    ("bundles", "boundaries"),
    [
        (1, ["0x00000000", "0xffffffff"]),
        (3, ["0x00000000", "0x55555555", "0xaaaaaaaa", "0xffffffff"]),
        (4, ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]),
    ],
)
def test_bundles_have_even_boundaries(bundles: int, boundaries: list[str]) -> None:
    assert even_boundaries(bundles) == boundaries


# The bundles of these topics on a real broker.
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


@pytest.mark.parametrize("named", ["0x00000000_0x40000000", "0x0_0x40000000", "0_1073741824"])
def test_a_bundle_is_found_by_the_name_of_its_range(named: str) -> None:
    assert bundle_named(even_boundaries(4), "t/n", named) == "0x00000000_0x40000000"


def wrong_upper(upper: str) -> str:
    asked = f"Invalid upper boundary for bundle t/n/0x00000000_{upper}. "
    return f"{asked}Expected upper boundary of t/n/0x00000000_0x40000000"


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("junk", "Invalid bundle range: junk"),
        ("", "Invalid bundle range: "),
        ("0x0", "Invalid bundle range: 0x0"),
        ("0x0_x", 'For input string: "x"'),
        ("0x0_0xx", 'For input string: "x" under radix 16'),
        ("_1", "Zero length string"),
        ("0_9223372036854775808", 'For input string: "9223372036854775808"'),
        ("0x1_0x1", "Cannot create bundle object for an empty key range"),
        ("0x40000000_0x0", "Invalid range: [1073741824..0)"),
        ("0x0_0x1_0x2", wrong_upper("0x00000001")),
        ("-1_5", "Cannot find bundle t/n/0xffffffffffffffff_0x00000005 in the bundles list"),
        ("0x0_0x100000000", wrong_upper("0x100000000")),
        ("0x1_0x40000000", "Cannot find bundle t/n/0x00000001_0x40000000 in the bundles list"),
        ("0x0_0x80000000", wrong_upper("0x80000000")),
    ],
)
def test_a_name_that_is_no_bundle_is_refused(named: str, words: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        bundle_named(even_boundaries(4), "t/n", named)
    assert str(error.value) == words


@given(st.integers(1, 64), st.data())
def test_a_bundle_is_split_at_positions_inside(bundles: int, data: st.DataObject) -> None:
    boundaries = even_boundaries(bundles)
    bundle = data.draw(st.sampled_from(ranges(boundaries)))
    positions = data.draw(st.lists(st.integers(-1, 2**32)))
    split = split_at(boundaries, bundle, positions)
    assert split == sorted(set(split))
    low, high = (int(edge, 16) for edge in bundle.split("_"))
    assert set(split) - set(boundaries) == {f"0x{each:08x}" for each in positions if low < each < high}
    assert set(boundaries) <= set(split)
    assert low < middle(bundle) < high


def test_topics_are_split_in_their_middle() -> None:
    topics = [TopicName.parse(f"persistent://public/default/{number}") for number in range(5)]
    assert topics_middle(topics[:1]) is topics_middle([]) is None
    split = topics_middle(topics)
    assert split is not None
    assert sum(hash_position(topic) <= split for topic in topics) == 2
