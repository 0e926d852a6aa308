"""Consumers that register with the controller of a scalable topic."""

from __future__ import annotations

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scalable.common import (
    connected,
    create,
    join,
    look_up,
    on_segment,
    on_topic,
    scenario,
    seg,
    top,
)
from pulsarium.conformance.recordings.wire import simple


@scenario(
    12,
    "SCALABLE_TOPIC_SUBSCRIBE STREAM on topics of 1 and 4 segments: response, order of update and "
    "response, controller_broker_url before and after, stats",
)
def subscribe_one(s: Recorder) -> None:
    create(s, 1)
    create(s, 4, "-4")
    c = connected(s, "A")
    look_up(c, top(s), 1)
    s.say("subscribe")
    join(c, top(s))
    s.settle(300)
    s.say("lookup again: controller url?")
    look_up(c, top(s), 2)
    join(c, top(s, "-4"), "s", "c1", 2)
    s.settle(300)
    on_topic(s, "GET", "-4", "/stats")
    on_topic(s, "GET", "", "/stats")
    s.say("segment cursors: were they made?")
    on_segment(s, "GET", "0000-ffff-0", "/subscription/s/backlog")


@scenario(
    13,
    "four segments: c2, c1, c3, c4, c5 join in that order; c1's connection drops, within grace comes "
    "back, c2 drops for good (grace 3 s)",
)
def subscribe_join_leave(s: Recorder) -> None:
    create(s, 4)
    t = top(s)
    cs = {}
    for i, n in enumerate(("c2", "c1", "c3", "c4", "c5")):
        s.say(f"{n} joins")
        cs[n] = connected(s, n)
        join(cs[n], t, "s", n, 10 + i)
        s.settle(300)
    on_topic(s, "GET", "", "/stats")
    s.say("c1 drops")
    cs["c1"].close()
    s.quiet(1000)
    s.say("c1 is back")
    cs["c1b"] = connected(s, "c1b")
    join(cs["c1b"], t, "s", "c1", 99)
    s.settle(500)
    s.say("c2 drops")
    cs["c2"].close()
    s.quiet(4500)
    on_topic(s, "GET", "", "/stats")


@scenario(
    14,
    "the same consumer name from a second connection; the same consumer id with another name on one "
    "connection; another subscription",
)
def subscribe_same_name(s: Recorder) -> None:
    create(s, 2)
    t = top(s)
    a = connected(s, "A")
    b = connected(s, "B")
    join(a, t, "s", "c1", 1)
    s.say("same name, other connection")
    join(b, t, "s", "c1", 5)
    s.settle(300)
    s.say("first connection goes")
    a.close()
    s.quiet(4500)
    on_topic(s, "GET", "", "/stats")
    s.say("other name, same consumer id, same connection")
    join(b, t, "s", "c2", 5)
    s.settle(300)
    s.say("other subscription, same id")
    join(b, t, "s2", "c1", 5)
    s.settle(300)
    on_topic(s, "GET", "", "/stats")
    s.say("B goes: which are dropped")
    b.close()
    s.quiet(4500)
    on_topic(s, "GET", "", "/stats")


@scenario(
    15,
    "CHECKPOINT consumers: alone, with STREAM on the same subscription, after a split with an undrained parent",
)
def subscribe_checkpoint(s: Recorder) -> None:
    create(s, 1)
    t = top(s)
    a = connected(s, "A")
    b = connected(s, "B")
    join(a, t, "k", "c1", 1, "CHECKPOINT")
    s.settle(200)
    on_topic(s, "POST", "", "/split/0")
    s.settle(500)
    s.say("STREAM joins the same subscription")
    join(b, t, "k", "c2", 1, "STREAM")
    s.settle(500)
    s.quiet(3000)
    on_topic(s, "GET", "", "/stats")


@scenario(
    16,
    "SCALABLE_TOPIC_SUBSCRIBE: absent topic, persistent, non-persistent, segment, invalid name, empty "
    "subscription and consumer name, odd names",
)
def subscribe_errors(s: Recorder) -> None:
    with s.unrecorded():  # an earlier scenario created the topic
        s.http("PUT", "/admin/v2/scalable/tr/no-such-namespace/x")
    create(s, 1)
    s.rest("PUT", f"/admin/v2/persistent/{s.ns}/per")
    c = connected(s, "A")
    for n in (
        top(s, "-absent"),
        f"persistent://{s.ns}/per",
        f"persistent://{s.ns}/absent",
        f"non-persistent://{s.ns}/x",
        seg(s, 0, 0xFFFF, 0),
        f"{s.ns}/t",
        "bad",
        "x://y/z",
        "topic://tr/no-such-namespace/x",
    ):
        s.say(n)
        join(c, n, "s", "c1", 1, t=4)
        if not c.open:
            c = connected(s, "again")
    for sub, name in (("", "c1"), ("s", ""), ("a/b", "c1"), ("s s", "c c"), ("s", "a/b")):
        s.say(f"subscription {sub!r} consumer {name!r}")
        join(c, top(s), sub, name, 1, t=4)
        s.settle(150)
        if not c.open:
            c = connected(s, "again")
    on_topic(s, "GET", "", "/stats")


