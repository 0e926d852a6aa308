"""Watches and lists of a namespace, schemas and deduplication."""

from __future__ import annotations

import struct
from typing import Any

from crc32c import crc32c

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scalable.common import connected, create, look_up, on_topic, scenario, seg, top


@scenario(
    30,
    "WATCH_SCALABLE_TOPICS: snapshot, diffs on create and delete, burst of creates, property filters, "
    "current_hash right and wrong, bad and missing namespace, same watch id, close",
)
def watch_topics(s: Recorder) -> None:
    with s.unrecorded():  # earlier scenarios created these topics
        s.http("PUT", "/admin/v2/scalable/tr/no-such-namespace/t")
        s.http("PUT", "/admin/v2/scalable/tr/no-such-namespace/x")
    create(s, 1, "-a", {"team": "x"})
    c = connected(s, "A")

    def watch(i: int, ns: str = s.ns, **more: Any) -> None:
        c.send("WATCH_SCALABLE_TOPICS", watch_id=i, namespace=ns, **more)
        name = "WATCH_SCALABLE_TOPICS_UPDATE"
        c.wait(lambda f: f.type == name and f.cmd.watch_id == i, 2, f"{name} {i}")

    watch(1)
    watch(2, property_filters=[{"key": "team", "value": "x"}])
    watch(3, property_filters=[{"key": "team", "value": "y"}])
    create(s, 1, "-b", {"team": "y"})
    s.settle(400)
    create(s, 1, "-c")
    s.settle(400)
    on_topic(s, "DELETE", "-a")
    s.settle(400)
    s.say("split is no membership change")
    on_topic(s, "POST", "-b", "/split/0")
    s.settle(400)
    s.say("persistent topics are not members")
    s.rest("PUT", f"/admin/v2/persistent/{s.ns}/per")
    s.settle(300)
    h = struct.pack("<I", crc32c(",".join(sorted((top(s, "-b"), top(s, "-c")))).encode())).hex()
    s.say("hash of the present set: CRC32C of the sorted names joined by a comma, as 4 bytes little-endian in hex")
    watch(4, current_hash=h)
    watch(5, current_hash="00")
    s.say("namespaces")
    watch(6, ns="tr/no-such-namespace")
    watch(7, ns="no-such/ns")
    watch(8, ns="bad")
    watch(9, ns="")
    s.say("same watch id, other filter")
    watch(1, property_filters=[{"key": "team", "value": "x"}])
    create(s, 1, "-d", {"team": "x"})
    s.settle(400)
    c.send("WATCH_SCALABLE_TOPICS_CLOSE", watch_id=1)
    c.send("WATCH_SCALABLE_TOPICS_CLOSE", watch_id=99)
    on_topic(s, "DELETE", "-d")
    s.settle(400)


@scenario(
    31,
    "GET_TOPICS_OF_NAMESPACE in every mode, WATCH_TOPIC_LIST, and REST lists in a namespace with "
    "scalable, plain, partitioned topics; deleting the namespace",
)
def lists(s: Recorder) -> None:
    c = connected(s, "A")
    c.req("WATCH_TOPIC_LIST", watcher_id=1, namespace=s.ns, topics_pattern=".*")
    create(s, 2)
    s.rest("PUT", f"/admin/v2/persistent/{s.ns}/per")
    s.rest("PUT", f"/admin/v2/persistent/{s.ns}/par/partitions", 2)
    on_topic(s, "POST", "", "/split/0")
    s.settle(500)
    for m in ("PERSISTENT", "NON_PERSISTENT", "ALL"):
        c.req("GET_TOPICS_OF_NAMESPACE", namespace=s.ns, mode=m)
    for p in (
        f"/admin/v2/persistent/{s.ns}",
        f"/admin/v2/namespaces/{s.ns}/topics",
        f"/admin/v2/namespaces/{s.ns}/topics?mode=ALL",
        f"/admin/v2/scalable/{s.ns}",
        f"/admin/v2/persistent/{s.ns}/t",
        f"/admin/v2/persistent/{s.ns}/t/stats",
        f"/admin/v2/namespaces/{s.ns}/bundles",
    ):
        s.rest("GET", p)
    s.say("unload of the bundle with a lookup session")
    look_up(c, top(s), 1)
    c.prod(seg(s, 0x8000, 0xFFFF, 1), 0)
    s.rest("PUT", f"/admin/v2/namespaces/{s.ns}/unload")
    s.settle(800)
    s.rest("DELETE", f"/admin/v2/namespaces/{s.ns}")
    s.rest("DELETE", f"/admin/v2/namespaces/{s.ns}?force=true", timeout=40)
    s.settle(300)
    s.rest("GET", f"/admin/v2/scalable/{s.ns}")


def _record(field: str) -> dict[str, Any]:
    text = '{"type":"record","name":"R","fields":[' + field + "]}"
    return {"name": "x", "type": "Json", "schema_data": text.encode()}


@scenario(
    32,
    "a schema on PRODUCER of one segment; another segment with the same, an incompatible one; GET_SCHEMA "
    "of segment:// and topic://; REST schemas of both; consumer",
)
def schema(s: Recorder) -> None:
    create(s, 2)
    a, b = seg(s, 0, 0x7FFF, 0), seg(s, 0x8000, 0xFFFF, 1)
    c = connected(s, "A")
    one, two = _record('{"name":"a","type":"string"}'), _record('{"name":"a","type":"int"}')
    c.prod(a, 0, schema=one)
    c.prod(b, 1, schema=one)
    c.prod(b, 2, schema=two, t=4)
    for n in (a, b, top(s)):
        c.req("GET_SCHEMA", topic=n)
    c.sub(b, "s", 0, "Shared", schema=two)
    c.req("GET_OR_CREATE_SCHEMA", topic=top(s), schema=two)
    c.req("GET_OR_CREATE_SCHEMA", topic=top(s), schema=one)
    s.rest("GET", f"/admin/v2/schemas/{s.ns}/t/schema")
    s.rest("GET", f"/admin/v2/schemas/{s.ns}/t%2F0000-7fff-0/schema")
    on_topic(s, "POST", "", "/split/0")
    c.prod(seg(s, 0, 0x3FFF, 2), 3, schema=two, t=4)
    c.req("GET_SCHEMA", topic=seg(s, 0, 0x3FFF, 2))


@scenario(
    33,
    "namespace deduplication and a producer name on two segments: last_sequence_id per segment, "
    "duplicates; on the child after a split",
)
def dedup_sequence(s: Recorder) -> None:
    s.policy("POST", "/deduplication", True)
    create(s, 1)
    p = seg(s, 0, 0xFFFF, 0)
    c = connected(s, "A")
    c.prod(p, 0, "P-seg-0")
    for i in (0, 1, 1, 2):
        c.payload(0, i, f"m{i}", name="P-seg-0")
    c.req("CLOSE_PRODUCER", producer_id=0)
    c.prod(p, 0, "P-seg-0")
    on_topic(s, "POST", "", "/split/0")
    s.settle(300)
    c.prod(seg(s, 0, 0x7FFF, 1), 1, "P-seg-1")
    c.payload(1, 2, "n", name="P-seg-1")
