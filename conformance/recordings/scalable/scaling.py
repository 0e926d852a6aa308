"""Auto scale, the deletion of sealed segments, and a broker without scalable topics."""

from __future__ import annotations

from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scalable.common import (
    connected,
    create,
    join,
    look_up,
    on_topic,
    scenario,
    seg,
    top,
)


@scenario(
    39,
    "autoScalePolicy of topic and namespace: GET, POST, DELETE, unknown fields, invalid combinations, absent topic",
)
def autoscale_policy(s: Recorder) -> None:
    create(s, 1)
    policy = "/autoScalePolicy"
    on_topic(s, "GET", "", policy)
    on_topic(s, "POST", "", policy, {"enabled": True, "maxSegments": 8, "minSegments": 2, "splitCooldownSeconds": 1})
    on_topic(s, "GET", "", policy)
    on_topic(s, "GET")
    bodies: tuple[Any, ...] = (
        {"maxSegments": 0},
        {"minSegments": 0},
        {"minSegments": 100},
        {"splitMsgRateInThreshold": 10},
        {"maxDagDepth": -1},
        {"splitCooldownSeconds": -1},
        {"nonsense": 1},
        {},
        [],
        "x",
        {"enabled": "maybe"},
    )
    for b in bodies:
        s.say(str(b))
        on_topic(s, "POST", "", policy, b)
    on_topic(s, "GET", "", policy)
    on_topic(s, "DELETE", "", policy)
    on_topic(s, "GET", "", policy)
    on_topic(s, "DELETE", "", policy)
    on_topic(s, "GET", "-absent", policy)
    on_topic(s, "POST", "-absent", policy, {"enabled": True})
    on_topic(s, "DELETE", "-absent", policy)
    of_namespace = "/scalableTopicAutoScalePolicy"
    s.policy("GET", of_namespace)
    s.policy("POST", of_namespace, {"mergeMsgRateInThreshold": 5000.0})
    s.policy("GET", of_namespace)
    s.say("valid alone, invalid with the namespace's")
    on_topic(s, "POST", "", policy, {"splitMsgRateInThreshold": 4000.0})
    s.policy("POST", of_namespace, {"minSegments": 0})
    s.policy("DELETE", of_namespace)
    s.policy("GET", of_namespace)
    s.rest("GET", f"/admin/v2/namespaces/{s.ns}/entryBucketPolicy")
    on_topic(s, "GET", "", "/entryBucketPolicy")


@scenario(
    40,
    "autoScalePolicy enabled, splitCooldownSeconds 1: three STREAM consumers on a topic of one segment; "
    "CHECKPOINT ones; a QUEUE subscription does not count",
)
def autoscale_consumers(s: Recorder) -> None:
    create(s, 1)
    on_topic(s, "POST", "", "/autoScalePolicy", {"enabled": True, "splitCooldownSeconds": 1})
    w = connected(s, "W")
    look_up(w, top(s))
    for i in (1, 2, 3):
        s.say(f"c{i}")
        c = connected(s, f"c{i}")
        join(c, top(s), "s", f"c{i}", i)
        s.quiet(2500)
    on_topic(s, "GET", "", "/stats")
    s.quiet(1500)


@scenario(
    41,
    "sealed segments without subscriptions and retention 0: the 60 s GC tick; what the watcher is told",
    profile="slow",
)
def gc_sealed(s: Recorder) -> None:
    create(s, 1)
    w = connected(s, "W")
    look_up(w, top(s))
    on_topic(s, "POST", "", "/split/0")
    s.settle(300)
    s.quiet(65000)
    on_topic(s, "GET")
    on_topic(s, "GET", "", "/stats")


@scenario(
    42,
    "scalableTopicsEnabled=false, transactionCoordinatorScalableTopicsEnabled=false: CONNECTED, each command, REST",
    profile="off",
    warm=False,
)
def off_everything(s: Recorder) -> None:
    c = connected(s, "A")
    look_up(c, top(s), 1)
    join(c, top(s))
    c.send("WATCH_SCALABLE_TOPICS", watch_id=1, namespace=s.ns)
    c.expect("WATCH_SCALABLE_TOPICS_UPDATE")
    c.send("WATCH_TC_ASSIGNMENTS", watch_id=1)
    c.expect("WATCH_TC_ASSIGNMENTS_UPDATE")
    c.send("SCALABLE_TOPIC_CLOSE", session_id=1)
    c.req("TC_CLIENT_CONNECT_REQUEST", tc_id=0, scalable=True)
    c.req("NEW_TXN", tc_id=0, txn_ttl_millis=1000, scalable=True)
    create(s, 1)
    on_topic(s, "GET")
    on_topic(s, "GET", "", "/stats")
    on_topic(s, "POST", "", "/split/0")
    s.rest("GET", f"/admin/v2/scalable/{s.ns}")
    c.prod(seg(s, 0, 0xFFFF, 0), 0, t=4)
