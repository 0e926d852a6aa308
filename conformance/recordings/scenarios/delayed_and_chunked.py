"""Delayed and chunked messages."""

from __future__ import annotations

from typing import Any

from pulsarium.conformance.recordings.recorder import Answer, Connection, Recorder
from pulsarium.conformance.recordings.scenarios.common import consumers, publish, scenario
from pulsarium.conformance.recordings.wire import now_ms


def chunk(c: Connection, u: str, q: int, i: int, n: int) -> Answer:
    """Send chunk i of n of the message u."""
    md = {"uuid": u, "chunk_id": i, "num_chunks_from_msg": n, "total_chunk_msg_size": 2 * n}
    return c.payload(0, q, f"{u}{i}", md=md, is_chunk=True)


@scenario(
    43,
    "deliver_at_time 1.5 s ahead: Shared waits, Exclusive and Failover do not, past times, order on Shared, Key_Shared",
)
def delayed_delivery(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    b = s.conn("B")
    b.sub(t, "ex", 0)
    b.sub(t, "sh", 1, "Shared")
    b.sub(t, "ks", 2, "Key_Shared")
    for i in (0, 1, 2):
        b.flow(100, i)
    s.settle(200)
    a.payload(0, 0, "in 1.5 s", md={"deliver_at_time": now_ms() + 1500})
    a.payload(0, 1, "now")
    a.payload(0, 2, "past", md={"deliver_at_time": now_ms() - 5000})
    a.payload(0, 3, "in 0.7 s", md={"deliver_at_time": now_ms() + 700})
    s.quiet(3500)
    s.stats(
        lambda v: {
            k: (x["msgBacklog"], x["msgDelayed"], x["msgBacklogNoDelayed"]) for k, x in v["subscriptions"].items()
        }
    )


@scenario(44, "namespace maxDeliveryDelay 1000 ms; delayed delivery switched off; deliver_at far away in a batch")
def delayed_limits(s: Recorder) -> None:
    s.policy("POST", "/delayedDelivery", {"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": 1000})
    s.sleep(0.5)
    a, t = s.producing("A", 0, "p")
    a.sub(t, "sh", 0, "Shared", permits=10)
    a.payload(0, 0, "far", md={"deliver_at_time": now_ms() + 60000})
    a.closed(0.3)
    a.payload(0, 1, "near", md={"deliver_at_time": now_ms() + 500})
    s.quiet(1800)
    a.payload(0, 2, batch=["x", "y"], md={"deliver_at_time": now_ms() + 60000})
    s.policy("POST", "/delayedDelivery", {"active": False, "tickTime": 1000, "maxDeliveryDelayInMillis": 0})
    s.sleep(0.5)
    s.say("switched off")
    a.payload(0, 3, "far, but off", md={"deliver_at_time": now_ms() + 60000})
    s.settle(600)


@scenario(
    45, "a message in three chunks: receipts; Exclusive and Shared (two consumers); chunks of two messages interleaved"
)
def chunks(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    b, c = s.conn("B"), s.conn("C")
    b.sub(t, "ex", 0)
    b.sub(t, "sh", 1, "Shared", consumer_name="c1")
    c.sub(t, "sh", 1, "Shared", consumer_name="c2")
    for i in (0, 1):
        b.flow(100, i)
    c.flow(100, 1)
    s.settle(200)

    for i in range(3):
        chunk(a, "u", 0, i, 3)
    s.say("two messages interleaved, one chunk missing its first")
    chunk(a, "v", 1, 0, 2)
    chunk(a, "w", 2, 0, 2)
    chunk(a, "v", 1, 1, 2)
    chunk(a, "w", 2, 1, 2)
    chunk(a, "orphan", 3, 1, 2)
    s.settle(600)
    a.last_id()
    b.last_id(0)


@scenario(
    125,
    "Shared: a chunk that is not the first, alone on the topic; then its first chunk; two consumers leave in between",
)
def chunks_orphan(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a, b = s.conn("A"), s.conn("B")
    a.sub(t, "x", 0, "Shared", consumer_name="c0")
    b.sub(t, "x", 0, "Shared", consumer_name="c1")
    a.flow(100)
    b.flow(100)

    chunk(p, "o", 0, 1, 2)
    s.settle(500)
    p.payload(0, 1, "plain")
    s.settle(400)
    s.say("first chunk of another, its owner leaves, second chunk")
    chunk(p, "w", 2, 0, 3)
    s.settle(200)
    chunk(p, "w", 2, 1, 3)
    s.settle(200)
    owner = a if any(f.type == "MESSAGE" and f.payload == b"w0" for f in a.inbox) else b
    owner.close()
    s.settle(300)
    chunk(p, "w", 2, 2, 3)
    s.settle(600)


@scenario(
    136, "Shared: first chunk delivered, its consumer leaves, later chunks arrive; redelivery of all to the other"
)
def chunks_owner_leaves(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a, b = s.conn("A"), s.conn("B")
    a.sub(t, "x", 0, "Shared", consumer_name="c0")
    b.sub(t, "x", 0, "Shared", consumer_name="c1")
    a.flow(100)
    b.flow(100)

    chunk(p, "w", 2, 0, 3)
    s.settle(200)
    chunk(p, "w", 2, 1, 3)
    s.settle(200)
    owner, other = (a, b) if any(f.type == "MESSAGE" for f in a.inbox) else (b, a)
    s.say(f"{owner.name} leaves")
    owner.close()
    s.settle(300)
    chunk(p, "w", 2, 2, 3)
    s.settle(500)
    s.say("redeliver only the middle chunk")
    ids = [f.id() for f in other.inbox if f.type == "MESSAGE"]
    if len(ids) > 1:
        other.redeliver([ids[1]])
        s.settle(500)
        p.payload(0, 9, "plain")
        s.settle(300)


@scenario(
    144,
    "Shared: REDELIVER when the only consumer has no permits, when it is blocked on unacked, with delayed messages "
    "around; time until the frame",
)
def redelivery_delay(s: Recorder) -> None:
    s.policy("POST", "/maxUnackedMessagesPerConsumer", 2)
    s.sleep(0.4)
    a, t = s.producing("A", 0, "p")
    a.sub(t, "x", 0, "Shared", permits=2)
    ids = publish(a, 4)
    s.settle(200)
    s.say("blocked and without permits")
    a.redeliver()
    s.quiet(300)
    s.say("permits")
    a.flow(10)
    s.settle(500)
    s.say("redeliver one while blocked")
    a.redeliver([ids[0]])
    s.settle(500)
    s.say("redeliver both while blocked")
    a.redeliver(ids[:2])
    s.settle(500)


@scenario(
    145,
    "Shared: how long does an orphan chunk, or a chunk whose consumer left, hold the subscription; stats; what "
    "frees it (reconnect of all, redeliver, ack of the orphan)",
)
def chunks_stall(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a, b = s.conn("A"), s.conn("B")
    a.sub(t, "x", 0, "Shared", consumer_name="c0")
    b.sub(t, "x", 0, "Shared", consumer_name="c1")
    a.flow(100)
    b.flow(100)

    def st() -> Any:
        return s.stats(
            lambda v: {k: (q["msgBacklog"], q["msgInReplay"], consumers("x")(v)) for k, q in v["subscriptions"].items()}
        )

    o = chunk(p, "o", 0, 1, 2).id()
    p.payload(0, 1, "plain")
    s.quiet(2500)
    st()
    s.say("the orphan is acknowledged by hand")
    a.ack(o, reply=True)
    s.quiet(700)
    p.payload(0, 2, "plain 2")
    s.settle(400)
    st()
    s.say("first chunk, then the consumer that has it leaves")
    a.take()
    b.take()
    chunk(p, "w", 3, 0, 3)
    s.settle(300)
    owner, other = (a, b) if any(f.type == "MESSAGE" for f in a.inbox) else (b, a)
    s.say(f"{owner.name} leaves")
    owner.close()
    s.quiet(1500)
    p.payload(0, 4, "plain 3")
    s.quiet(700)
    st()
    s.say("the other one reconnects")
    other.req("CLOSE_CONSUMER", consumer_id=0)
    other.sub(t, "x", 1, "Shared", consumer_name="c9", permits=100)
    s.settle(700)
    st()
