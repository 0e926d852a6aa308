"""Topics that are unloaded, deleted, expired or not persistent; unsubscribing."""

from __future__ import annotations

import time
from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import B10, EARLIEST, MAXL, consumers, publish, scenario
from pulsarium.conformance.recordings.wire import send_frame


@scenario(
    93,
    "UNSUBSCRIBE: alone, with others attached, force, unknown consumer, twice, non-durable, failover standby; "
    "subscription gone?",
)
def unsubscribe(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()

    def ls() -> Any:
        return s.subscriptions()

    a.sub(t, "one", 0)
    a.req("UNSUBSCRIBE", consumer_id=0)
    ls()
    s.say("twice")
    a.req("UNSUBSCRIBE", consumer_id=0)
    a.req("UNSUBSCRIBE", consumer_id=99)
    s.say("FLOW after it")
    a.flow(1)
    s.settle(100)
    a.sub(t, "two", 1, "Shared")
    b.sub(t, "two", 1, "Shared")
    s.say("shared with another")
    a.req("UNSUBSCRIBE", consumer_id=1)
    s.say("force")
    a.req("UNSUBSCRIBE", consumer_id=1, force=True)
    s.settle(300)
    ls()
    a.sub(t, "fo", 2, "Failover", consumer_name="c1")
    s.quiet(1100)
    b.sub(t, "fo", 2, "Failover", consumer_name="c2")
    s.settle(1200)
    s.say("failover standby unsubscribes")
    b.req("UNSUBSCRIBE", consumer_id=2)
    s.say("the active one")
    a.req("UNSUBSCRIBE", consumer_id=2)
    ls()
    a.sub(t, "nd", 3, durable=False)
    a.req("UNSUBSCRIBE", consumer_id=3)
    ls()
    s.say("consumer id 0 again")
    a.sub(t, "one", 0)


@scenario(96, "CONSUMER_STATS: live consumer, unknown consumer, closed consumer")
def consumer_stats(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    a.sub(t, "x", 0, "Shared", consumer_name="c0", permits=5)
    publish(a, 2)
    s.settle(200)
    a.req("CONSUMER_STATS", consumer_id=0)
    s.say("Exclusive")
    a.sub(t, "e", 1)
    a.req("CONSUMER_STATS", consumer_id=1)
    s.say("closed consumer")
    a.req("CLOSE_CONSUMER", consumer_id=0)
    a.req("CONSUMER_STATS", consumer_id=0, t=1)
    a.closed(0.3)
    b = s.conn("B")
    s.say("unknown consumer")
    b.req("CONSUMER_STATS", consumer_id=99, t=1)
    b.closed(0.3)


@scenario(
    112,
    "unload topic, bundle, namespace with producers and consumers of every type: CLOSE frames, order; reconnect at "
    "once; FLOW/ACK for the closed consumer",
)
def unload(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()
    a.prod(t, 0, "p")
    b.sub(t, "ex", 0)
    b.sub(t, "sh", 1, "Shared")
    b.flow(100, 0)
    b.flow(100, 1)
    ids = publish(a, 3)
    s.settle(200)
    b.ack(ids[0], 1)
    s.say("topic unload")
    s.admin("PUT", "/unload")
    s.settle(300)
    s.say("commands for the closed ones")
    b.flow(5)
    b.req("ACK", consumer_id=1, ack_type="Individual", message_id=[ids[1]], t=0.5)
    b.req("CLOSE_CONSUMER", consumer_id=0)
    a.req("CLOSE_PRODUCER", producer_id=0)
    b.req("UNSUBSCRIBE", consumer_id=1)
    b.last_id(1)
    s.say("reconnect")
    b.sub(t, "ex", 0)
    b.sub(t, "sh", 1, "Shared")
    b.flow(100, 0)
    b.flow(100, 1)
    s.settle(300)
    a.prod(t, 0, "p", epoch=1)
    s.say("namespace unload")
    s.rest("PUT", f"/admin/v2/namespaces/{s.ns}/unload")
    s.settle(400)
    s.say("produce without a new lookup, then after one")
    a.prod(t, 1, "p")
    a.req("LOOKUP", topic=t)
    a.prod(t, 2, "p")
    a.payload(2, 50, "x")


@scenario(
    113,
    "delete a topic with a producer and consumers connected: plain (refused), force: frames; then produce, "
    "subscribe; auto-creation; non-existing",
)
def delete_topic(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()
    a.prod(t, 0, "p")
    b.sub(t, "ex", 0, permits=10)
    publish(a, 1)
    s.settle(200)
    s.admin("DELETE", "")
    s.settle(200)
    s.say("force")
    s.admin("DELETE", "?force=true")
    s.settle(400)
    a.payload(0, 9, "x", wait=False)
    s.settle(200)
    s.say("again")
    s.admin("DELETE", "?force=true")
    b.sub(t, "ex", 0, force_topic_creation=False)
    b.sub(t, "ex", 1, permits=10)
    a.prod(t, 1, "p")
    a.payload(1, 0, "new life")
    s.settle(300)
    s.say("delete namespace force")
    s.rest("DELETE", f"/admin/v2/namespaces/{s.ns}?force=true")
    s.settle(500)
    a.prod(t, 3, "p3")
    a.req("LOOKUP", topic=t)


@scenario(
    114,
    "non-persistent: produce without subscribers, with, without permits (drops), receipts, Shared, ack, redeliver, "
    "seek, reconnect, last id, batch, 3 in a row",
)
def non_persistent(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic("", "non-persistent")
    a.prod(t, 0, "p")
    a.payload(0, 0, "nobody")
    b.sub(t, "ex", 0)
    a.payload(0, 1, "no permits")
    b.flow(2)
    s.settle(200)
    a.payload(0, 2, "one")
    a.payload(0, 3, batch=B10[:3])
    a.payload(0, 4, "third")
    s.settle(300)
    s.admin(
        "GET",
        "/stats",
        domain="non-persistent",
        pick=lambda v: (v["subscriptions"]["ex"].get("msgDropRate"), v["msgDropRate"], consumers("ex")(v)),
    )
    b.sub(t, "sh", 1, "Shared", permits=10)
    s.say("ack, redeliver, seek, consumer stats")
    a.payload(0, 5, "x")
    m = b.msgs(1)
    b.ack(m[0].id() if m else EARLIEST, 1, reply=True)
    b.redeliver((), 1)
    s.settle(200)
    b.req("SEEK", consumer_id=1, message_id=EARLIEST)
    b.req("SEEK", consumer_id=1, message_publish_time=1)
    b.last_id(1)
    b.req("CONSUMER_STATS", consumer_id=1)
    b.req("UNSUBSCRIBE", consumer_id=1)
    b.sub(t, "fo", 2, "Failover")
    s.quiet(1200)
    b.sub(t, "ks", 3, "Key_Shared")
    b.sub(t, "nd", 4, durable=False, start_message_id=EARLIEST)
    s.say("earliest on a non-persistent")
    b.sub(t, "e", 5, initialPosition="Earliest")
    s.settle(100)


@scenario(
    115,
    "non-persistent: maxConcurrentNonPersistentMessagePerConnection: 1500 sends in one segment, receipts with -1:-1",
)
def non_persistent_overload(s: Recorder) -> None:
    a = s.conn("A")
    t = s.topic("", "non-persistent")
    a.prod(t, 0, "p")
    buf = b""
    for i in range(1500):
        buf += send_frame(0, i)
    n0 = len(s.lines)
    a.raw(buf, type="1500 x SEND in one segment")
    end = time.monotonic() + 4
    while len(a.inbox) < 1500 and time.monotonic() < end:
        s.pump(0.2)
    got = a.take()
    bad = [f.cmd.sequence_id for f in got if f.cmd.HasField("message_id") and f.cmd.message_id.ledgerId == MAXL]
    del s.lines[n0 + 6 :]
    s.note(
        note="summary of the receipts (only the first five are kept above)",
        received=len(got),
        minus_one=len(bad),
        first_bad=bad[:5],
        order_kept=[f.cmd.sequence_id for f in got] == sorted(f.cmd.sequence_id for f in got),
    )


@scenario(133, "maxConcurrentNonPersistentMessagePerConnection=2: 200 sends in one segment, receipts", profile="stock")
def stock_nonpersistent_overload(s: Recorder) -> None:
    a = s.conn("A")
    t = s.topic("", "non-persistent")
    a.prod(t, 0, "p")
    b = s.conn("B")
    b.sub(t, permits=1000)
    buf = b"".join(send_frame(0, i) for i in range(200))
    n0 = len(s.lines)
    a.raw(buf, type="200 x SEND in one segment")
    s.settle(600)
    got = a.take()
    bad = [f.cmd.sequence_id for f in got if f.cmd.message_id.ledgerId == MAXL]
    keep = s.lines[n0 : n0 + 12]
    del s.lines[n0:]
    s.lines += keep
    s.note(
        note="summary (only the first lines are kept above)",
        receipts=len(got),
        minus_one=len(bad),
        delivered=len(b.take()),
        first_bad=bad[:5],
        order_kept=[f.cmd.sequence_id for f in got] == sorted(f.cmd.sequence_id for f in got),
    )


@scenario(
    140,
    "REST expireMessages and a 1 s message TTL against a Shared and an Exclusive subscription with undelivered and "
    "unacked messages",
)
def expire(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    a.sub(t, "sh", 0, "Shared")
    a.sub(t, "ex", 1)
    ids = publish(a, 4)
    a.flow(2, 0)
    s.settle(200)
    s.sleep(2.2)
    s.admin("POST", "/subscription/sh/expireMessages/1")
    s.settle(300)
    a.flow(10, 0)
    publish(a, 1, 10)
    s.settle(300)
    s.say("acks of expired ones")
    a.ack(ids[0], 0, reply=True)
    s.admin("POST", "/all_subscription/expireMessages/3600")
    a.flow(10, 1)
    s.settle(300)
    s.internal_stats(lambda v: {k: q["markDeletePosition"] for k, q in v["cursors"].items()})


@scenario(
    142,
    "unsubscribe-all and delete: CLOSE of the last consumer leaves topic; DELETE without force; create subscription "
    "by REST at latest/earliest/id; second creation",
)
def auto_topic_delete(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    ids = publish(a, 3)
    s.admin("PUT", "/subscription/l", {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1, "partitionIndex": -1})
    s.admin("PUT", "/subscription/e", {"ledgerId": -1, "entryId": -1, "partitionIndex": -1})
    s.admin("PUT", "/subscription/m", {**ids[1], "partitionIndex": -1})
    s.admin("PUT", "/subscription/none")
    s.admin("PUT", "/subscription/l", {"ledgerId": -1, "entryId": -1, "partitionIndex": -1})
    for i, n in enumerate(("l", "e", "m", "none")):
        s.say(n)
        a.sub(t, n, i, permits=10)
        s.settle(200)
