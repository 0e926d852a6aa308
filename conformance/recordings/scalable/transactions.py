"""Watches of coordinators, and scalable transactions."""

from __future__ import annotations

from typing import Any

from pulsarium.conformance.recordings.recorder import Connection, Recorder
from pulsarium.conformance.recordings.scalable.common import connected, create, on_segment, on_topic, scenario, seg
from pulsarium.conformance.recordings.scenarios.common import tsend


@scenario(
    34,
    "WATCH_TC_ASSIGNMENTS: snapshot, second watch, same id, close, close unknown; "
    "TC_CLIENT_CONNECT_REQUEST scalable true and false, ids 0, 15, 16",
)
def tc_watch(s: Recorder) -> None:
    c = connected(s, "A")
    for i in (1, 2, 1):
        c.send("WATCH_TC_ASSIGNMENTS", watch_id=i)
        c.expect("WATCH_TC_ASSIGNMENTS_UPDATE", t=4)
    s.quiet(1500)
    c.send("WATCH_TC_ASSIGNMENTS_CLOSE", watch_id=1)
    c.send("WATCH_TC_ASSIGNMENTS_CLOSE", watch_id=9)
    for is_scalable in (True, False):
        for i in (0, 15, 16):
            s.say(f"tc {i} scalable {is_scalable}")
            c.req("TC_CLIENT_CONNECT_REQUEST", tc_id=i, scalable=is_scalable)
    s.rest("GET", "/admin/v3/transactions/coordinators")
    s.rest("GET", "/admin/v3/transactions/coordinatorStats")


def begin(c: Connection, tc: int = 0, scalable: bool = True) -> dict[str, Any]:
    """Begin a transaction; return its id as the fields that name a transaction."""
    r = c.req("NEW_TXN", txn_ttl_millis=60000, tc_id=tc, scalable=scalable)
    begun = r is not None and r.type == "NEW_TXN_RESPONSE"
    return {name: getattr(r.cmd, name) if begun else 0 for name in ("txnid_most_bits", "txnid_least_bits")}


@scenario(
    35,
    "scalable transactions over two segments: NEW_TXN, ADD_PARTITION_TO_TXN, transactional SENDs, commit;"
    " abort; a plain message behind an open transaction; what a consumer sees and when",
)
def txn_commit_abort(s: Recorder) -> None:
    create(s, 2)
    a, b = seg(s, 0, 0x7FFF, 0), seg(s, 0x8000, 0xFFFF, 1)
    c = connected(s, "A")
    d = connected(s, "B")
    d.sub(a, "s", 0, "Exclusive", initialPosition="Earliest")
    d.sub(b, "s", 1, "Exclusive", initialPosition="Earliest")
    d.flow(50, 0)
    d.flow(50, 1)
    c.req("TC_CLIENT_CONNECT_REQUEST", tc_id=3, scalable=True)
    c.prod(a, 0, txn_enabled=True)
    c.prod(b, 1, txn_enabled=True)
    for i, act in enumerate(("COMMIT", "ABORT")):
        x = begin(c, 3)
        c.req("ADD_PARTITION_TO_TXN", partitions=[a, b], scalable=True, **x)
        tsend(c, 0, 10 * i, f"a{i}", x)
        tsend(c, 1, 10 * i, f"b{i}", x)
        c.payload(0, 10 * i + 1, f"plain{i}")
        s.quiet(500)
        s.say(act)
        c.req("END_TXN", txn_action=act, scalable=True, t=8, **x)
        s.quiet(1500)
    s.say("without ADD_PARTITION")
    x = begin(c, 3)
    tsend(c, 0, 50, "a-noadd", x)
    c.req("END_TXN", txn_action="COMMIT", scalable=True, t=8, **x)
    s.quiet(1500)


@scenario(
    36,
    "scalable transaction with ADD_SUBSCRIPTION_TO_TXN and a transactional ACK; abort brings it back, "
    "commit does not; ack of the same message in a second transaction",
)
def txn_ack(s: Recorder) -> None:
    create(s, 1)
    a = seg(s, 0, 0xFFFF, 0)
    c = connected(s, "A")
    c.prod(a, 0)
    for i in range(2):
        c.payload(0, i, f"m{i}")
    c.sub(a, "s", 0, "Shared", initialPosition="Earliest")
    c.flow(50, 0)
    m = c.msgs(2)
    for act in ("ABORT", "COMMIT"):
        x = begin(c)
        c.req("ADD_SUBSCRIPTION_TO_TXN", subscription=[{"topic": a, "subscription": "s"}], scalable=True, **x)
        c.ack(m[0].id(), 0, reply=True, **x)
        y = begin(c)
        s.say("same message in another transaction")
        c.ack(m[0].id(), 0, reply=True, **y)
        c.req("END_TXN", txn_action="ABORT", scalable=True, **y)
        s.say(act)
        c.req("END_TXN", txn_action=act, scalable=True, t=8, **x)
        s.quiet(800)
        c.redeliver((), 0)
        s.settle(800)
    on_segment(s, "GET", "0000-ffff-0", "/subscription/s/backlog")


