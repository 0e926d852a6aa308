"""Persistent topics that clients use as scalable ones, and their migration."""

from __future__ import annotations

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scalable.common import V5, connected, join, look_up, on_topic, scenario, top


@scenario(
    26,
    "persistent:// without scalable metadata: lookup of an existing plain topic, an absent one, short "
    "form; SCALABLE_TOPIC_SUBSCRIBE on it; nothing is created",
)
def legacy_plain(s: Recorder) -> None:
    s.rest("PUT", f"/admin/v2/persistent/{s.ns}/t")
    c = connected(s, "A")
    look_up(c, top(s, "", "persistent"), 1)
    look_up(c, f"{s.ns}/t", 2)
    look_up(c, top(s, "-absent", "persistent"), 3)
    s.say("topic:// form of a plain topic")
    look_up(c, top(s), 4)
    s.rest("GET", f"/admin/v2/persistent/{s.ns}")
    s.rest("GET", f"/admin/v2/scalable/{s.ns}")
    join(c, top(s, "", "persistent"))
    join(c, top(s))
    c.prod(top(s, "", "persistent"), 0, metadata=V5)
    c.payload(0, 0, "x")
    s.settle(200)


@scenario(
    27,
    "a partitioned topic of 3: synthetic layout, ranges, state; then 5 partitions: is it pushed; then deleted",
)
def legacy_partitioned(s: Recorder) -> None:
    s.rest("PUT", f"/admin/v2/persistent/{s.ns}/t/partitions", 3)
    c = connected(s, "A")
    look_up(c, top(s, "", "persistent"), 1)
    look_up(c, top(s, "-partition-1", "persistent"), 2)
    s.rest("POST", f"/admin/v2/persistent/{s.ns}/t/partitions", 5)
    s.settle(800)
    look_up(c, top(s, "", "persistent"), 3)
    s.rest("DELETE", f"/admin/v2/persistent/{s.ns}/t/partitions")
    s.settle(500)
    look_up(c, top(s, "", "persistent"), 4)


@scenario(
    28,
    "migrate a plain topic: 404, with a v4 producer 409, with a V5-managed one, with force; what the "
    "watcher, the producer and the consumer are told; second migrate; lookups afterwards; PRODUCER on the"
    " old name",
)
def migrate_plain(s: Recorder) -> None:
    on_topic(s, "POST", "-absent", "/migrate")
    t = top(s, "", "persistent")
    s.rest("PUT", f"/admin/v2/persistent/{s.ns}/t")
    w = connected(s, "W")
    look_up(w, t, 1)
    c = connected(s, "A")
    c.prod(t, 0)
    c.payload(0, 0, "m0")
    s.say("v4 producer attached")
    on_topic(s, "POST", "", "/migrate")
    c.req("CLOSE_PRODUCER", producer_id=0)
    c.prod(t, 1, metadata=V5)
    c.sub(t, "s", 0, "Exclusive", initialPosition="Earliest")
    s.say("V5 producer, v4 consumer")
    on_topic(s, "POST", "", "/migrate")
    s.say("force")
    on_topic(s, "POST", "", "/migrate?force=true")
    s.settle(700)
    on_topic(s, "GET")
    on_topic(s, "GET", "", "/stats")
    on_topic(s, "POST", "", "/migrate")
    c.payload(1, 1, "late", t=1.5)
    look_up(w, top(s), 2)
    look_up(w, t, 3)
    c.prod(t, 2, t=3)
    s.say("controller over a migrated layout")
    join(w, top(s), "s", "c1", 9)
    s.settle(300)
    c.flow(5, 0)
    m = c.msgs(1)
    for f in m:
        c.ack(f.id(), 0, reply=True)
    s.quiet(5000)
    on_topic(s, "DELETE", "", "?force=true")
    s.rest("GET", f"/admin/v2/persistent/{s.ns}")


@scenario(
    29,
    "migrate a partitioned topic of 2 with V5-managed clients only: layout (all-to-all parents), pushed "
    "update, old partitions terminated, split afterwards",
)
def migrate_partitioned(s: Recorder) -> None:
    s.rest("PUT", f"/admin/v2/persistent/{s.ns}/t/partitions", 2)
    t = top(s, "", "persistent")
    w = connected(s, "W")
    look_up(w, t, 1)
    c = connected(s, "A")
    c.prod(t + "-partition-0", 0, metadata=V5)
    c.payload(0, 0, "m0")
    on_topic(s, "POST", "", "/migrate")
    s.settle(700)
    on_topic(s, "GET")
    s.rest(
        "GET",
        f"/admin/v2/persistent/{s.ns}/t-partition-0/internalStats",
        pick=lambda v: {k: v.get(k) for k in ("state", "numberOfEntries")},
    )
    on_topic(s, "POST", "", "/split/2")
    s.settle(500)
    s.say("split of a legacy parent")
    on_topic(s, "POST", "", "/split/0")
    s.rest("GET", f"/admin/v2/persistent/{s.ns}/partitioned")
    look_up(w, top(s), 2)
