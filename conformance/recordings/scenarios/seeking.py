"""Seeking."""

from __future__ import annotations

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import B10, EARLIEST, LATEST, MAXL, again, publish, scenario
from pulsarium.conformance.recordings.wire import command_bytes, now_ms, simple


@scenario(
    87,
    "SEEK by id: an entry, earliest, latest, beyond the end, unknown ledger; frame order; what comes after "
    "re-subscribing",
)
def seek_id(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    ids = publish(a, 5)
    a.sub(t, initialPosition="Earliest", permits=100)
    s.settle(200)
    a.ack(ids[4], type="Cumulative")
    places = (
        ("entry 2", ids[2]),
        ("entry 0", ids[0]),
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("beyond the end", {**ids[0], "entryId": 100}),
        ("unknown ledger 1", {"ledgerId": 1, "entryId": 0}),
        ("unknown future ledger", {"ledgerId": ids[0]["ledgerId"] + 100, "entryId": 0}),
        ("entryId -1 of this ledger", {**ids[0], "entryId": MAXL}),
    )
    for cid, (n, i) in enumerate(places):
        s.say(n)
        a.req("SEEK", consumer_id=cid, message_id=i)
        s.settle(250)
        again(s, a, t, "s", cid + 1)
        a.last_id(cid + 1)


@scenario(
    88,
    "SEEK with two Shared consumers on two connections: who gets CLOSE_CONSUMER, before or after SUCCESS; messages "
    "in flight; the client that does not re-subscribe; close after",
)
def seek_order(s: Recorder) -> None:
    p, a, b = (s.conn(x) for x in "PAB")
    t = s.topic()
    p.prod(t, 0, "p")
    ids = publish(p, 6)
    a.sub(t, "x", 0, "Shared", initialPosition="Earliest")
    b.sub(t, "x", 5, "Shared")
    a.flow(2)
    b.flow(2, 5)
    s.settle(200)
    a.req("SEEK", consumer_id=0, message_id=ids[1])
    s.settle(300)
    s.say("old consumer id: FLOW, ACK, CLOSE_CONSUMER, SEEK again")
    a.flow(10)
    a.req("ACK", consumer_id=0, ack_type="Individual", message_id=[ids[1]], t=0.5)
    a.req("SEEK", consumer_id=0, message_id=ids[1])
    a.req("CLOSE_CONSUMER", consumer_id=0)
    s.say("re-subscribe both with the same ids")
    a.sub(t, "x", 0, "Shared")
    b.sub(t, "x", 5, "Shared")
    a.flow(100)
    s.settle(300)
    s.say("two SEEKs in one segment")
    a.raw(
        b"".join(simple(command_bytes("SEEK", consumer_id=0, request_id=r, message_id=ids[2])) for r in (301, 302)),
        type="2 x SEEK",
    )
    s.settle(600)


@scenario(89, "SEEK by publish time: between messages, exactly on one, before all, after all, 0")
def seek_time(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    base = now_ms() - 100000
    for i in range(5):
        a.payload(0, i, f"t{i}", md={"publish_time": base + i * 1000})
    s.note(note="publish times", base=base, step_ms=1000)
    a.sub(t)
    s.settle(100)
    times = (
        ("t2 exactly", base + 2000),
        ("between t1 and t2", base + 1500),
        ("before all", base - 5000),
        ("after all", base + 50000),
        ("future", now_ms() + 100000),
        ("zero", 0),
        ("now", now_ms()),
    )
    for cid, (n, x) in enumerate(times):
        s.say(n)
        a.req("SEEK", consumer_id=cid, message_publish_time=x)
        s.settle(250)
        again(s, a, t, "s", cid + 1)


@scenario(
    90,
    "SEEK into a batch: ack_set set, batch_index only, first_chunk_message_id; then deliveries with ack_set; SEEK "
    "without id or time; SEEK unknown consumer; both id and time",
)
def seek_batch(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    m0 = publish(a, 1)[0]
    b = a.payload(0, 1, batch=B10[:4]).id()
    m2 = a.payload(0, 9, "after").id()
    a.sub(t, "s", 0, initialPosition="Earliest")
    places = (
        ("ack_set 1100b (index 2 and on)", {**b, "batch_index": 1, "ack_set": [12], "batch_size": 4}),
        ("batch_index 1 only", {**b, "batch_index": 1}),
        ("batch_index 0 with batch_size", {**b, "batch_index": 0, "batch_size": 4}),
        ("first_chunk", {**m2, "first_chunk_message_id": m0}),
        ("partition field set", {**m2, "partition": 3}),
    )
    for cid, (n, i) in enumerate(places):
        s.say(n)
        a.req("SEEK", consumer_id=cid, message_id=i)
        s.settle(250)
        again(s, a, t, "s", cid + 1)
        a.last_id(cid + 1)
    last = len(places)
    s.say("neither")
    a.req("SEEK", consumer_id=last)
    s.say("unknown consumer")
    a.req("SEEK", consumer_id=99, message_id=b)
    s.say("both")
    a.req("SEEK", consumer_id=last, message_id=m2, message_publish_time=1)
    s.settle(200)
    s.say("after SEEK into a batch, Shared")
    a.sub(t, "sh", 50, "Shared", initialPosition="Earliest")
    a.req("SEEK", consumer_id=50, message_id={**b, "batch_index": 1, "ack_set": [12], "batch_size": 4})
    s.settle(200)
    again(s, a, t, "sh", 51, "Shared")


@scenario(
    91,
    "SEEK on a reader (non-durable): the subscription dies with the consumer; re-subscribe with start id as clients do",
)
def seek_nondurable(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    ids = publish(a, 4)
    a.sub(t, "reader-1", 0, durable=False, start_message_id=EARLIEST, permits=2)
    s.settle(200)
    a.req("SEEK", consumer_id=0, message_id=ids[3])
    s.settle(300)
    s.subscriptions()
    a.sub(t, "reader-1", 0, durable=False, start_message_id=ids[1], permits=100)
    s.settle(300)


@scenario(92, "REST resetcursor / skip / skip_all / expire while consumers are attached")
def seek_admin(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    ids = publish(a, 6)
    a.sub(t, "x", 0, "Shared", initialPosition="Earliest", permits=2)
    s.settle(200)
    s.say("resetcursor")
    s.admin("POST", "/subscription/x/resetcursor", {**ids[1], "partitionIndex": -1})
    s.settle(300)
    again(s, a, t, "x", 1, "Shared", 2)
    s.say("skip 1")
    s.admin("POST", "/subscription/x/skip/1")
    s.settle(300)
    a.flow(2, 1)
    s.settle(200)
    s.say("skip_all")
    s.admin("POST", "/subscription/x/skip_all")
    s.settle(300)
    a.flow(10, 1)
    publish(a, 1, 20)
    s.settle(300)
    s.say("resetcursor by time 0")
    s.admin("POST", "/subscription/x/resetcursor/0")
    s.settle(300)
    s.say("delete the subscription, plain and forced")
    again(s, a, t, "x", 2, "Shared", 1)
    s.admin("DELETE", "/subscription/x")
    s.admin("DELETE", "/subscription/x?force=true")
    s.settle(300)


@scenario(
    120,
    "SEEK by time with three messages 400 ms apart whose publish_time is one hour old and in reverse order: which "
    "clock counts",
)
def seek_time_broker(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    old = now_ms() - 3600_000
    at = []
    for i in range(3):
        at.append(now_ms())
        a.payload(0, i, f"t{i}", md={"publish_time": old - i * 1000})
        s.sleep(0.4)
    s.note(note="sent at", at=at, publish_times=[old - i * 1000 for i in range(3)])
    a.sub(t)
    for cid, (n, x) in enumerate(
        (
            ("just before the second was sent", at[1] - 50),
            ("its publish_time", old - 1000),
            ("after the last", at[2] + 200),
        )
    ):
        s.say(n)
        a.req("SEEK", consumer_id=cid, message_publish_time=x)
        s.settle(200)
        again(s, a, t, "s", cid + 1)


@scenario(
    124,
    "reader (non-durable) across unload: re-subscribe with the last read id; and across SEEK where the start id "
    "differs from the seek id",
)
def unload_then_seek_reader(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    ids = publish(a, 5)
    a.sub(t, "r", 0, durable=False, start_message_id=EARLIEST, permits=2)
    s.settle(200)
    s.admin("PUT", "/unload")
    s.settle(200)
    a.sub(t, "r", 0, durable=False, start_message_id=ids[1], permits=100)
    s.settle(300)
    s.say("close and open again with another start id")
    a.req("CLOSE_CONSUMER", consumer_id=0)
    a.sub(t, "r", 0, durable=False, start_message_id=ids[3], permits=100)
    s.settle(300)
    s.say("seek to 4, then come with start id 0")
    a.req("SEEK", consumer_id=0, message_id=ids[4])
    s.settle(200)
    a.sub(t, "r", 0, durable=False, start_message_id=ids[0], permits=100)
    s.settle(300)
    s.say("close, then start id 0 once more")
    a.req("CLOSE_CONSUMER", consumer_id=0)
    a.sub(t, "r", 0, durable=False, start_message_id=ids[0], permits=100)
    s.settle(300)


@scenario(131, "SEEK and rollback by time without broker timestamps: publish_time decides", profile="stock")
def stock_seek_time(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    base = now_ms() - 100000
    for i in range(5):
        a.payload(0, i, f"t{i}", md={"publish_time": base + i * 1000})
    s.note(note="publish times", base=base, step_ms=1000)
    a.sub(t)
    s.settle(100)
    times = (
        ("t2 exactly", base + 2000),
        ("between t1 and t2", base + 1500),
        ("before all", base - 5000),
        ("after all", base + 50000),
        ("zero", 0),
    )
    for cid, (n, x) in enumerate(times):
        s.say(n)
        a.req("SEEK", consumer_id=cid, message_publish_time=x)
        s.settle(250)
        again(s, a, t, "s", cid + 1)
    s.say("rollback to between t1 and t2 (new durable sub)")
    a.sub(t, "rb", 50, start_message_rollback_duration_sec=(now_ms() - base - 1500) // 1000, permits=100)
    s.settle(300)
    s.say("rollback 10 s")
    a.sub(t, "rb10", 51, start_message_rollback_duration_sec=10, permits=100)
    s.settle(300)
    s.say("publish times out of order: 30 s ago, then 60 s ago, then 10 s ago")
    t2 = s.topic("2")
    a.prod(t2, 1, "p")
    now = now_ms()
    for i, d in enumerate((30, 60, 10)):
        a.payload(1, i, f"-{d}s", md={"publish_time": now - d * 1000})
    a.sub(t2, "s", 60)
    a.req("SEEK", consumer_id=60, message_publish_time=now - 45000)
    s.settle(200)
    again(s, a, t2, "s", 61)
