"""Lookup sessions and layouts."""

from __future__ import annotations

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scalable.common import (
    connected,
    create,
    forget_topics_of_missing_namespaces,
    look_up,
    on_topic,
    scenario,
    top,
    update,
)
from pulsarium.proto.generated import PulsarApi_pb2 as pb


@scenario(
    1,
    "CONNECT with no flags, all flags, the scalable flags only: CONNECTED, server_version, "
    "protocol_version, feature_flags",
    warm=False,
)
def connect_features(s: Recorder) -> None:
    names = [f.name for f in pb.FeatureFlags.DESCRIPTOR.fields]
    s.conn("none", flags={})
    s.conn("all", flags=dict.fromkeys(names, True))
    s.conn("scalable", flags={"supports_scalable_topics": True, "supports_tc_metadata_discovery": True})
    s.conn("v22", version=22, flags={})
    s.conn("v25", version=25, flags={})


@scenario(
    2,
    "SCALABLE_TOPIC_LOOKUP of absent topics with create_if_missing absent/true/false, in every domain and"
    " odd names; what it creates",
)
def lookup_names(s: Recorder) -> None:
    forget_topics_of_missing_namespaces(s)
    c = connected(s, "A")
    i = 0
    for kw in ({}, {"create_if_missing": True}, {"create_if_missing": False}):
        i += 1
        s.say(f"absent topic://, {kw}")
        look_up(c, top(s, f"-{i}"), i, **kw)
    on_topic(s, "GET", "-1")
    on_topic(s, "GET", "-3")
    s.rest("GET", f"/admin/v2/scalable/{s.ns}")
    for n in (
        f"persistent://{s.ns}/p1",
        f"{s.ns}/p2",
        "tr-short-name",
        f"non-persistent://{s.ns}/n1",
        f"segment://{s.ns}/t/0000-ffff-0",
        f"topic://{s.ns}/p3-partition-0",
        f"persistent://{s.ns}/p4-partition-1",
        f"topic://{s.ns}/with%20space",
        "topic://tr/no-such-namespace/x",
        "topic://no-such-tenant/ns/x",
        "persistent://tr/no-such-namespace/x",
        f"topic://{s.ns}/a/b",
    ):
        i += 1
        s.say(n)
        look_up(c, n, i, t=3)
    for n in ("", "topic://a", "bad://tr/x/y", "topic://tr/x/"):
        d = connected(s, f"bad {n}")
        look_up(d, n, 1, t=2)
        d.closed(0.5)
    s.quiet(200)


@scenario(
    3,
    "one topic: two sessions of one connection, of another, the same session id twice, close, close "
    "unknown, update after close, connection gone",
)
def lookup_sessions(s: Recorder) -> None:
    create(s, 2)
    c = connected(s, "A")
    d = connected(s, "B")
    t = top(s)
    look_up(c, t, 1)
    look_up(c, t, 2)
    look_up(d, t, 1)
    s.say("session id 1 again, other topic")
    create(s, 1, "-b")
    look_up(c, top(s, "-b"), 1)
    s.say("split: who is told")
    on_topic(s, "POST", "", "/split/0")
    s.settle(500)
    c.send("SCALABLE_TOPIC_CLOSE", session_id=2)
    c.send("SCALABLE_TOPIC_CLOSE", session_id=77)
    c.send("PING")
    c.expect("PONG")
    s.say("split of the other topic")
    on_topic(s, "POST", "-b", "/split/0")
    s.settle(500)
    s.say("session 2 was closed")
    on_topic(s, "POST", "", "/split/1")
    s.settle(500)


