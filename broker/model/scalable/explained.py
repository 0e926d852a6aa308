"""Explain what auto scale last did with a scalable topic, and what the next operation waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pulsarium.broker.clock import instant_text
from pulsarium.broker.model.scalable import auto_scale
from pulsarium.broker.model.scalable.auto_scale import (
    REASONS,
    Merge,
    Nothing,
    PolicyError,
    Rebucket,
    Situation,
    SplitDecision,
)
from pulsarium.broker.model.scalable.controller import BY_HAND, Controller, Operation
from pulsarium.broker.model.scalable.topics import ScalableTopic

STEADY: Final = "steady"
_BLOCKED: Final[Mapping[str, str]] = {
    auto_scale.DISABLED: "auto scale is off (by the autoScalePolicy of topic or namespace, or by broker.conf)",
    auto_scale.MAX_SEGMENTS: "the next split is blocked: there are maxSegments = {now.policy.max_segments} segments",
    auto_scale.MAX_BUCKETS: "more entry buckets are blocked: each segment has as many as it may have, "
    "{now.policy.max_buckets}",
    auto_scale.UNSPLITTABLE: "the next split is blocked: the range of the busiest segment is one hash",
    auto_scale.SPLIT_COOLDOWN: "the next split waits for the cool-down of {now.policy.split_cooldown} s",
    auto_scale.MERGE_COOLDOWN: "the next merge waits for the cool-down of {now.policy.merge_cooldown} s",
    auto_scale.REBUCKET_COOLDOWN: "the next rebucket waits for the cool-down of {now.policy.rebucket_cooldown} s",
}


class Explanation(NamedTuple):
    """An explanation: `reason` is a name for programs, `text` a sentence, and `details` are the facts, as JSON."""

    reason: str
    text: str
    details: dict[str, Any]


def explain_scaling(topic: ScalableTopic, controller: Controller | None) -> Explanation:
    """Explain the last operation on a topic's segments, and the next decision of auto scale."""
    details: dict[str, Any] = {"topic": str(topic.name), **_layout(topic)}
    if controller is None:
        text = "auto scale begins with the first registered consumer, or the first split or merge by hand"
        return Explanation("no-controller", text, details)
    last = controller.last
    details["lastOperation"] = None if last is None else _operation(last)
    try:
        now = controller.situation()
    except PolicyError as error:
        return Explanation("invalid-policy", str(error), details)
    details["consumers"] = now.consumers
    details["rates"] = {
        str(segment): dict(zip(REASONS, load.rates, strict=True)) for segment, load in now.loads.items()
    }
    reason, text = _next(now)
    return Explanation(reason, text if last is None else f"{_said(last)}; {text}", details)


def _layout(topic: ScalableTopic) -> dict[str, Any]:
    segments = topic.layout.assignable()
    return {
        "epoch": topic.layout.epoch,
        "active": [each.id for each in segments if each.active],
        "sealed": [each.id for each in segments if not each.active],
    }


def _operation(last: Operation) -> dict[str, Any]:
    said = {"operation": last.kind, "trigger": last.trigger, "segments": list(last.segments)}
    return {**said, "at": instant_text(last.at_ms), **({"error": last.error} if last.error else {})}


def _said(last: Operation) -> str:
    segments = " and ".join(map(str, last.segments))
    failed = f" failed ({last.error})" if last.error else ""
    why = "by hand" if last.trigger == BY_HAND else f"because of {last.trigger}"
    return f"{last.kind} of segment {segments}{failed} at {instant_text(last.at_ms)}, {why}"


def _next(now: Situation) -> tuple[str, str]:
    """Return the name and the text of what auto scale would do now."""
    match auto_scale.decide(now):
        case Nothing(""):
            return STEADY, "no split, merge or rebucket is due"
        case Nothing(blocked):
            return blocked, _BLOCKED[blocked].format(now=now)
        case SplitDecision(segment, reason):
            return "due", f"a split of segment {segment} is due, because of {reason}"
        case Merge(first, second, reason):
            return "due", f"a merge of segments {first} and {second} is due, because of {reason}"
        case Rebucket(segments, buckets, reason):
            given = ", ".join(map(str, segments))
            return "due", f"{buckets} entry buckets for segment {given} are due, because of {reason}"
