"""Dispatch of messages to consumers, and redelivery."""

from __future__ import annotations

from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import B10, consumers, publish, scenario
from pulsarium.conformance.recordings.wire import command_bytes, now_ms, send_frame, simple


@scenario(
    63, "no FLOW, FLOW 1 one at a time, FLOW 0, FLOW for an unknown consumer, huge FLOW, FLOW while the topic is empty"
)
def flow_basic(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    publish(a, 4)
    a.sub(t, initialPosition="Earliest")
    s.say("no permits")
    s.quiet(500)
    a.flow(1)
    s.settle(300)
    a.flow(1)
    a.flow(1)
    s.settle(300)
    s.say("unknown consumer")
    a.flow(5, 99)
    s.settle(200)
    s.stats(consumers("s"))
    s.say("FLOW 0")
    a.flow(0)
    a.closed(0.5)
    b = s.conn("B")
    b.sub(t, initialPosition="Earliest")
    s.say("2^31-1 permits, twice")
    b.flow(2**31 - 1)
    b.flow(2**31 - 1)
    s.settle(300)
    s.stats(consumers("s"))
    b.flow(2**32 - 1)
    s.settle(300)
    b.closed(0.3)


@scenario(
    64, "1 permit and batches of 10: Exclusive, Shared; permits go negative; next batch waits for how many permits"
)
def flow_batch(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    for i in range(4):
        a.payload(0, i * 10, batch=B10)
    for i, ty in enumerate(("Exclusive", "Shared", "Key_Shared")):
        s.say(ty)
        a.sub(t, f"s{i}", i, ty, initialPosition="Earliest", permits=1)
        s.settle(300)
        s.stats(consumers(f"s{i}"))
        a.flow(8, i)
        s.settle(300)
        a.flow(1, i)
        s.settle(300)
        s.stats(consumers(f"s{i}"))
        a.flow(1, i)
        s.settle(300)
        s.stats(consumers(f"s{i}"))


@scenario(65, "Shared, three consumers with 1, 10 and 1000 permits, 24 messages present, then 12 more one by one")
def shared_round_robin(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    cs = [s.conn(x) for x in "ABC"]
    for i, c in enumerate(cs):
        c.sub(t, "x", 0, "Shared", consumer_name=f"c{i}", initialPosition="Earliest")
    publish(p, 24)
    for c, n in zip(cs, (1, 10, 1000), strict=True):
        c.flow(n)
        s.settle(200)
    s.stats(consumers("x"))
    s.say("one by one")
    publish(p, 12, 100)
    s.settle(300)
    s.stats(consumers("x"))


@scenario(66, "Shared, two consumers with 100 permits, 12 batches of 10: whole batches, how many in a row")
def shared_round_robin_batches(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a, b = s.conn("A"), s.conn("B")
    a.sub(t, "x", 0, "Shared", consumer_name="c0", initialPosition="Earliest")
    b.sub(t, "x", 0, "Shared", consumer_name="c1")
    for i in range(12):
        p.payload(0, i, batch=[f"{i}"] * 10)
    a.flow(100)
    b.flow(100)
    s.settle(300)
    s.stats(consumers("x"))
    a.flow(100)
    b.flow(100)
    s.settle(300)


@scenario(
    67,
    "namespace maxUnackedMessagesPerConsumer 3: Shared blocked, ack releases; Exclusive not blocked; per "
    "subscription 4",
)
def unacked_limit(s: Recorder) -> None:
    s.policy("POST", "/maxUnackedMessagesPerConsumer", 3)
    s.sleep(0.4)
    p, t = s.producing("P", 0, "p")
    a = s.conn("A")
    a.sub(t, "sh", 0, "Shared", initialPosition="Earliest")
    a.sub(t, "ex", 1, "Exclusive", initialPosition="Earliest")
    ids = publish(p, 8)
    a.flow(100, 0)
    a.flow(100, 1)
    s.settle(400)
    s.stats(consumers("sh"))
    s.stats(consumers("ex"))
    s.say("ack one")
    a.ack(ids[0])
    s.settle(300)
    s.say("ack two more")
    a.ack(ids[1])
    a.ack(ids[2])
    s.settle(300)
    s.say("redeliver all")
    a.redeliver()
    s.settle(400)
    s.stats(consumers("sh"))
    s.say("a batch of 10 over the limit")
    t2 = s.topic("2")
    p.prod(t2, 1, "p")
    p.payload(1, 0, batch=B10)
    p.payload(1, 10, batch=B10)
    a.sub(t2, "sh", 2, "Shared", initialPosition="Earliest", permits=100)
    s.settle(400)


@scenario(68, "namespace maxUnackedMessagesPerSubscription 4, two Shared consumers")
def unacked_limit_subscription(s: Recorder) -> None:
    s.policy("POST", "/maxUnackedMessagesPerSubscription", 4)
    s.sleep(0.4)
    p, t = s.producing("P", 0, "p")
    a, b = s.conn("A"), s.conn("B")
    a.sub(t, "x", 0, "Shared", consumer_name="c0", initialPosition="Earliest")
    b.sub(t, "x", 0, "Shared", consumer_name="c1")
    a.flow(100)
    b.flow(100)
    ids = publish(p, 10)
    s.settle(400)
    s.say("A acks the first three, whoever got them")
    a.ack(ids[:3])
    s.settle(400)
    b.ack(ids[3:6])
    s.settle(400)
    s.stats(lambda v: (v["subscriptions"]["x"]["blockedSubscriptionOnUnackedMsgs"], consumers("x")(v)))


@scenario(
    69,
    "Key_Shared, 10 keys over 3 consumers (c0,c1,c2), default selector: who gets which key; keyHashRanges from stats",
)
def key_shared(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    cs = [s.conn(x) for x in "ABC"]
    for i, c in enumerate(cs):
        c.sub(t, "k", 0, "Key_Shared", consumer_name=f"c{i}", permits=1000)
    publish(p, 10, key=lambda i: f"key-{i}")
    publish(p, 10, 10, key=lambda i: f"key-{i - 10}")
    s.settle(300)
    p.payload(0, 50, "no key")
    p.payload(0, 51, "ordering key", md={"partition_key": "key-0", "ordering_key": b"key-5"})
    p.payload(0, 52, batch=[("x", {"partition_key": "key-1"}), ("y", {"partition_key": "key-2"})])
    p.payload(0, 53, batch=[("x", {"partition_key": "key-1"})], md={"partition_key": "key-1"})
    p.payload(0, 54, "b64", md={"partition_key": "a2V5LTE=", "partition_key_b64_encoded": True})
    s.settle(300)
    s.stats(
        lambda v: {
            k: x
            for k, x in v["subscriptions"]["k"].items()
            if k in ("type", "keySharedMode", "allowOutOfOrderDelivery", "consumers")
        }
    )


@scenario(
    70,
    "Key_Shared: a consumer joins while messages are unacked (draining hashes), acks release; a consumer leaves "
    "with pending",
)
def key_shared_join_leave(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a = s.conn("A")
    a.sub(t, "k", 0, "Key_Shared", consumer_name="c0", permits=100)
    ids = publish(p, 6, key=lambda i: f"key-{i}")
    s.settle(200)
    b = s.conn("B")
    b.sub(t, "k", 0, "Key_Shared", consumer_name="c1", permits=100)
    s.say("same keys again, nothing acked")
    publish(p, 6, 10, key=lambda i: f"key-{i - 10}")
    s.settle(400)
    s.stats(
        lambda v: [
            {
                k: c[k]
                for k in ("consumerName", "unackedMessages", "drainingHashesCount", "drainingHashes", "keyHashRanges")
                if k in c
            }
            for c in v["subscriptions"]["k"]["consumers"]
        ]
    )
    s.say("A acks the first six")
    a.ack(ids)
    s.settle(500)
    s.say("third round")
    publish(p, 6, 20, key=lambda i: f"key-{i - 20}")
    s.settle(400)
    s.say("B leaves with pending")
    b.close()
    s.settle(600)


@scenario(71, "Key_Shared with allowOutOfOrderDelivery: join while unacked does not block")
def key_shared_out_of_order(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a, b = s.conn("A"), s.conn("B")
    out_of_order: dict[str, Any] = {"keySharedMeta": {"keySharedMode": "AUTO_SPLIT", "allowOutOfOrderDelivery": True}}
    a.sub(t, "k", 0, "Key_Shared", consumer_name="c0", **out_of_order)
    a.flow(100)
    publish(p, 6, key=lambda i: f"key-{i}")
    s.settle(200)
    b.sub(t, "k", 0, "Key_Shared", consumer_name="c1", **out_of_order)
    b.flow(100)
    publish(p, 6, 10, key=lambda i: f"key-{i - 10}")
    s.settle(400)


@scenario(
    72, "Shared: a consumer leaves (CLOSE_CONSUMER, then connection drop) with pending; redelivery_count; order; joiner"
)
def shared_leave_join(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a, b = s.conn("A"), s.conn("B")
    a.sub(t, "x", 0, "Shared", consumer_name="c0", permits=4)
    publish(p, 8)
    s.settle(200)
    b.sub(t, "x", 0, "Shared", consumer_name="c1", permits=2)
    s.settle(200)
    s.say("A closes with 4 pending")
    a.req("CLOSE_CONSUMER", consumer_id=0)
    s.settle(300)
    b.flow(100)
    s.settle(300)
    s.say("B drops")
    b.close()
    c = s.conn("C")
    c.sub(t, "x", 0, "Shared", consumer_name="c2", permits=100)
    s.settle(400)


@scenario(
    73,
    "Exclusive: close with pending and subscribe again; redelivery_count; partial acks make holes; FLOW before and "
    "after",
)
def exclusive_reconnect(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a = s.conn("A")
    a.sub(t, permits=100)
    ids = publish(p, 6)
    s.settle(200)
    a.ack([ids[1], ids[3]])
    s.settle(100)
    a.req("CLOSE_CONSUMER", consumer_id=0)
    a.sub(t, cid=1, permits=100)
    s.settle(300)
    a.last_id(1)
    s.internal_stats(lambda v: v["cursors"])


@scenario(
    83,
    "REDELIVER on Shared: by ids, empty list, unknown ids, acked ids, other consumer's ids; redelivery_count; order "
    "against new messages",
)
def redeliver_shared(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a, b = s.conn("A"), s.conn("B")
    a.sub(t, "x", 0, "Shared", consumer_name="c0", permits=6)
    ids = publish(p, 6)
    s.settle(200)
    a.ack(ids[0])
    a.flow(100)
    s.say("ids 1 and 3")
    a.redeliver([ids[3], ids[1]])
    s.settle(300)
    s.say("the acked one")
    a.redeliver([ids[0]])
    s.settle(200)
    s.say("unknown id")
    a.redeliver([{"ledgerId": 999, "entryId": 0}])
    s.settle(200)
    s.say("unknown consumer")
    a.redeliver([ids[1]], 99)
    s.settle(200)
    s.say("id 1 again, twice in the list")
    a.redeliver([ids[1], ids[1]])
    s.settle(200)
    s.say("everything (empty list)")
    a.redeliver()
    s.settle(300)
    s.say("B joins; A gives everything back: split?")
    b.sub(t, "x", 0, "Shared", consumer_name="c1", permits=100)
    a.redeliver()
    s.settle(300)
    s.say("B asks to redeliver ids A holds")
    b.redeliver(ids)
    s.settle(300)


@scenario(
    84,
    "REDELIVER on Exclusive and Failover: ids are ignored, rewind to mark-delete with holes; redelivery_count; "
    "consumer_epoch stamped",
)
def redeliver_exclusive(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a = s.conn("A")
    a.sub(t, "ex", 0, permits=100)
    ids = publish(p, 5)
    s.settle(200)
    a.ack(ids[2])
    s.say("ids [4]")
    a.redeliver([ids[4]])
    s.settle(300)
    s.say("empty")
    a.redeliver()
    s.settle(300)
    s.say("with consumer_epoch 1")
    a.redeliver(consumer_epoch=1)
    s.settle(300)
    s.say("epoch 0 again")
    a.redeliver(consumer_epoch=0)
    s.settle(300)
    s.say("epoch 5, with new messages")
    a.redeliver(consumer_epoch=5)
    publish(p, 1, 10)
    s.settle(300)
    s.say("subscribe with consumer_epoch 3 on Exclusive and on Shared")
    a.sub(t, "e3", 1, consumer_epoch=3)
    a.sub(t, "s3", 2, "Shared", consumer_epoch=3)
    a.flow(10, 1)
    a.flow(10, 2)
    publish(p, 1, 20)
    s.settle(300)
    a.redeliver((), 2, consumer_epoch=9)
    s.settle(300)


@scenario(85, "REDELIVER on Key_Shared: order within a key against new messages of that key")
def redeliver_key_shared(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a = s.conn("A")
    a.sub(t, "k", 0, "Key_Shared", permits=100)
    ids = publish(p, 4, key=lambda i: "kA" if i % 2 else "kB")
    s.settle(200)
    a.redeliver([ids[1]])
    publish(p, 2, 10, key=lambda i: "kA" if i % 2 else "kB")
    s.settle(300)
    a.redeliver()
    s.settle(300)
    a.redeliver([ids[3], ids[2]])
    s.settle(300)


@scenario(
    86, "REDELIVER of a batch on Shared: one MESSAGE, redelivery_count, ack_set absent; batch_index in the id ignored"
)
def redeliver_batch(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a = s.conn("A")
    a.sub(t, "x", 0, "Shared", permits=100)
    i = p.payload(0, 0, batch=B10[:3]).id()
    s.settle(200)
    a.redeliver([{**i, "batch_index": 1}])
    s.settle(300)
    a.redeliver([{**i, "batch_index": 0}, {**i, "batch_index": 2}])
    s.settle(300)


@scenario(
    121,
    "Shared, 60 plain messages present, two consumers get 1000 permits: messages in a row per consumer "
    "(dispatcherMaxRoundRobinBatchSize 20); then both have permits and 60 more arrive in one segment",
)
def shared_batch_size(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a, b = s.conn("A"), s.conn("B")
    a.sub(t, "x", 0, "Shared", consumer_name="c0", initialPosition="Earliest")
    b.sub(t, "x", 0, "Shared", consumer_name="c1")
    c = s.conn("C")
    c.sub(t, "x", 0, "Shared", consumer_name="c2")

    def burst(k: Any) -> Any:
        p.raw(
            b"".join(send_frame(0, k + i, b"%d" % (k + i), publish_time=now_ms()) for i in range(60)),
            type="60 x SEND in one segment",
        )
        s.settle(300)

    burst(0)
    a.raw(simple(command_bytes("FLOW", consumer_id=0, messagePermits=1000)), type="FLOW 1000")
    b.flow(1000)
    c.flow(1000)
    s.settle(400)
    s.stats(consumers("x"))
    burst(100)
    s.stats(consumers("x"))


@scenario(
    122, "Key_Shared with equal, absent and empty consumer names; stats keyHashRangeArrays of three named consumers"
)
def key_shared_consumer_names(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()
    for i, n in enumerate(("c0", "c1", "c2")):
        a.sub(t, "k", i, "Key_Shared", consumer_name=n)
    s.stats(
        lambda v: [
            {k: c.get(k) for k in ("consumerName", "keyHashRangeArrays", "keyHashRanges")}
            for c in v["subscriptions"]["k"]["consumers"]
        ]
    )
    s.say("two consumers with the same name")
    a.sub(t, "same", 10, "Key_Shared", consumer_name="x")
    b.sub(t, "same", 10, "Key_Shared", consumer_name="x")
    p = s.conn("P")
    p.prod(t, 0, "p")
    a.flow(100, 10)
    b.flow(100, 10)
    publish(p, 8, key=lambda i: f"key-{i}")
    s.settle(300)
    s.stats(consumers("same"))
