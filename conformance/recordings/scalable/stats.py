"""Stats of scalable topics as they are since 5.0.1: operations that failed, uncovered segments, auto scale."""

from __future__ import annotations

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scalable.common import connected, create, join, on_topic, scenario, seg, top


@scenario(
    43,
    "stats after splits and merges that fail and succeed: lastOperation and its error; an absent segment, a sealed "
    "one, two that are no neighbors",
)
def stats_operations(s: Recorder) -> None:
    create(s, 3)
    on_topic(s, "GET", "", "/stats")
    for tail in ("/split/9", "/merge/0/2", "/merge/0/9", "/split/0", "/split/0", "/merge/1/2", "/merge/1/2"):
        s.say(tail)
        on_topic(s, "POST", "", tail)
        s.settle(200)
        on_topic(s, "GET", "", "/stats")


@scenario(
    44,
    "stats of subscriptions whose consumers cover segments in part: STREAM with and without consumers, QUEUE on one "
    "segment, CHECKPOINT; after a split",
)
def stats_uncovered(s: Recorder) -> None:
    create(s, 2)
    on_topic(s, "PUT", "", "/subscriptions/idle?type=STREAM")
    c = connected(s, "A")
    join(c, top(s), "stream", "c1", 1)
    c.sub(seg(s, 0, 0x7FFF, 0), "stream", 5, "Exclusive")
    c.sub(seg(s, 0, 0x7FFF, 0), "queue", 6, "Shared")
    join(c, top(s), "point", "c2", 2, "CHECKPOINT")
    s.settle(300)
    on_topic(s, "GET", "", "/stats")
    on_topic(s, "POST", "", "/split/1")
    s.settle(300)
    on_topic(s, "GET", "", "/stats")


@scenario(
    45,
    "autoScale in stats: policies that block a split for each reason; the merge of the lowest layout",
)
def stats_auto_scale(s: Recorder) -> None:
    create(s, 1)
    policy = "/autoScalePolicy"
    on_topic(s, "GET", "", "/stats")
    for body in (
        {"enabled": False},
        {"enabled": True, "maxSegments": 1},
        {"enabled": True, "maxSegments": 8, "minSegments": 2, "splitCooldownSeconds": 600},
    ):
        s.say(str(body))
        on_topic(s, "POST", "", policy, body)
        on_topic(s, "GET", "", "/stats")
    on_topic(s, "POST", "", "/split/0")
    s.settle(300)
    on_topic(s, "GET", "", "/stats")
