"""Routes of topics, subscriptions and segments."""

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


@scenario(
    21,
    "PUT / DELETE subscriptions (STREAM, QUEUE, CHECKPOINT, bad type), twice, on an absent topic; stats; "
    "cursors of segments; consumers attached when it is deleted",
)
def rest_subscriptions(s: Recorder) -> None:
    create(s, 2)
    for n, ty in (("a", None), ("b", "STREAM"), ("q", "QUEUE"), ("k", "CHECKPOINT"), ("bad", "x"), ("a", "QUEUE")):
        s.say(f"{n} {ty}")
        on_topic(s, "PUT", "", f"/subscriptions/{n}" + (f"?type={ty}" if ty else ""))
    on_topic(s, "GET", "", "/stats")
    on_segment(s, "GET", "0000-7fff-0", "/subscription/a/backlog")
    on_segment(s, "GET", "0000-7fff-0", "/subscription/k/backlog")
    on_topic(s, "PUT", "-absent", "/subscriptions/a")
    on_topic(s, "GET", "", "/subscriptions")
    c = connected(s, "A")
    join(c, top(s), "a", "c1", 1)
    c.sub(seg(s, 0, 0x7FFF, 0), "a", 5, "Exclusive")
    s.say("delete a, consumers attached")
    on_topic(s, "DELETE", "", "/subscriptions/a")
    s.settle(500)
    on_topic(s, "GET", "", "/stats")
    on_topic(s, "DELETE", "", "/subscriptions/absent")
    on_topic(s, "DELETE", "-absent", "/subscriptions/a")
    on_topic(s, "DELETE", "", "/subscriptions/q")
    on_topic(s, "GET", "", "/stats")
    s.say("does a queue SUBSCRIBE register itself?")
    c.sub(seg(s, 0, 0x7FFF, 0), "direct", 6, "Shared")
    on_topic(s, "GET", "", "/stats")


@scenario(
    22,
    "subscriptions seek?timestamp and skip-all over sealed and active segments; errors; backlog per segment",
)
def rest_seek_skip(s: Recorder) -> None:
    create(s, 1)
    p = seg(s, 0, 0xFFFF, 0)
    on_topic(s, "PUT", "", "/subscriptions/s")
    c = connected(s, "A")
    c.prod(p, 0)
    for i in range(2):
        c.payload(0, i, f"m{i}")
    s.sleep(0.3)
    mid = s.now_ms()
    s.sleep(0.3)
    c.payload(0, 2, "m2")
    on_topic(s, "POST", "", "/split/0")
    c.prod(seg(s, 0, 0x7FFF, 1), 1)
    c.payload(1, 0, "n0")
    c.payload(1, 1, "n1")
    s.sleep(0.3)
    late = s.now_ms()

    def backlogs() -> None:
        for d in ("0000-ffff-0", "0000-7fff-1", "8000-ffff-2"):
            on_segment(s, "GET", d, "/subscription/s/backlog")

    backlogs()
    s.say("skip-all")
    on_topic(s, "POST", "", "/subscriptions/s/skip-all")
    backlogs()
    for name, ts in (("0", 0), ("between m1 and m2", mid), ("after all", late), ("future", late + 100000)):
        s.say(f"seek {name}")
        on_topic(s, "POST", "", f"/subscriptions/s/seek?timestamp={ts}")
        backlogs()
    s.say("errors")
    on_topic(s, "POST", "", "/subscriptions/s/seek")
    on_topic(s, "POST", "", "/subscriptions/s/seek?timestamp=x")
    on_topic(s, "POST", "", "/subscriptions/none/seek?timestamp=1")
    on_topic(s, "POST", "", "/subscriptions/none/skip-all")
    on_topic(s, "POST", "-absent", "/subscriptions/s/seek?timestamp=1")
    on_topic(s, "POST", "-absent", "/subscriptions/s/skip-all")


@scenario(
    23,
    "GET stats: absent, fresh, with subscriptions and consumers, after split; internal-stats and other "
    "routes that may exist",
)
def rest_stats(s: Recorder) -> None:
    on_topic(s, "GET", "-absent", "/stats")
    create(s, 2, "", {"owner": "me"})
    on_topic(s, "GET", "", "/stats")
    c = connected(s, "A")
    join(c, top(s))
    c.prod(seg(s, 0, 0x7FFF, 0), 0)
    c.payload(0, 0, "x")
    on_topic(s, "GET", "", "/stats")
    on_topic(s, "POST", "", "/split/0")
    on_topic(s, "GET", "", "/stats")
    for t in ("/internalStats", "/properties", "/subscriptions", "/schema", "/consumers", "/partitions"):
        on_topic(s, "GET", "", t)