@scenario(
    37,
    "scalable transactions: unknown id, wrong coordinator, ended twice, commit after abort, time-out of 1"
    " s, END_TXN_ON_PARTITION by a client, scalable=false for a scalable id and the other way round, "
    "segments in a legacy transaction",
)
def txn_errors(s: Recorder) -> None:
    create(s, 1)
    a = seg(s, 0, 0xFFFF, 0)
    c = connected(s, "A")
    with s.unrecorded():  # earlier scenarios looked the coordinators up, and aborted the first transactions
        s.http("GET", "/admin/v3/transactions/coordinators")
        earlier = connected(s, "earlier")
        for _ in range(4):
            earlier.req("END_TXN", txn_action="ABORT", scalable=True, **begin(earlier))
        earlier.close()
    bad: dict[str, Any] = {"txnid_most_bits": 3, "txnid_least_bits": 987654}
    c.req("NEW_TXN", txn_ttl_millis=60000, tc_id=99, scalable=True)
    c.req("NEW_TXN", txn_ttl_millis=60000, tc_id=99)
    c.req("ADD_PARTITION_TO_TXN", partitions=[a], scalable=True, **bad)
    c.req("ADD_SUBSCRIPTION_TO_TXN", subscription=[{"topic": a, "subscription": "s"}], scalable=True, **bad)
    c.req("END_TXN", txn_action="COMMIT", scalable=True, **bad)
    x = begin(c)
    for t in ("COMMIT", "COMMIT", "ABORT"):
        c.req("END_TXN", txn_action=t, scalable=True, **x)
    c.req("ADD_PARTITION_TO_TXN", partitions=[a], scalable=True, **x)
    x = begin(c)
    for t in ("ABORT", "COMMIT"):
        c.req("END_TXN", txn_action=t, scalable=True, **x)
    s.say("scalable id, legacy flag")
    x = begin(c)
    c.req("ADD_PARTITION_TO_TXN", partitions=[a], **x)
    c.req("END_TXN", txn_action="COMMIT", **x)
    s.say("legacy id, scalable flag")
    c.req("TC_CLIENT_CONNECT_REQUEST", tc_id=0)
    y = begin(c, 0, False)
    c.req("ADD_PARTITION_TO_TXN", partitions=[a], scalable=True, **y)
    s.say("legacy transaction on a segment")
    c.req("ADD_PARTITION_TO_TXN", partitions=[a], t=8, **y)
    c.prod(a, 0, txn_enabled=True)
    tsend(c, 0, 0, "legacy", y)
    c.req("END_TXN", txn_action="COMMIT", t=8, **y)
    s.say("unknown txn in SEND and ACK")
    tsend(c, 0, 1, "unknown", bad)
    c.sub(a, "s", 0, "Exclusive", initialPosition="Earliest")
    c.flow(10, 0)
    s.settle(500)
    c.ack({"ledgerId": 1, "entryId": 0}, 0, reply=True, **bad)
    c.req("END_TXN_ON_PARTITION", topic=a, txn_action="COMMIT", **bad)
    c.req("END_TXN_ON_SUBSCRIPTION", subscription={"topic": a, "subscription": "s"}, txn_action="COMMIT", **bad)
    s.settle(300)


@scenario(
    38,
    "a scalable transaction open on a segment that is split: commit after the split; transactional SEND to a child",
)
def txn_split(s: Recorder) -> None:
    create(s, 1)
    a = seg(s, 0, 0xFFFF, 0)
    k = seg(s, 0, 0x7FFF, 1)
    c = connected(s, "A")
    c.sub(a, "s", 0, "Exclusive", initialPosition="Earliest")
    c.flow(10, 0)
    c.prod(a, 0, txn_enabled=True)
    x = begin(c)
    c.req("ADD_PARTITION_TO_TXN", partitions=[a], scalable=True, **x)
    tsend(c, 0, 0, "before", x)
    on_topic(s, "POST", "", "/split/0")
    s.settle(500)
    c.prod(k, 1, txn_enabled=True)
    c.req("ADD_PARTITION_TO_TXN", partitions=[k], scalable=True, **x)
    tsend(c, 1, 0, "after", x)
    c.sub(k, "s", 1, "Exclusive", initialPosition="Earliest")
    c.flow(10, 1)
    c.req("END_TXN", txn_action="COMMIT", scalable=True, t=8, **x)
    s.quiet(2000)
