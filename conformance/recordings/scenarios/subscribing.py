"""Subscriptions and their consumers."""

from __future__ import annotations

import threading
from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import EARLIEST, LATEST, fill_topic, scenario
from pulsarium.conformance.recordings.wire import command_bytes, now_ms, simple


@scenario(48, "one subscription of each type on a topic with 3 messages: first frames, order, consumer names, defaults")
def subscribe_types(s: Recorder) -> None:
    c = s.conn("A")
    t = s.topic()
    fill_topic(c, t, 3)
    for i, ty in enumerate(("Exclusive", "Shared", "Failover", "Key_Shared")):
        s.say(ty)
        c.sub(t, f"s{i}", i, ty, initialPosition="Earliest", consumer_name=f"c{i}")
        s.quiet(200)
        c.flow(100, i)
        s.quiet(1300)
    s.say("no consumer_name")
    c.sub(t, "s9", 9)
    s.stats(lambda v: v["subscriptions"]["s9"])


@scenario(
    49, "Exclusive taken: other connection, same connection; after close; Exclusive owner that does not answer PING"
)
def subscribe_busy(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()
    a.sub(t)
    s.say("same connection")
    a.sub(t, cid=1)
    s.say("other connection")
    b.sub(t)
    a.req("CLOSE_CONSUMER", consumer_id=0)
    b.sub(t, cid=2)
    b.close()
    s.sleep(0.2)
    c = s.conn("C", auto_pong=False)
    c.sub(t)
    s.say("C will not answer PING")
    d = s.conn("D")
    d.sub(t, t=9)
    s.settle(300)
    c.closed(6)
    d.sub(t, cid=1)


@scenario(50, "joining with another type while consumers are attached and after they left; Key_Shared mode conflict")
def subscribe_type_conflict(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()
    a.sub(t, "x", 0, "Shared")
    for i, ty in enumerate(("Exclusive", "Failover", "Key_Shared", "Shared")):
        b.sub(t, "x", i, ty)
    a.sub(t, "e", 5, "Exclusive")
    b.sub(t, "e", 5, "Shared")
    b.sub(t, "e", 6, "Failover")
    a.sub(t, "f", 6, "Failover")
    b.sub(t, "f", 7, "Exclusive")
    s.settle(1300)
    s.say("type may change once empty")
    a.req("CLOSE_CONSUMER", consumer_id=5)
    b.sub(t, "e", 8, "Shared")
    s.say("Key_Shared auto, then sticky; allowOutOfOrder differs")
    a.sub(t, "k", 9, "Key_Shared")
    b.sub(t, "k", 9, "Key_Shared", keySharedMeta={"keySharedMode": "STICKY", "hashRanges": [{"start": 0, "end": 100}]})
    b.sub(t, "k", 10, "Key_Shared", keySharedMeta={"keySharedMode": "AUTO_SPLIT", "allowOutOfOrderDelivery": True})


@scenario(
    51,
    "SUBSCRIBE with a consumer_id that is live: same sub, other sub, other topic; close unknown consumer id; id "
    "free after close; two in one segment",
)
def subscribe_same_id(s: Recorder) -> None:
    a = s.conn("A")
    t = s.topic()
    a.sub(t)
    a.sub(t)
    a.sub(t, "other")
    a.sub(s.topic("2"))
    s.subscriptions()
    s.say("consumer_id may equal a producer_id")
    a.prod(t, 0, "p")
    a.req("CLOSE_CONSUMER", consumer_id=77)
    a.req("CLOSE_CONSUMER", consumer_id=0)
    a.req("CLOSE_CONSUMER", consumer_id=0)
    a.sub(t, "other")
    a.raw(
        b"".join(
            simple(command_bytes("SUBSCRIBE", topic=t, subscription="z", subType=1, consumer_id=9, request_id=r))
            for r in (201, 202)
        ),
        type="2 x SUBSCRIBE id 9 in one segment",
    )
    s.settle(500)


@scenario(
    52,
    "durable=false with start ids: none, earliest, latest, a specific entry, with batch index, beyond the end, "
    "before the start; default name",
)
def subscribe_nondurable(s: Recorder) -> None:
    a = s.conn("A")
    t = s.topic()
    ids = fill_topic(a, t, 4)
    b = a.payload(50, 10, batch=["b0", "b1", "b2"]).id()
    starts: tuple[tuple[str, dict[str, int] | None], ...] = (
        ("none", None),
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("entry 1", ids[1]),
        ("entry 0", ids[0]),
        ("last plain", ids[3]),
        ("batch index 1", {**b, "batch_index": 1}),
        ("batch index 0", {**b, "batch_index": 0}),
        ("batch no index", b),
        ("batch index 2 of a plain entry", {**ids[1], "batch_index": 2}),
        ("beyond the end", {"ledgerId": b["ledgerId"], "entryId": 900}),
        ("ledger in future", {"ledgerId": b["ledgerId"] + 999, "entryId": 0}),
        ("ledger 0 entry 0", {"ledgerId": 0, "entryId": 0}),
    )
    for i, (name, sid) in enumerate(starts):
        s.say(name)
        start: dict[str, Any] = {"start_message_id": sid} if sid else {}
        a.sub(t, f"reader-{i}", i, durable=False, **start)
        a.flow(100, i)
        s.settle(250)
        a.last_id(i)
    s.subscriptions()
    a.req("CLOSE_CONSUMER", consumer_id=1)
    s.settle(100)
    s.subscriptions()
    s.say("initialPosition Earliest, no start id")
    a.sub(t, "reader-p", 40, durable=False, initialPosition="Earliest", permits=100)
    s.settle(250)


@scenario(
    53,
    "durable=true with start_message_id (new and existing sub), initialPosition Earliest/Latest, "
    "start_message_rollback_duration_sec",
)
def subscribe_durable_start(s: Recorder) -> None:
    a, t = s.producing("A", 50, "p")
    old = now_ms() - 3600_000
    ids = [a.payload(50, i, f"old{i}", md={"publish_time": old}).id() for i in range(3)] + [
        a.payload(50, i, f"new{i}").id() for i in range(3, 5)
    ]

    def go(n: Any, i: Any, **kw: Any) -> Any:
        s.say(n)
        a.sub(t, n.replace(" ", "-"), i, **kw)
        a.flow(100, i)
        s.settle(250)
        a.last_id(i)

    go("start id 1", 0, start_message_id=ids[1])
    go("earliest", 1, initialPosition="Earliest")
    go("latest", 2)
    go("rollback 60", 3, start_message_rollback_duration_sec=60)
    go("rollback 7200", 4, start_message_rollback_duration_sec=7200)
    go("rollback 60 nondurable", 5, start_message_rollback_duration_sec=60, durable=False)
    a.req("CLOSE_CONSUMER", consumer_id=0)
    s.say("start id on an existing durable sub")
    a.sub(t, "start-id-1", 6, start_message_id=ids[4], permits=100)
    s.settle(250)
    go("earliest and start id 3", 7, initialPosition="Earliest", start_message_id=ids[3])


@scenario(54, "read_compacted on each type and on non-persistent")
def subscribe_read_compacted(s: Recorder) -> None:
    a = s.conn("A")
    t = s.topic()
    for i, ty in enumerate(("Exclusive", "Shared", "Failover", "Key_Shared")):
        a.sub(t, f"s{i}", i, ty, read_compacted=True)
    a.sub(s.topic("", "non-persistent"), "n", 9, read_compacted=True)
    a.sub(t, "r", 10, durable=False, read_compacted=True)
    s.settle(1200)


@scenario(
    55,
    "Key_Shared STICKY: no ranges, own overlap, overlap with another, reversed, out of range, touching; then "
    "delivery with gaps",
)
def subscribe_sticky(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()

    def sticky(c: Any, cid: Any, *r: Any) -> Any:
        return c.sub(
            t,
            "k",
            cid,
            "Key_Shared",
            consumer_name=f"c{cid}",
            keySharedMeta={"keySharedMode": "STICKY", "hashRanges": [{"start": x, "end": y} for x, y in r]},
        )

    s.say("empty")
    sticky(a, 0)
    s.say("own overlap")
    sticky(a, 1, (0, 100), (50, 200))
    s.say("reversed")
    sticky(a, 2, (100, 50))
    s.say("out of range")
    sticky(a, 3, (0, 70000))
    s.say("good 0-32767")
    sticky(a, 4, (0, 32767))
    s.say("overlap")
    sticky(b, 5, (32767, 40000))
    s.say("touching")
    sticky(b, 6, (32768, 40000))
    a.flow(100, 4)
    b.flow(100, 6)
    a.prod(t, 0, "p")
    a.payload(0, 0, "m", md={"partition_key": "key-1"})
    for i in range(1, 8):
        a.payload(0, i, f"m{i}", md={"partition_key": f"k{i}"})
    s.settle(400)
    s.stats(lambda v: v["subscriptions"]["k"])


@scenario(56, "Shared with priority levels 0 and 1: who gets what, when level 0 has no permits")
def subscribe_priority(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()
    a.sub(t, "x", 0, "Shared", priority_level=0, consumer_name="hi")
    b.sub(t, "x", 0, "Shared", priority_level=1, consumer_name="lo")
    a.flow(3)
    b.flow(100)
    p = s.conn("P")
    fill_topic(p, t, 6)
    s.settle(400)
    a.flow(2)
    s.settle(200)
    [p.payload(50, 10 + i, f"n{i}") for i in range(4)]
    s.settle(400)


@scenario(
    57,
    "Failover: c-b then c-a on a non-partitioned topic: ACTIVE_CONSUMER_CHANGE order and times, first message, "
    "hand-over with pending",
)
def failover_two(s: Recorder) -> None:
    a, b, p = (s.conn(x) for x in "ABP")
    t = s.topic()
    fill_topic(p, t, 3)
    a.sub(t, "f", 0, "Failover", consumer_name="c-b", initialPosition="Earliest", permits=100)
    s.quiet(1500)
    s.say("second consumer")
    b.sub(t, "f", 0, "Failover", consumer_name="c-a", permits=100)
    s.quiet(1800)
    p.payload(50, 10, "after join")
    s.settle(300)
    s.say("A leaves")
    a.req("CLOSE_CONSUMER", consumer_id=0)
    s.quiet(1600)
    p.payload(50, 11, "after leave")
    s.settle(300)
    s.stats(lambda v: v["subscriptions"]["f"])


@scenario(
    58, "Failover: three consumers, priority levels, the active drops its connection, a higher-priority one joins"
)
def failover_three(s: Recorder) -> None:
    cs = [s.conn(x) for x in "ABC"]
    p, t = s.producing("P", 50, "p")
    for c, n, level in zip(cs, ("c1", "c2", "c3"), (1, 1, 0), strict=True):
        s.say(f"{n} priority {level}")
        c.sub(t, "f", 0, "Failover", consumer_name=n, priority_level=level, permits=100)
        s.quiet(1300)
    p.payload(50, 0, "m0")
    s.settle(300)
    s.say("the active one drops")
    cs[2].close()
    s.quiet(1600)
    p.payload(50, 1, "m1")
    s.settle(300)


@scenario(59, "Failover on partition-0 and partition-1 of a 3-partition topic with two consumers: partitionIndex % n")
def failover_partition(s: Recorder) -> None:
    s.admin("PUT", "/partitions", 3)
    a, b = s.conn("A"), s.conn("B")
    for i in range(3):
        a.sub(s.topic(f"-partition-{i}"), "f", i, "Failover", consumer_name="c1")
    s.quiet(1300)
    for i in range(3):
        b.sub(s.topic(f"-partition-{i}"), "f", i, "Failover", consumer_name="c2")
    s.quiet(1500)


@scenario(60, "SUBSCRIBE and PRODUCER on a partitioned parent; on partitions; on a partition beyond the count")
def subscribe_parent(s: Recorder) -> None:
    s.admin("PUT", "/partitions", 2)
    c = s.conn("A")
    c.sub(s.topic())
    c.prod(s.topic(), 0, "p")
    c.sub(s.topic("-partition-0"), cid=1)
    c.prod(s.topic("-partition-1"), 1, "p")
    c.sub(s.topic("-partition-5"), cid=2)
    c.prod(s.topic("-partition-5"), 2, "p")
    c.flow(10, 1)
    c.prod(s.topic("-partition-0"), 3, "p0")
    c.payload(3, 0, "m0")
    c.msgs(1)
    s.topics()


@scenario(
    61,
    "subscription names with slash, space, empty, %2F, very long; consumer names odd; properties; metadata; replicated",
)
def subscribe_names(s: Recorder) -> None:
    c = s.conn("A")
    t = s.topic()
    for i, n in enumerate(("a/b", "a b", "", "a%2Fb", "ü", "a:b", "x" * 300)):
        s.say(f"name {n[:20]!r}")
        c.sub(t, n, i)
        if not c.open:
            c = s.conn(f"A{i}")
    c.sub(
        t,
        "props",
        20,
        subscription_properties=[{"key": "k", "value": "v"}],
        metadata=[{"key": "mk", "value": "mv"}],
        replicate_subscription_state=True,
    )
    s.settle(200)
    s.stats(lambda v: v["subscriptions"].get("props"))
    c.req("CLOSE_CONSUMER", consumer_id=20)
    c.sub(t, "props", 21, subscription_properties=[{"key": "k", "value": "other"}])
    s.stats(lambda v: v["subscriptions"].get("props", {}).get("subscriptionProperties"))


@scenario(62, "clients v3, v4, v5, v9, v11, v12: what a batch, ACTIVE_CONSUMER_CHANGE and end of topic do to them")
def subscribe_old_client(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    p.payload(0, 0, "m0")
    p.payload(0, 1, batch=["a", "b"])
    for v in (3, 4, 5, 11):
        c = s.conn(f"v{v}", version=v, flags={})
        c.sub(t, f"s{v}", 0, initialPosition="Earliest", permits=100)
        s.settle(400)
        c.close()
    for v in (11, 12):
        c = s.conn(f"f{v}", version=v, flags={})
        c.sub(t, f"f{v}", 0, "Failover")
        s.quiet(1300)
        c.close()
    s.say("Key_Shared of a v13 client")
    c = s.conn("k13", version=13, flags={})
    c.sub(t, "k", 0, "Key_Shared")
    a = s.conn("e8", version=8, flags={})
    a.sub(t, "e8")
    b = s.conn("e9", version=9, flags={})
    b.sub(t, "e9")
    s.say("unload: v4 client is dropped?")
    d = s.conn("u4", version=4, flags={})
    d.sub(t, "u4")
    s.admin("PUT", "/unload")
    s.settle(500)
    b = s.conn("e9b", version=9, flags={})
    b.sub(t, "e9")
    a = s.conn("e8b", version=8, flags={})
    a.sub(t, "e8")
    s.admin("POST", "/terminate")
    s.settle(400)


@scenario(
    117,
    "subscribe on a terminated, drained topic: with FLOW, Earliest, Shared, Failover, Key_Shared, reader; "
    "REACHED_END_OF_TOPIC when; sends pipelined with terminate",
)
def terminated_subscribe(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    a.payload(0, 0, "m0")
    s.admin("POST", "/terminate")
    s.settle(200)
    for i, ty in enumerate(("Exclusive", "Shared", "Failover", "Key_Shared")):
        s.say(f"{ty} latest, FLOW")
        a.sub(t, f"l{i}", i, ty)
        s.quiet(200)
        a.flow(10, i)
        s.quiet(1300)
    for i, ty in enumerate(("Exclusive", "Shared"), 10):
        s.say(f"{ty} earliest")
        a.sub(t, f"l{i}", i, ty, initialPosition="Earliest", permits=10)
        s.quiet(500)
        a.ack(
            {"ledgerId": a.inbox[-1].cmd.message_id.ledgerId, "entryId": 0}
            if a.inbox and a.inbox[-1].type == "MESSAGE"
            else EARLIEST,
            i,
        )
        s.quiet(400)
    s.say("reader")
    a.sub(t, "r", 20, durable=False, start_message_id=EARLIEST, permits=10)
    s.quiet(500)
    a.req("SEEK", consumer_id=20, message_id=LATEST)
    s.quiet(300)
    s.say("an empty topic, terminated")
    t2 = s.topic("2")
    s.admin("PUT", "", topic=t2)
    s.admin("POST", "/terminate", topic=t2)
    a.sub(t2, "x", 30, permits=1)
    s.quiet(400)
    a.last_id(30)
    s.say("client v8")
    o = s.conn("O", version=8)
    o.sub(t2, "o", permits=1)
    s.quiet(300)
    t3 = s.topic("3")
    b = s.conn("B")
    b.prod(t3, 0, "p")
    s.say("consumer attached and fully acked, v21; sends racing with terminate")
    b.sub(t3, "x", 0, permits=10)
    b.payload(0, 0, "m")
    m = b.msgs(1)
    b.ack(m[0].id())
    th = threading.Thread(target=lambda: s.http("POST", f"/admin/v2/persistent/{s.ns}/t3/terminate"))
    th.start()
    for i in range(1, 40):
        b.payload(0, i, f"r{i}", wait=False)
        s.pump(0.002)
    th.join()
    s.settle(500)


@scenario(132, "strictlyVerifySubscriptionName=true: slash, space, colon, unicode", profile="stock")
def stock_strict_names(s: Recorder) -> None:
    c = s.conn("A")
    t = s.topic()
    for i, n in enumerate(("a/b", "a b", "a:b", "a%2Fb", "ü", "a.b-c_d=e")):
        c.sub(t, n, i)


@scenario(
    139, "activeConsumerName on non-partitioned Failover for name sets on three topics (vectors for the hash ring)"
)
def failover_vectors(s: Recorder) -> None:
    c = s.conn("A")
    for k, names in enumerate(
        (
            ("c1", "c2", "c3", "c4", "c5"),
            ("alpha", "beta", "gamma"),
            ("consumer-0", "consumer-1"),
            ("a", "b", "c", "d", "e", "f", "g", "h"),
        )
    ):
        for j in range(3):
            for i, n in enumerate(names):
                c.sub(s.topic(f"{j}"), f"f{k}", 1000 * k + 100 * j + i, "Failover", consumer_name=n)
    s.quiet(1500)
    for j in range(3):
        s.admin(
            "GET",
            "/stats",
            topic=s.topic(f"{j}"),
            pick=lambda v: {
                k: (q["activeConsumerName"], [x["consumerName"] for x in q["consumers"]])
                for k, q in v["subscriptions"].items()
            },
        )
