"""Broker entry metadata and indexes."""

from __future__ import annotations

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import B10, publish, scenario


@scenario(110, "MESSAGE to v16..v21 clients with and without supports_broker_entry_metadata; peek; batches")
def broker_entry_metadata(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    p.payload(0, 0, "m0")
    p.payload(0, 1, batch=B10[:3])
    n = 0
    for v in (10, 15, 16, 17, 18, 21):
        for fl in (False, True):
            c = s.conn(
                f"v{v}{'+' if fl else '-'}", version=v, flags={"supports_broker_entry_metadata": True} if fl else {}
            )
            c.sub(t, f"s{n}", 0, initialPosition="Earliest")
            n += 1
            c.flow(10)
            c.msgs(2)
            c.close()


@scenario(
    111,
    "index across unload (new ledger), getMessageIdByIndex on partition, partitioned parent, non-persistent, absent "
    "topic, trimmed",
)
def index_continuity(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    publish(p, 2)
    p.payload(0, 5, batch=B10[:3])
    s.admin("PUT", "/unload")
    s.settle(200)
    p.prod(t, 1, "p")
    publish(p, 2, 10, 1)
    c = s.conn("C", flags={"supports_broker_entry_metadata": True})
    c.sub(t, initialPosition="Earliest", permits=10)
    s.settle(300)
    for i in range(8):
        s.admin("GET", f"/getMessageIdByIndex?index={i}")
    s.admin("PUT", "/partitions", 2, topic=s.topic("p"))
    p.prod(s.topic("p-partition-1"), 2, "pp")
    publish(p, 1, 0, 2)
    s.admin("GET", "/getMessageIdByIndex?index=0", topic=s.topic("p-partition-1"))
    s.admin("GET", "/getMessageIdByIndex?index=0", topic=s.topic("p-partition-0"))
    s.admin("GET", "/getMessageIdByIndex?index=0", topic=s.topic("p"))
    s.admin("GET", "/getMessageIdByIndex?index=0", topic=s.topic("absent"))
    s.admin("GET", "/getMessageIdByIndex?index=0", domain="non-persistent")
    s.say("trim: delete all, then truncate")
    s.admin("DELETE", "/truncate")
    s.settle(500)
    s.admin("GET", "/getMessageIdByIndex?index=0")


@scenario(
    130,
    "no interceptors: MESSAGE to a v21 client with the flag; getMessageIdByIndex with good, absent, -1, unknown topic",
    profile="stock",
)
def stock_no_entry_metadata(s: Recorder) -> None:
    a = s.conn("A", flags={"supports_broker_entry_metadata": True})
    t = s.topic()
    a.prod(t, 0, "p")
    a.sub(t, permits=10)
    publish(a, 2)
    s.settle(300)
    for q in ("?index=0", "?index=-1", "", "?index=abc"):
        s.admin("GET", "/getMessageIdByIndex" + q)
    s.admin("GET", "/getMessageIdByIndex?index=0", topic=s.topic("absent"))


@scenario(
    141,
    "getMessageIdByIndex on an existing non-persistent topic, on an empty persistent topic; peek and message-by-id "
    "headers",
)
def index_non_persistent(s: Recorder) -> None:
    a = s.conn("A")
    n = s.topic("", "non-persistent")
    a.prod(n, 0, "p")
    a.payload(0, 0, "x")
    s.admin("GET", "/getMessageIdByIndex?index=0", domain="non-persistent")
    s.admin("PUT", "", topic=s.topic("e"))
    s.admin("GET", "/getMessageIdByIndex?index=0", topic=s.topic("e"))
