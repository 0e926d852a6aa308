"""Decide when a scalable topic splits, merges and rebuckets its segments (PIP-483, PIP-486).

The decision is a pure function of the layout, the loads of segments, the number of consumers, the policy and the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pulsarium.broker.config.dynamic import RATES_OF_SEGMENTS
from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.scalable.layout import Layout, Segment

INVALID = "Invalid auto split/merge configuration: "
REASONS: Final = ("msgRateIn", "byteRateIn", "msgRateOut", "byteRateOut")  # Pulsar's names of the same rates


class PolicyError(ValueError):
    """A policy whose values contradict each other."""


@dataclass(frozen=True, slots=True)
class AutoScalePolicy:
    """The effective policy of a topic: its own values over those of its namespace over broker.conf.

    Times are in seconds and rates a second. The rates are in the order of RATES_OF_SEGMENTS.
    """

    enabled: bool
    max_segments: int
    min_segments: int
    max_dag_depth: int
    split_cooldown: int
    merge_cooldown: int
    merge_window: int
    split: tuple[float, ...]
    merge: tuple[float, ...]
    entry_buckets: bool  # the release has them, and the next three values take effect
    rebucket_cooldown: int
    split_vs_rebucket: float  # messages a second from which more consumers are worth a split
    max_buckets: int

    def check(self) -> None:
        """Raise `PolicyError` with Pulsar's text for a value that does not fit the others."""
        _must(self.min_segments >= 1, "minSegments must be >= 1")
        _must(self.max_segments >= self.min_segments, "maxSegments must be >= minSegments")
        _must(self.max_dag_depth >= 0, "maxDagDepth must be >= 0")
        for name, seconds in (
            ("splitCooldown", self.split_cooldown),
            ("mergeCooldown", self.merge_cooldown),
            ("mergeWindow", self.merge_window),
            ("rebucketCooldown", self.rebucket_cooldown),
        ):
            _must(seconds >= 0, f"{name} must not be negative")
        for name, rate in zip(RATES_OF_SEGMENTS, self.split, strict=True):
            _must(rate > 0, f"split{name}Threshold must be > 0")
        for name, rate in zip(RATES_OF_SEGMENTS, self.merge, strict=True):
            _must(rate >= 0, f"merge{name}Threshold must be >= 0")
        for name, split, merge in zip(RATES_OF_SEGMENTS, self.split, self.merge, strict=True):
            _must(split > merge, f"split{name}Threshold must be > merge{name}Threshold (hysteresis)")
        _must(self.split_vs_rebucket >= 0, "splitVsRebucketMinMsgRateInThreshold must be >= 0")


def _must(condition: bool, text: str) -> None:
    if not condition:
        raise PolicyError(f"{INVALID}{text}")


_THRESHOLDS: Final = tuple(f"{action}{rate}Threshold" for action in ("split", "merge") for rate in RATES_OF_SEGMENTS)
# The values that a namespace or a topic may set, each with its Java type
OVERRIDES: Final[Mapping[str, str]] = {
    "enabled": "Boolean",
    "maxSegments": "Integer",
    "minSegments": "Integer",
    "maxDagDepth": "Integer",
    "splitCooldownSeconds": "Long",
    "mergeCooldownSeconds": "Long",
    "mergeWindowSeconds": "Long",
    **{name: "Long" if "Bytes" in name else "Double" for name in _THRESHOLDS},
}
BUCKET_OVERRIDES: Final[Mapping[str, str]] = {  # also set by those of a release with entry buckets
    "rebucketCooldownSeconds": "Long",
    "splitVsRebucketMinMsgRateInThreshold": "Double",
}


