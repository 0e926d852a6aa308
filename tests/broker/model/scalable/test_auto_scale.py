"""Decisions of auto scale, which depend only on the layout, loads, consumers, policy and time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.broker.model.scalable.auto_scale import (
    BUCKET_OVERRIDES,
    OVERRIDES,
    Merge,
    Nothing,
    PolicyError,
    Rebucket,
    SegmentLoad,
    Situation,
    SplitDecision,
    Times,
    decide,
    effective,
    key_of,
    merges_before,
)
from pulsarium.broker.model.scalable.layout import Layout

NOW = 1_000_000_000
M1 = effective(Config(), entry_buckets=False)
RELEASED = effective(Config(), entry_buckets=True)


def situation(segments: int = 1, consumers: int = 0, **fields: Any) -> Situation:
    layout = Layout.initial(segments, now_ms=0, buckets=max(1, 4 // segments))
    return Situation(**{"layout": layout, "loads": {}, "consumers": consumers, "policy": M1, "now_ms": NOW, **fields})


def loads(*msg_rates_in: float, since_ms: int = 0) -> dict[int, SegmentLoad]:
    return {number: SegmentLoad((rate, 0.0, 0.0, 0.0), since_ms) for number, rate in enumerate(msg_rates_in)}


def policy(*, entry_buckets: bool = False, **override: Any) -> Any:
    return effective(Config(), override, entry_buckets=entry_buckets)


# more consumers


def test_more_consumers_than_segments_split_the_busiest_segment() -> None:
    assert decide(situation(3, 4, loads=loads(5, 9, 9))) == SplitDecision(1, "consumer-count")
    assert decide(situation(3, 4)) == SplitDecision(0, "consumer-count")
    assert decide(situation(3, 3)) == Nothing()


def test_a_split_waits_for_its_cool_down() -> None:
    soon = situation(1, 2, times=Times(split=NOW - 59_999))
    assert decide(soon) == Nothing("split_cooldown")
    assert decide(replace(soon, now_ms=NOW + 1)) == SplitDecision(0, "consumer-count")


def test_splits_end_at_the_most_segments() -> None:
    assert decide(situation(4, 5, policy=policy(maxSegments=4))) == Nothing("max_segments")


def test_a_segment_of_one_hash_is_not_split() -> None:
    narrow = Layout.initial(1, now_ms=0)
    for _ in range(16):
        narrow = narrow.split(narrow.active()[0].id, now_ms=0)
    busiest = {narrow.active()[0].id: SegmentLoad((1.0, 0.0, 0.0, 0.0))}
    assert decide(situation(consumers=99, layout=narrow, loads=busiest)) == Nothing("unsplittable")


def test_consumers_of_a_quiet_topic_share_the_buckets_that_it_has() -> None:
    assert decide(situation(1, 4, policy=RELEASED)) == Nothing()


def test_consumers_of_a_quiet_topic_get_more_buckets_in_one_step() -> None:
    assert decide(situation(1, 5, policy=RELEASED)) == Rebucket((0,), 8, "below-split-rate-floor")
    assert decide(situation(2, 9, policy=RELEASED)) == Rebucket((0, 1), 8, "below-split-rate-floor")


def test_consumers_of_a_busy_topic_get_segments() -> None:
    assert decide(situation(1, 2, policy=RELEASED, loads=loads(1000))) == SplitDecision(0, "consumer-count")


def test_consumers_of_a_topic_with_the_most_segments_get_buckets() -> None:
    full = situation(1, 5, policy=policy(entry_buckets=True, maxSegments=1), loads=loads(9999))
    assert decide(full) == Rebucket((0,), 8, "at-max-segments")


def test_a_rebucket_waits_for_its_cool_down_and_ends_at_the_most_buckets() -> None:
    soon = situation(1, 5, policy=RELEASED, times=Times(rebucket=NOW - 1))
    assert decide(soon) == Nothing("rebucket_cooldown")
    assert decide(replace(soon, policy=replace(RELEASED, max_buckets=4))) == Nothing("max_entry_buckets")


# more traffic


@pytest.mark.parametrize("index", range(4))
def test_each_rate_splits_a_segment_above_its_threshold(index: int) -> None:
    name = ("msgRateIn", "byteRateIn", "msgRateOut", "byteRateOut")[index]

    def at(rate: float) -> dict[int, SegmentLoad]:
        return {1: SegmentLoad(tuple(rate if each == index else 0.0 for each in range(4)))}  # type: ignore[arg-type]

    assert decide(situation(2, loads=at(M1.split[index]))) == Nothing()
    assert decide(situation(2, loads=at(M1.split[index] + 1))) == SplitDecision(1, name)


def test_the_most_overloaded_segment_is_split() -> None:
    assert decide(situation(3, loads=loads(11_000, 30_000, 20_000))) == SplitDecision(1, "msgRateIn")


# less traffic


def test_the_coldest_adjacent_pair_is_merged() -> None:
    assert decide(situation(4, loads=loads(9, 9, 1, 1))) == Merge(2, 3, "cold")


def test_a_pair_is_merged_only_after_a_cold_window() -> None:
    since = NOW - 300_000
    assert decide(situation(2, loads=loads(1, 1, since_ms=since))) == Merge(0, 1, "cold")
    assert decide(situation(2, loads=loads(1, 1, since_ms=since + 1))) == Nothing()
    assert decide(situation(2, loads=loads(1))) == Nothing()  # the load of the other segment is unknown
    assert decide(situation(2, loads=loads(1, 1000))) == Nothing()


def test_a_merge_waits_for_its_cool_down() -> None:
    assert decide(situation(2, loads=loads(1, 1), times=Times(merge=NOW - 1))) == Nothing("merge_cooldown")


def test_merges_leave_the_fewest_segments() -> None:
    assert decide(situation(2, loads=loads(1, 1), policy=policy(minSegments=2))) == Nothing()


def test_merges_end_at_the_deepest_line_of_merges() -> None:
    layout = Layout.initial(3, now_ms=0).merge(0, 1, now_ms=0)
    assert merges_before(layout, layout.segments[3]) == 1
    cold = {2: SegmentLoad(), 3: SegmentLoad()}
    assert decide(situation(layout=layout, loads=cold)) == Merge(2, 3, "cold")
    assert decide(situation(layout=layout, loads=cold, policy=policy(maxDagDepth=1))) == Nothing()


def test_a_merge_leaves_a_bucket_to_each_consumer_that_has_one() -> None:
    cold = situation(2, 3, loads=loads(1, 1), policy=replace(RELEASED, max_buckets=2))
    assert decide(cold) == Nothing()
    assert decide(replace(cold, consumers=2)) == Merge(0, 1, "cold")


# the policy


def test_a_disabled_policy_does_nothing() -> None:
    assert decide(situation(1, 9, policy=policy(enabled=False))) == Nothing("disabled")


def test_a_topic_overrides_its_namespace_and_the_namespace_overrides_the_broker() -> None:
    namespace, topic = {"maxSegments": 8, "minSegments": 2}, {"minSegments": 3, "maxDagDepth": None}
    found = effective(Config(), namespace, topic, entry_buckets=False)
    assert (found.max_segments, found.min_segments, found.max_dag_depth) == (8, 3, 10)


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ({"minSegments": 0}, "minSegments must be >= 1"),
        ({"maxSegments": 0}, "maxSegments must be >= minSegments"),
        ({"minSegments": 100}, "maxSegments must be >= minSegments"),
        ({"maxDagDepth": -1}, "maxDagDepth must be >= 0"),
        ({"splitCooldownSeconds": -1}, "splitCooldown must not be negative"),
        ({"mergeCooldownSeconds": -1}, "mergeCooldown must not be negative"),
        ({"mergeWindowSeconds": -1}, "mergeWindow must not be negative"),
        ({"splitBytesRateInThreshold": 0.0}, "splitBytesRateInThreshold must be > 0"),
        ({"mergeMsgRateOutThreshold": -1.0}, "mergeMsgRateOutThreshold must be >= 0"),
        (
            {"splitMsgRateInThreshold": 10.0},
            "splitMsgRateInThreshold must be > mergeMsgRateInThreshold (hysteresis)",
        ),
    ],
)
def test_a_contradictory_policy_is_refused_with_pulsars_text(override: dict[str, Any], text: str) -> None:
    with pytest.raises(PolicyError) as error:
        policy(**override)
    assert str(error.value) == f"Invalid auto split/merge configuration: {text}"


@pytest.mark.parametrize("name", [*OVERRIDES, *BUCKET_OVERRIDES])
def test_each_key_of_broker_conf_is_the_default_of_its_override(name: str) -> None:
    value = effective_value(name)
    config = Config(**{key_of(name): value})
    assert effective(config, entry_buckets=True) == effective(Config(), {name: value}, entry_buckets=True) != RELEASED


def effective_value(name: str) -> Any:
    """Return a valid value that is not the default of an override."""
    default = getattr(Config(), key_of(name))
    return not default if isinstance(default, bool) else default + 1


@given(
    st.integers(1, 8),
    st.lists(st.floats(0, 50_000), max_size=8),
    st.integers(0, 40),
    st.booleans(),
)
def test_a_decision_fits_its_layout(segments: int, rates: list[float], consumers: int, entry_buckets: bool) -> None:
    now = situation(segments, consumers, loads=loads(*rates), policy=RELEASED if entry_buckets else M1)
    decision = decide(now)
    if isinstance(decision, SplitDecision):
        now.layout.split(decision.segment, now_ms=0)
    elif isinstance(decision, Merge):
        now.layout.merge(decision.first, decision.second, now_ms=0)
    elif isinstance(decision, Rebucket):
        layout = now.layout
        for segment in decision.segments:
            layout = layout.rebucket(segment, decision.buckets, now_ms=0)
        assert sum(each.buckets for each in layout.active()) >= consumers