@scenario(
    24,
    "DELETE of a scalable topic: absent, plain, with a lookup session, a controller registration, a "
    "producer and a consumer on a segment; with force; re-creation",
)
def rest_delete(s: Recorder) -> None:
    on_topic(s, "DELETE", "-absent")
    create(s, 2, "-a")
    c = connected(s, "A")
    look_up(c, top(s, "-a"), 1)
    on_topic(s, "DELETE", "-a")
    s.settle(500)
    on_topic(s, "GET", "-a")
    look_up(c, top(s, "-a"), 2)
    c.prod(seg(s, 0, 0x7FFF, 0, "-a"), 0, t=4)
    create(s, 2, "-b")
    p = seg(s, 0, 0x7FFF, 0, "-b")
    look_up(c, top(s, "-b"), 3)
    join(c, top(s, "-b"), "s", "c1", 3)
    c.prod(p, 1)
    c.sub(p, "s", 4, "Exclusive")
    c.payload(1, 0, "x")
    s.say("delete without force, clients attached")
    on_topic(s, "DELETE", "-b")
    s.settle(700)
    on_topic(s, "GET", "-b")
    c.payload(1, 1, "y", t=1.5)
    on_segment(s, "GET", "0000-7fff-0", "/subscription/s/backlog", "-b")
    s.say("created again")
    create(s, 1, "-b")
    s.settle(400)
    look_up(c, top(s, "-b"), 5)
    on_topic(s, "GET", "-b", "/stats")
    create(s, 1, "-c")
    d = connected(s, "D")
    p = seg(s, 0, 0xFFFF, 0, "-c")
    d.prod(p, 1)
    d.sub(p, "s", 4, "Exclusive")
    s.say("with force")
    on_topic(s, "DELETE", "-c", "?force=true")
    s.settle(700)
    on_topic(s, "GET", "-c")
    on_segment(s, "GET", "0000-ffff-0", "/subscription/s/backlog", "-c")


@scenario(
    25,
    "every /admin/v2/segments route: create, create again, with subscriptions, terminate, subscription "
    "create/delete/backlog/seek/skip-all, delete, errors",
)
def rest_segments(s: Recorder) -> None:
    create(s, 1)
    d = "1000-1fff-7"
    on_segment(s, "PUT", d)
    on_segment(s, "PUT", d)
    on_segment(s, "PUT", d, body=["s1", "s2"])
    on_segment(s, "PUT", "bad")
    on_segment(s, "PUT", "2000-1000-1")
    on_segment(s, "PUT", "0000-fffff-1")
    on_segment(s, "PUT", d, suffix="-noparent")
    on_segment(s, "PUT", d, body={"x": 1})
    on_segment(s, "PUT", d, "/subscription/s3")
    on_segment(s, "PUT", d, "/subscription/s3")
    on_segment(s, "PUT", "3000-3fff-9", "/subscription/s")
    on_segment(s, "GET", d, "/subscription/s3/backlog")
    on_segment(s, "GET", d, "/subscription/none/backlog")
    on_segment(s, "GET", "4000-4fff-1", "/subscription/none/backlog")
    c = connected(s, "A")
    c.prod(f"segment://{s.ns}/t/{d}", 0)
    c.payload(0, 0, "x")
    on_segment(s, "GET", d, "/subscription/s3/backlog")
    on_segment(s, "POST", d, "/subscription/s3/skip-all")
    on_segment(s, "GET", d, "/subscription/s3/backlog")
    on_segment(s, "POST", d, "/subscription/s3/seek?timestamp=0")
    on_segment(s, "GET", d, "/subscription/s3/backlog")
    on_segment(s, "POST", d, "/subscription/none/seek?timestamp=0")
    on_segment(s, "POST", d, "/subscription/none/skip-all")
    on_segment(s, "POST", "4000-4fff-1", "/subscription/s/seek?timestamp=0")
    on_segment(s, "POST", "4000-4fff-1", "/subscription/s/skip-all")
    on_segment(s, "POST", d, "/terminate")
    s.settle(400)
    on_segment(s, "POST", d, "/terminate")
    on_segment(s, "POST", "4000-4fff-1", "/terminate")
    on_segment(s, "DELETE", d, "/subscription/s3")
    on_segment(s, "DELETE", d, "/subscription/none")
    on_segment(s, "DELETE", "4000-4fff-1", "/subscription/s")
    on_segment(s, "DELETE", d)
    c.closed(0.3)
    e = connected(s, "B")
    e.sub(f"segment://{s.ns}/t/{d}", "s1", 1, "Exclusive", t=4)
    on_segment(s, "DELETE", d)
    on_segment(s, "DELETE", d, "?force=true")
    s.settle(400)
    on_segment(s, "DELETE", "4000-4fff-1")
    on_segment(s, "GET", d)
    on_segment(s, "GET", d, "/stats")
    s.rest("GET", f"/admin/v2/segments/{s.ns}/t")
    s.rest("PUT", f"/admin/v2/segments/tr/no-such-namespace/t/{d}")