def effective(config: Config, *overrides: Mapping[str, Any] | None, entry_buckets: bool) -> AutoScalePolicy:
    """Return the policy of a topic. Later `overrides` count more. Raise `PolicyError` for contradictory values."""
    value: dict[str, Any] = {name: getattr(config, key_of(name)) for name in (*OVERRIDES, *BUCKET_OVERRIDES)}
    for each in overrides:
        value.update({name: given for name, given in (each or {}).items() if given is not None})
    policy = AutoScalePolicy(
        value["enabled"],
        value["maxSegments"],
        value["minSegments"],
        value["maxDagDepth"],
        value["splitCooldownSeconds"],
        value["mergeCooldownSeconds"],
        value["mergeWindowSeconds"],
        tuple(value[f"split{rate}Threshold"] for rate in RATES_OF_SEGMENTS),
        tuple(value[f"merge{rate}Threshold"] for rate in RATES_OF_SEGMENTS),
        entry_buckets,
        value["rebucketCooldownSeconds"],
        value["splitVsRebucketMinMsgRateInThreshold"],
        config.scalableTopicEntryBucketMaxPerSegment,
    )
    policy.check()
    return policy


def key_of(name: str) -> str:
    """Return the key of broker.conf with the default of a value."""
    return "scalableTopicAutoScaleEnabled" if name == "enabled" else f"scalableTopic{name[0].upper()}{name[1:]}"


@dataclass(frozen=True, slots=True)
class SegmentLoad:
    """Rates a second of a segment, as in RATES_OF_SEGMENTS, and the time since which they have been about the same."""

    rates: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    since_ms: int = 0


IDLE: Final = SegmentLoad()


@dataclass(frozen=True, slots=True)
class Times:
    """The last operations of each kind on a topic in milliseconds since the epoch, by hand or not. None is never."""

    split: int | None = None
    merge: int | None = None
    rebucket: int | None = None


class SplitDecision(NamedTuple):
    """The decision to split a segment."""

    segment: int
    reason: str


class Merge(NamedTuple):
    """The decision to merge two adjacent segments."""

    first: int
    second: int
    reason: str


class Rebucket(NamedTuple):
    """The decision to give segments another number of entry buckets."""

    segments: tuple[int, ...]
    buckets: int
    reason: str


class Nothing(NamedTuple):
    """The decision to do nothing. `blocked` names what prevents an operation that is due, "" if none is due."""

    blocked: str = ""


