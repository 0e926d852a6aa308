"""Segments with the ordinary commands."""

from __future__ import annotations

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scalable.common import (
    V5,
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
    8,
    "segment:// with the usual commands: LOOKUP, PARTITIONED_METADATA, PRODUCER, SEND, SUBSCRIBE, FLOW, "
    "ACK, GET_LAST_MESSAGE_ID, CONSUMER_STATS, UNSUBSCRIBE",
)
def segment_produce_consume(s: Recorder) -> None:
    create(s, 2)
    a, b = seg(s, 0, 0x7FFF, 0), seg(s, 0x8000, 0xFFFF, 1)
    c = connected(s, "A")
    c.req("LOOKUP", topic=a)
    c.req("PARTITIONED_METADATA", topic=a)
    c.req("PARTITIONED_METADATA", topic=a, metadata_auto_creation_enabled=False)
    c.prod(a, 0, metadata=V5)
    c.prod(b, 1, name="mine-seg-1")
    for i in range(3):
        c.payload(0, i, f"a{i}", md={"partition_key": f"k{i}"})
    c.payload(
        1,
        0,
        batch=[(b"x", {"partition_key": "k"}), (b"y", {"partition_key": "k"})],
        md={"entry_hash_min": 5, "entry_hash_max": 9},
    )
    c.sub(a, "s", 0, "Exclusive", initialPosition="Earliest")
    c.sub(b, "s", 1, "Shared", initialPosition="Earliest")
    c.flow(10, 0)
    c.flow(10, 1)
    m = c.msgs(4)
    s.say("ack")
    c.ack(m[0].id() if m else {"ledgerId": 0, "entryId": 0}, 0, reply=True)
    c.last_id(0)
    c.req("CONSUMER_STATS", consumer_id=0)
    s.say("REST stats of the segment topic")
    s.rest("GET", f"/admin/v2/persistent/{s.ns}/t%2F0000-7fff-0/stats")
    s.rest("GET", f"/admin/v2/segment/{s.ns}/t/0000-7fff-0/stats")
    on_topic(s, "GET", "", "/stats")
    s.rest("GET", f"/lookup/v2/topic/segment/{s.ns}/t/0000-7fff-0")
    s.rest("GET", f"/lookup/v2/topic/segment/{s.ns}/t%2F0000-7fff-0")
    s.rest("GET", f"/lookup/v2/topic/topic/{s.ns}/t")
    c.req("UNSUBSCRIBE", consumer_id=0)
    c.req("CLOSE_PRODUCER", producer_id=0)
    s.settle(200)


@scenario(
    9,
    "PRODUCER, SUBSCRIBE, LOOKUP, PARTITIONED_METADATA, GET_SCHEMA on a segment that is not there, on "
    "malformed segment names, and on topic:// itself, existing and not",
)
def segment_absent(s: Recorder) -> None:
    create(s, 1)
    for n in (
        seg(s, 0, 0x7FFF, 9),
        seg(s, 0, 0xFFFF, 0, "-absent"),
        f"segment://{s.ns}/t/0000-ffff",
        f"segment://{s.ns}/t",
        f"segment://{s.ns}/t/zz-ffff-0",
        top(s),
        top(s, "-absent"),
        seg(s, 0, 0xFFFF, 0) + "-partition-0",
    ):
        s.say(n)
        c = connected(s, n)
        for ty, f in (
            ("LOOKUP", {}),
            ("PARTITIONED_METADATA", {}),
            ("PRODUCER", {"producer_id": 0}),
            ("SUBSCRIBE", {"subscription": "s", "subType": "Shared", "consumer_id": 0}),
            ("GET_SCHEMA", {}),
        ):
            if not c.open:
                c = connected(s, n + " again")
            c.req(ty, t=4, topic=n, **f)
        c.close()
    s.rest("GET", f"/admin/v2/scalable/{s.ns}")
    s.rest("GET", f"/admin/v2/persistent/{s.ns}")


@scenario(
    10,
    "a split while a producer and an Exclusive and a Shared consumer are on the parent: CLOSE_PRODUCER / "
    "SEND_ERROR / REACHED_END_OF_TOPIC, sends after it, new producer on the sealed one, cursors of the "
    "children",
)
def split_with_clients(s: Recorder) -> None:
    create(s, 1)
    p = seg(s, 0, 0xFFFF, 0)
    w = connected(s, "W")
    c = connected(s, "A")
    d = connected(s, "B")
    look_up(w, top(s))
    join(w, top(s), "x", "c1", 9)
    c.prod(p, 0, metadata=V5)
    d.sub(p, "x", 0, "Exclusive", initialPosition="Earliest")
    d.sub(p, "q", 1, "Shared", initialPosition="Earliest")
    d.flow(10, 0)
    d.flow(1, 1)
    for i in range(3):
        c.payload(0, i, f"m{i}", md={"partition_key": f"k{i}"})
    m = d.msgs(4)
    s.say("split")
    on_topic(s, "POST", "", "/split/0")
    s.settle(600)
    s.say("send on the sealed parent")
    c.payload(0, 3, "late", t=2)
    s.say("new producer on it")
    c.prod(p, 1, t=4)
    s.say("new subscription on the sealed parent, earliest")
    d.sub(p, "late", 2, "Shared", initialPosition="Earliest")
    d.flow(10, 2)
    d.msgs(3)
    s.settle(300)
    s.say("children: cursors of x and q?")
    on_segment(s, "GET", "0000-7fff-1", "/subscription/x/backlog")
    on_segment(s, "GET", "0000-7fff-1", "/subscription/q/backlog")
    on_segment(s, "GET", "0000-ffff-0", "/subscription/x/backlog")
    c.prod(seg(s, 0, 0x7FFF, 1), 2)
    c.payload(2, 0, "child")
    s.say("ack all on the parent")
    for f in m:
        if f.cmd.consumer_id == 0:
            d.ack(f.id(), f.cmd.consumer_id)
    s.quiet(6500)
    on_segment(s, "GET", "0000-ffff-0", "/subscription/x/backlog")


@scenario(
    11,
    "a merge while producers and consumers are on both parents",
)
def merge_with_clients(s: Recorder) -> None:
    create(s, 2)
    a, b = seg(s, 0, 0x7FFF, 0), seg(s, 0x8000, 0xFFFF, 1)
    w = connected(s, "W")
    c = connected(s, "A")
    look_up(w, top(s))
    c.prod(a, 0)
    c.prod(b, 1)
    c.sub(a, "s", 0, "Exclusive")
    c.sub(b, "s", 1, "Exclusive")
    c.flow(5, 0)
    c.flow(5, 1)
    c.payload(0, 0, "a0")
    c.payload(1, 0, "b0")
    on_topic(s, "POST", "", "/merge/0/1")
    s.settle(600)
    c.payload(0, 1, "late", t=1.5)
    c.prod(seg(s, 0, 0xFFFF, 2), 2, metadata=V5)
    c.payload(2, 0, "merged")
    s.settle(300)