@scenario(
    17,
    "STREAM c1, messages on the parent not acked, split: assignment; ack: when do the children come (2 s "
    "poll, back-off)",
)
def stream_split_drain(s: Recorder) -> None:
    create(s, 1)
    t = top(s)
    p = seg(s, 0, 0xFFFF, 0)
    c = connected(s, "A")
    look_up(c, t)
    join(c, t)
    c.sub(p, "s", 50, "Exclusive", initialPosition="Earliest")
    c.prod(p, 0)
    for i in range(2):
        c.payload(0, i, f"m{i}")
    c.flow(10, 50)
    m = c.msgs(2)
    s.say("split")
    on_topic(s, "POST", "", "/split/0")
    s.quiet(4000)
    s.say("ack both cumulatively")
    c.ack(m[-1].id(), 50, "Cumulative", reply=True)
    s.quiet(9000)
    on_topic(s, "GET", "", "/stats")
    s.say("second consumer")
    d = connected(s, "B")
    join(d, t, "s", "c2", 2)
    s.settle(500)


@scenario(
    18,
    "STREAM c1 and c2, empty parent with and without a cursor: when do the children come after a split, "
    "and after a merge",
)
def stream_split_empty(s: Recorder) -> None:
    create(s, 1)
    t = top(s)
    c = connected(s, "A")
    d = connected(s, "B")
    join(c, t, "s", "c1", 1)
    join(d, t, "s", "c2", 2)
    s.settle(200)
    s.say("split, no cursor on the parent")
    on_topic(s, "POST", "", "/split/0")
    s.quiet(5000)
    s.say("a cursor appears on the sealed parent")
    on_segment(s, "PUT", "0000-ffff-0", "/subscription/s")
    s.quiet(9000)
    s.say("merge")
    on_topic(s, "POST", "", "/merge/1/2")
    s.quiet(6000)


@scenario(
    19,
    "command 82 SCALABLE_TOPIC_UNSUBSCRIBE (5.0.1): what M1 says",
)
def unsubscribe_82(s: Recorder) -> None:
    create(s, 2)
    c = connected(s, "A")
    d = connected(s, "B")
    join(c, top(s), "s", "c1", 1)
    join(d, top(s), "s", "c2", 1)
    s.settle(200)
    c.req("SCALABLE_TOPIC_UNSUBSCRIBE", t=2, consumer_id=1)
    s.settle(500)
    s.quiet(3500)


@scenario(
    20,
    "71, 74, 75, 77, 80 sent by a client; 70-82 with an empty body; 70 before CONNECT",
    warm=False,
)
def client_sends_server_commands(s: Recorder) -> None:
    for t, f in (
        ("SCALABLE_TOPIC_UPDATE", {"session_id": 1}),
        ("SCALABLE_TOPIC_SUBSCRIBE_RESPONSE", {"request_id": 1}),
        ("SCALABLE_TOPIC_ASSIGNMENT_UPDATE", {"consumer_id": 1, "assignment": {"layout_epoch": 0}}),
        ("WATCH_SCALABLE_TOPICS_UPDATE", {"watch_id": 1}),
        ("WATCH_TC_ASSIGNMENTS_UPDATE", {"watch_id": 1}),
    ):
        c = connected(s, t)
        c.send(t, **f)
        c.closed(0.5)
        if c.open:
            c.send("PING")
            c.expect("PONG", t=1)
            c.close()
    for n in range(69, 84):
        c = connected(s, f"type{n}")
        c.raw(simple(bytes([0x08, n])), type=f"type {n}, no body")
        c.closed(0.4)
        if c.open:
            c.send("PING")
            c.expect("PONG", t=1)
            c.close()
    c = s.tcp("early")
    c.send("SCALABLE_TOPIC_LOOKUP", session_id=1, topic=top(s))
    c.closed(0.7)