Decision = SplitDecision | Merge | Rebucket | Nothing
NOTHING: Final = Nothing()
MAX_SEGMENTS, MAX_BUCKETS, UNSPLITTABLE = "max_segments", "max_entry_buckets", "unsplittable"
SPLIT_COOLDOWN, MERGE_COOLDOWN, REBUCKET_COOLDOWN = "split_cooldown", "merge_cooldown", "rebucket_cooldown"
DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a topic, as a decision sees it. `consumers` is the largest number of a subscription."""

    layout: Layout
    loads: Mapping[int, SegmentLoad]
    consumers: int
    policy: AutoScalePolicy
    now_ms: int
    times: Times = Times()

    def load(self, segment: Segment) -> SegmentLoad:
        """Return the load of a segment, which is idle if it was not measured."""
        return self.loads.get(segment.id, IDLE)

    def within(self, last_ms: int | None, seconds: float) -> bool:
        """Return whether a cool-down after the last operation is still running."""
        return last_ms is not None and self.now_ms - last_ms < seconds * 1000


def decide(now: Situation) -> Decision:
    """Return what to do with a topic: serve more consumers first, then more traffic, and merge cold segments last."""
    if not now.policy.enabled:
        return Nothing(DISABLED)
    blocked = ""
    active = now.layout.active()
    for attempt in (_for_consumers, _for_traffic, _merge):
        decision = attempt(now, active)
        if not isinstance(decision, Nothing):
            return decision
        blocked = blocked or decision.blocked
    return Nothing(blocked)


def _for_consumers(now: Situation, active: Sequence[Segment]) -> Decision:
    """Give consumers that have no segment one, by a split, or by more entry buckets where the traffic is low."""
    if not active or now.consumers <= len(active):
        return NOTHING
    policy = now.policy
    busiest = max(active, key=lambda segment: (now.load(segment).rates[0], -segment.id))
    full = len(active) >= policy.max_segments
    quiet = now.load(busiest).rates[0] < policy.split_vs_rebucket
    if policy.entry_buckets and (full or quiet):
        return _more_buckets(now, active, "at-max-segments" if full else "below-split-rate-floor")
    return _split(now, active, busiest, "consumer-count")


def _split(now: Situation, active: Sequence[Segment], segment: Segment, reason: str) -> Decision:
    if len(active) >= now.policy.max_segments:
        return Nothing(MAX_SEGMENTS)
    if segment.start == segment.end:
        return Nothing(UNSPLITTABLE)
    if now.within(now.times.split, now.policy.split_cooldown):
        return Nothing(SPLIT_COOLDOWN)
    return SplitDecision(segment.id, reason)


def _more_buckets(now: Situation, active: Sequence[Segment], reason: str) -> Decision:
    """Give each segment with too few buckets so many that each consumer can have one."""
    if now.consumers <= sum(segment.buckets for segment in active):
        return NOTHING
    needed = -(-now.consumers // len(active))
    buckets = min(1 << (needed - 1).bit_length(), now.policy.max_buckets)
    few = tuple(sorted(segment.id for segment in active if segment.buckets < buckets))
    if not few:
        return Nothing(MAX_BUCKETS)
    if now.within(now.times.rebucket, now.policy.rebucket_cooldown):
        return Nothing(REBUCKET_COOLDOWN)
    return Rebucket(few, buckets, reason)


def _for_traffic(now: Situation, active: Sequence[Segment]) -> Decision:
    """Split the segment that is furthest above a threshold."""
    hottest: Segment | None = None
    most, reason = 1.0, ""
    for segment in active:
        for rate, limit, name in zip(now.load(segment).rates, now.policy.split, REASONS, strict=True):
            if rate / limit > most:
                hottest, most, reason = segment, rate / limit, name
    return NOTHING if hottest is None else _split(now, active, hottest, reason)


def _merge(now: Situation, active: Sequence[Segment]) -> Decision:
    """Merge the adjacent pair with the least traffic, of those that have been cold for the whole window."""
    policy = now.policy
    if len(active) <= policy.min_segments:
        return NOTHING
    capacity = sum(segment.buckets for segment in active)
    pairs = [
        (sum(now.load(first).rates) + sum(now.load(second).rates), first, second)
        for first, second in pairwise(active)
        if all(
            _is_cold(now, each) and merges_before(now.layout, each) < policy.max_dag_depth for each in (first, second)
        )
        and (not policy.entry_buckets or _keeps_consumers(now, capacity, first.buckets + second.buckets))
    ]
    if not pairs:
        return NOTHING
    if now.within(now.times.merge, policy.merge_cooldown):
        return Nothing(MERGE_COOLDOWN)
    _, first, second = min(pairs, key=lambda pair: pair[0])
    return Merge(min(first.id, second.id), max(first.id, second.id), "cold")


def _is_cold(now: Situation, segment: Segment) -> bool:
    """Return whether a segment is known to have been below all thresholds of a merge for the whole window."""
    load = now.loads.get(segment.id)
    if load is None or now.now_ms - load.since_ms < now.policy.merge_window * 1000:
        return False
    return all(rate < limit for rate, limit in zip(load.rates, now.policy.merge, strict=True))


def _keeps_consumers(now: Situation, capacity: int, pair: int) -> bool:
    """Return whether a merge leaves a bucket to each consumer that has one. The buckets of one segment are limited."""
    return capacity - pair + min(pair, now.policy.max_buckets) >= min(now.consumers, capacity)


def merges_before(layout: Layout, segment: Segment) -> int:
    """Return how many merges are in the longest line of a segment's ancestors."""
    merges: dict[int, int] = {}
    for number in sorted(layout.segments):  # parents before their children
        parents = [merges[each] for each in layout.segments[number].parents if each in layout.segments]
        merges[number] = max(parents, default=0) + (len(parents) > 1)
    return merges[segment.id]
