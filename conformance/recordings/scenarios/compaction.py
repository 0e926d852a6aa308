"""Compaction, and the last message id."""

from __future__ import annotations

from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import B10, EARLIEST, publish, scenario


@scenario(
    94,
    "GET_LAST_MESSAGE_ID: empty topic, after messages, batch, after a batch of one, acked, unknown consumer, "
    "non-persistent, Shared, after delete of all, after truncate",
)
def last_message_id(s: Recorder) -> None:
    a = s.conn("A")
    t = s.topic()
    a.sub(t)
    a.last_id()
    a.prod(t, 0, "p")
    i = publish(a, 2)
    a.last_id()
    b = a.payload(0, 5, batch=B10[:3]).id()
    a.last_id()
    a.payload(0, 9, batch=["one"])
    a.last_id()
    a.flow(100)
    s.settle(200)
    a.ack(i[1], type="Cumulative", reply=True)
    a.last_id()
    a.ack({**b, "ack_set": [6], "batch_size": 3}, reply=True)
    a.last_id()
    s.say("unknown")
    a.last_id(99)
    s.say("non-persistent")
    n = s.topic("n", "non-persistent")
    a.sub(n, "s", 5)
    a.last_id(5)
    a.prod(n, 5, "np")
    a.payload(5, 0, "x")
    a.last_id(5)
    s.say("unload then first thing")
    s.admin("PUT", "/unload")
    s.settle(200)
    a.sub(t, "s", 6)
    a.last_id(6)
    s.say("truncate")
    s.admin("DELETE", "/truncate")
    s.settle(300)
    a.last_id(6)


@scenario(
    95,
    "compaction: keys, null value, no key; read_compacted reader, last id compacted, get_last_message_id before and "
    "after, after all keys deleted",
)
def compaction(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")

    def send(q: Any, k: Any, v: Any, **m: Any) -> Any:
        return a.payload(0, q, v, md=dict(**({"partition_key": k} if k else {}), **m))

    send(0, "k1", "v1")
    send(1, "k2", "v1")
    send(2, "k1", "v2")
    send(3, None, "nokey")
    send(4, "k3", "x")
    send(5, "k3", "")
    send(6, "k4", "", null_value=True)
    a.payload(
        0, 7, batch=[("ba", {"partition_key": "k5"}), ("bb", {"partition_key": "k5"}), ("bc", {"partition_key": "k6"})]
    )
    a.sub(t, "rc0", 0, read_compacted=True, initialPosition="Earliest")
    a.last_id(0)
    a.flow(100)
    s.settle(200)
    s.admin("PUT", "/compaction")
    for _ in range(30):
        if "SUCCESS" in str(s.http("GET", f"/admin/v2/persistent/{s.ns}/t/compaction")[1]):
            break
        s.pump(0.2)
        s.sleep(0.1)
    s.admin("GET", "/compaction")
    a.sub(t, "rc1", 1, read_compacted=True, initialPosition="Earliest")
    a.last_id(1)
    a.flow(100, 1)
    s.settle(300)
    a.sub(t, "rd", 2, durable=False, read_compacted=True, start_message_id=EARLIEST, permits=100)
    s.settle(300)
    s.say("plain consumer sees all")
    a.sub(t, "pl", 3, initialPosition="Earliest", permits=100)
    s.settle(300)
    send(20, "k1", "v3")
    a.last_id(1)
    s.settle(200)


@scenario(
    147,
    "compaction that leaves nothing; last message a tombstone; GET_LAST_MESSAGE_ID of a read_compacted and a plain "
    "consumer; then compaction with a survivor before a tombstone; batch with all compacted out",
)
def compaction_empty(s: Recorder) -> None:
    a = s.conn("A")
    rounds: tuple[tuple[str, list[tuple[str | None, str | None]]], ...] = (
        ("all deleted", [("k", "v"), ("k", None)]),
        ("survivor before a tombstone", [("k1", "v"), ("k2", "v"), ("k2", None)]),
        ("only keyless", [(None, "x")]),
    )
    for n, (name, msgs) in enumerate(rounds):
        t = s.topic(str(n))
        s.say(name)
        a.prod(t, n, "p")
        for i, (k, v) in enumerate(msgs):
            a.payload(
                n,
                i,
                v or "",
                md=dict(**({"partition_key": k} if k else {}), **({"null_value": True} if v is None else {})),
            )
        s.admin("PUT", "/compaction", topic=t)
        for _ in range(30):
            if "SUCCESS" in str(s.http("GET", f"/admin/v2/persistent/{s.ns}/t{n}/compaction")[1]):
                break
            s.pump(0.1)
            s.sleep(0.1)
        a.sub(t, "rc", 10 * n + 1, read_compacted=True, initialPosition="Earliest")
        a.sub(t, "pl", 10 * n + 2, initialPosition="Earliest")
        a.last_id(10 * n + 1)
        a.last_id(10 * n + 2)
        a.flow(10, 10 * n + 1)
        s.settle(300)
        s.admin("GET", "/internalStats", topic=t, pick=lambda v: v["compactedLedger"])