@scenario(
    4,
    "PUT /admin/v2/scalable with numInitialSegments 1, 2, 3, 5, 100: ranges in the metadata and in the "
    "DAG; errors of PUT",
)
def create_layouts(s: Recorder) -> None:
    forget_topics_of_missing_namespaces(s)
    with s.unrecorded():  # earlier lookups created these topics, where a lookup creates
        early = connected(s, "early")
        for sid, name in enumerate(("tr/no-such-namespace/x", "no-such-tenant/ns/x")):
            look_up(early, f"topic://{name}", sid)
        early.close()
    c = connected(s, "A")
    for i, n in enumerate((1, 2, 3, 5)):
        create(s, n, f"-{n}", {"k": "v", "n": str(n)})
        on_topic(s, "GET", f"-{n}")
        look_up(c, top(s, f"-{n}"), i)
    s.say("no body, no query")
    s.rest("PUT", f"/admin/v2/scalable/{s.ns}/t-plain")
    on_topic(s, "GET", "-plain")
    s.say("exists")
    create(s, 1, "-1")
    for q in ("0", "-1", "x", "65536", "65537", "70000"):
        s.say(f"numInitialSegments={q}")
        s.rest("PUT", f"/admin/v2/scalable/{s.ns}/t-e{q}?numInitialSegments={q}", timeout=30) if len(q) < 4 else None
    s.say("missing namespace, tenant")
    s.rest("PUT", "/admin/v2/scalable/tr/no-such-namespace/x")
    s.rest("PUT", "/admin/v2/scalable/no-such-tenant/ns/x")
    s.say("a persistent topic of that name exists")
    s.rest("PUT", f"/admin/v2/persistent/{s.ns}/t-per")
    create(s, 1, "-per")
    on_topic(s, "GET", "-per")
    s.say("and the other way round")
    s.rest("PUT", f"/admin/v2/persistent/{s.ns}/t-1")
    s.say("body not an object")
    s.rest("PUT", f"/admin/v2/scalable/{s.ns}/t-badbody", ["x"])
    s.rest("PUT", f"/admin/v2/scalable/{s.ns}/t%2Fslash")
    s.rest("PUT", f"/admin/v2/scalable/{s.ns}/t-partition-0")
    s.rest("GET", f"/admin/v2/scalable/{s.ns}")
    s.rest("GET", f"/admin/v2/scalable/{s.ns}?property=n%3D3")
    s.rest("GET", f"/admin/v2/scalable/{s.ns}?property=n%3D3&property=k%3Dv")
    s.rest("GET", f"/admin/v2/scalable/{s.ns}?property=n%3D4")
    s.rest("GET", f"/admin/v2/scalable/{s.ns}?property=n")
    s.rest("GET", "/admin/v2/scalable/tr/no-such-namespace")
    on_topic(s, "GET", "-absent")


@scenario(
    5,
    "split of segment 0 of 1, then of a child, then of a child of it: pushed DAGs, epochs, ids, ranges; "
    "metadata; errors of split",
)
def dag_split(s: Recorder) -> None:
    create(s, 1)
    c = connected(s, "A")
    look_up(c, top(s))
    for n in (0, 1, 4):
        on_topic(s, "POST", "", f"/split/{n}")
        update(c)
    on_topic(s, "GET")
    on_topic(s, "GET", "", "/stats")
    for number in ("0", "99", "-1", "x"):
        s.say(f"split {number}")
        on_topic(s, "POST", "", f"/split/{number}")
    s.say("absent topic")
    on_topic(s, "POST", "-absent", "/split/0")
    s.settle(300)


@scenario(
    6,
    "merge of adjacent segments in both orders, of a split pair, back to one; errors of merge",
)
def dag_merge(s: Recorder) -> None:
    create(s, 4)
    c = connected(s, "A")
    look_up(c, top(s))
    for a, b in ((0, 1), (3, 2), (4, 5)):
        on_topic(s, "POST", "", f"/merge/{a}/{b}")
        update(c)
    on_topic(s, "GET")
    on_topic(s, "GET", "", "/stats")
    on_topic(s, "POST", "", "/split/6")
    update(c)
    for pair in ("7/7", "0/1", "7/99", "7/x", "99/98"):
        s.say(f"merge {pair}")
        on_topic(s, "POST", "", f"/merge/{pair}")
    create(s, 3, "-b")
    s.say("not adjacent")
    on_topic(s, "POST", "-b", "/merge/0/2")
    s.say("absent topic")
    on_topic(s, "POST", "-absent", "/merge/0/1")
    s.settle(300)


@scenario(
    7,
    "a segment is split down to a range of one value: ranges and the error at the end",
)
def split_until_narrow(s: Recorder) -> None:
    create(s, 1)
    n = 0
    for i in range(17):
        r = on_topic(s, "POST", "", f"/split/{n}")
        if r:
            break
        n = 1 + 2 * i
    on_topic(s, "GET", "", "/stats")
    c = connected(s, "A")
    look_up(c, top(s))
