"""Transactions."""

from __future__ import annotations

import json
from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import MAXL, TCA, publish, scenario, tc, tsend, txn


@scenario(42, "SEND carrying an unknown txn id, on producers with txn_enabled true/false")
def send_unknown_txn(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p", txn_enabled=True)
    a.payload(
        0, 0, "m0", md={"txnid_most_bits": 0, "txnid_least_bits": 987654}, txnid_most_bits=0, txnid_least_bits=987654
    )
    a.closed(0.3)
    a.payload(0, 1, "m1", md={"txnid_most_bits": 99, "txnid_least_bits": 1}, txnid_most_bits=99, txnid_least_bits=1)
    a.closed(0.3)
    if not a.open:
        a = s.conn("A2")
    a.prod(t, 1, "q")
    a.payload(
        1, 0, "m2", md={"txnid_most_bits": 0, "txnid_least_bits": 987655}, txnid_most_bits=0, txnid_least_bits=987655
    )
    a.closed(0.3)
    a.sub(t, initialPosition="Earliest", permits=10)
    s.settle(500)
    s.say("plain one")
    a.payload(1, 1, "plain")
    s.settle(400)
    a.last_id()


@scenario(
    101,
    "how a client finds the coordinator (metadata and lookup of transaction_coordinator_assign); TC_CLIENT_CONNECT "
    "for tc 0, 1, 15, 16, 99; NEW_TXN per tc, ttl 0, unknown tc; old client v18",
)
def txn_connect(s: Recorder) -> None:
    c = tc(s, "A")
    for i in (0, 1, 15, 16, 99):
        c.req("TC_CLIENT_CONNECT_REQUEST", tc_id=i)
    for i in (0, 0, 1, 99):
        c.req("NEW_TXN", txn_ttl_millis=5000, tc_id=i)
    c.req("NEW_TXN", txn_ttl_millis=0, tc_id=0)
    c.req("NEW_TXN", tc_id=0)
    d = s.conn("B", version=18)
    d.req("TC_CLIENT_CONNECT_REQUEST", tc_id=0)
    d.req("NEW_TXN", txn_ttl_millis=1000, tc_id=0)
    s.say("no TC_CLIENT_CONNECT before")
    e = s.conn("C")
    e.req("NEW_TXN", txn_ttl_millis=1000, tc_id=2)


@scenario(
    102, "produce in a transaction: invisible until commit; plain messages behind it wait; last id; commit; frame order"
)
def txn_commit(s: Recorder) -> None:
    c = tc(s)
    t = s.topic()
    c.prod(t, 0, "p")
    a = s.conn("A")
    a.sub(t, initialPosition="Earliest", permits=100)
    c.payload(0, 0, "before")
    s.settle(200)
    x = txn(c)
    c.req("ADD_PARTITION_TO_TXN", partitions=[t], **x)
    tsend(c, 0, 1, "in txn 1", x)
    tsend(c, 0, 2, "in txn 2", x)
    s.quiet(300)
    a.last_id()
    s.say("a plain one behind")
    c.payload(0, 3, "plain behind")
    s.quiet(300)
    a.last_id()
    s.stats(lambda v: (v["ongoingTxnCount"], v["subscriptions"]["s"]["msgBacklog"]))
    s.say("commit")
    c.req("END_TXN", txn_action="COMMIT", **x)
    s.settle(600)
    a.last_id()
    c.payload(0, 4, "after")
    s.settle(200)
    a.last_id()
    s.stats(lambda v: (v["ongoingTxnCount"], v["committedTxnCount"], v["subscriptions"]["s"]["msgBacklog"]))
    s.internal_stats(lambda v: (v["lastConfirmedEntry"], v["cursors"]["s"]))


@scenario(
    103,
    "abort: messages never appear; backlog; last id; send after end; end twice; end with the other action; unknown txn",
)
def txn_abort(s: Recorder) -> None:
    c = tc(s)
    t = s.topic()
    c.prod(t, 0, "p")
    a = s.conn("A")
    a.sub(t, initialPosition="Earliest", permits=100)
    x = txn(c)
    c.req("ADD_PARTITION_TO_TXN", partitions=[t], **x)
    tsend(c, 0, 0, "aborted", x)
    c.payload(0, 1, "plain behind")
    s.quiet(200)
    s.say("abort")
    c.req("END_TXN", txn_action="ABORT", **x)
    s.settle(500)
    a.last_id()
    s.say("twice")
    c.req("END_TXN", txn_action="ABORT", **x)
    s.say("other action")
    c.req("END_TXN", txn_action="COMMIT", **x)
    s.say("unknown txn")
    c.req("END_TXN", txn_action="COMMIT", txnid_most_bits=0, txnid_least_bits=99999)
    c.req("END_TXN", txn_action="COMMIT", txnid_most_bits=77, txnid_least_bits=0)
    s.say("send in the ended txn")
    tsend(c, 0, 2, "late", x)
    c.closed(0.4)
    s.say("add partition to the ended txn")
    if not c.open:
        c = tc(s, "T2")
    c.req("ADD_PARTITION_TO_TXN", partitions=[t], **x)
    c.req("ADD_PARTITION_TO_TXN", partitions=[t], txnid_most_bits=0, txnid_least_bits=99999)
    c.req(
        "ADD_SUBSCRIPTION_TO_TXN",
        subscription=[{"topic": t, "subscription": "s"}],
        txnid_most_bits=0,
        txnid_least_bits=99999,
    )
    y = txn(c)
    s.say("no action given")
    c.req("END_TXN", t=2, **y)
    s.settle(200)
    s.stats(lambda v: (v["abortedTxnCount"], v["subscriptions"]["s"]["msgBacklog"]))


@scenario(
    104,
    "acks in a transaction: not applied until commit; conflict with another txn; plain ack of a pending one; abort "
    "returns; redeliver; cumulative",
)
def txn_ack(s: Recorder) -> None:
    c = tc(s)
    t = s.topic()
    c.prod(t, 0, "p")
    a = s.conn("A")
    a.sub(t, "x", 0, "Shared", initialPosition="Earliest")
    a.sub(t, "e", 1, "Exclusive", initialPosition="Earliest")
    a.flow(100, 0)
    a.flow(100, 1)
    ids = publish(c, 5)
    s.settle(200)
    x, y = txn(c), txn(c)
    for q in (x, y):
        c.req(
            "ADD_SUBSCRIPTION_TO_TXN",
            subscription=[{"topic": t, "subscription": "x"}, {"topic": t, "subscription": "e"}],
            **q,
        )
    s.say("ack 0 in X")
    a.ack(ids[0], reply=True, **x)
    s.say("again in X")
    a.ack(ids[0], reply=True, **x)
    s.say("same in Y: conflict")
    a.ack(ids[0], reply=True, **y)
    s.say("plain ack of 0")
    a.ack(ids[0], reply=True)
    s.say("without request id in Y")
    a.ack(ids[0], **y)
    s.settle(200)
    s.say("redeliver 0")
    a.redeliver([ids[0]])
    s.settle(300)
    s.say("ack 1 in Y, abort Y")
    a.ack(ids[1], reply=True, **y)
    c.req("END_TXN", txn_action="ABORT", **y)
    s.settle(400)
    s.say("commit X")
    c.req("END_TXN", txn_action="COMMIT", **x)
    s.settle(300)
    s.internal_stats(
        lambda v: {k: (q["markDeletePosition"], q["individuallyDeletedMessages"]) for k, q in v["cursors"].items()}
    )
    s.say("cumulative on Exclusive in Z")
    z = txn(c)
    c.req("ADD_SUBSCRIPTION_TO_TXN", subscription=[{"topic": t, "subscription": "e"}], **z)
    a.ack(ids[2], 1, "Cumulative", reply=True, **z)
    a.ack(ids[3], 1, "Cumulative", reply=True, **z)
    w = txn(c)
    s.say("cumulative in W")
    a.ack(ids[4], 1, "Cumulative", reply=True, **w)
    s.say("unknown txn")
    a.ack(ids[4], 1, reply=True, txnid_most_bits=0, txnid_least_bits=88888)
    c.req("END_TXN", txn_action="COMMIT", **z)
    s.settle(300)
    s.say("ack in the ended Z")
    a.ack(ids[4], 1, reply=True, **z)
    s.internal_stats(
        lambda v: {k: (q["markDeletePosition"], q["individuallyDeletedMessages"]) for k, q in v["cursors"].items()}
    )


@scenario(105, "a transaction with ttl 1000 ms that nobody ends; then END_TXN; messages; ack in it")
def txn_timeout(s: Recorder) -> None:
    c = tc(s)
    t = s.topic()
    c.prod(t, 0, "p")
    a = s.conn("A")
    a.sub(t, initialPosition="Earliest", permits=100)
    x = txn(c, 1000)
    c.req("ADD_PARTITION_TO_TXN", partitions=[t], **x)
    tsend(c, 0, 0, "will time out", x)
    c.payload(0, 1, "plain behind")
    s.quiet(3000)
    a.last_id()
    c.req("END_TXN", txn_action="COMMIT", **x)
    tsend(c, 0, 2, "after the timeout", x)
    c.closed(0.3)
    s.settle(300)


@scenario(
    106,
    "END_TXN and ADD_PARTITION from a connection that did not open the transaction; client drops with an open "
    "transaction",
)
def txn_owner(s: Recorder) -> None:
    c = tc(s)
    d = tc(s, "D")
    t = s.topic()
    x = txn(c, 4000)
    d.req("ADD_PARTITION_TO_TXN", partitions=[t], **x)
    d.req("END_TXN", txn_action="COMMIT", **x)
    s.settle(200)
    y = txn(c, 3000)
    c.req("ADD_PARTITION_TO_TXN", partitions=[t], **y)
    c.prod(t, 0, "p")
    tsend(c, 0, 0, "m", y)
    a = s.conn("A")
    a.sub(t, initialPosition="Earliest", permits=10)
    c.close()
    s.quiet(500)
    d.prod(t, 0, "p2")
    d.payload(0, 0, "plain")
    s.quiet(3200)


@scenario(107, "transactional SEND without ADD_PARTITION_TO_TXN, then commit: is it ever visible")
def txn_no_add_partition(s: Recorder) -> None:
    c = tc(s)
    t = s.topic()
    c.prod(t, 0, "p")
    a = s.conn("A")
    a.sub(t, initialPosition="Earliest", permits=100)
    x = txn(c)
    tsend(c, 0, 0, "not added", x)
    c.req("END_TXN", txn_action="COMMIT", **x)
    s.quiet(500)
    c.payload(0, 1, "plain")
    s.quiet(300)
    a.last_id()


@scenario(108, "END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION sent by a client")
def txn_broker_commands(s: Recorder) -> None:
    c = tc(s)
    t = s.topic()
    c.prod(t, 0, "p")
    a = s.conn("A")
    a.sub(t, initialPosition="Earliest", permits=100)
    x = txn(c)
    tsend(c, 0, 0, "m0", x)
    c.req("END_TXN_ON_PARTITION", topic=t, txn_action="COMMIT", txnid_least_bits_of_low_watermark=MAXL, **x)
    s.settle(300)
    c.req("END_TXN_ON_PARTITION", topic=s.topic("absent"), txn_action="COMMIT", **x)
    c.req("END_TXN_ON_SUBSCRIPTION", subscription={"topic": t, "subscription": "s"}, txn_action="COMMIT", **x)
    c.req("END_TXN_ON_SUBSCRIPTION", subscription={"topic": t, "subscription": "nope"}, txn_action="COMMIT", **x)


@scenario(
    109,
    "X-31/X-32: broker entry index with plain batches, transactional batches and commit/abort markers; "
    "getMessageIdByIndex for every index; index seen by a consumer",
)
def txn_index(s: Recorder) -> None:
    c = tc(s)
    t = s.topic()
    c.prod(t, 0, "p")
    a = s.conn("A", flags={"supports_broker_entry_metadata": True})
    a.sub(t, initialPosition="Earliest", permits=1000)
    batch3 = [f"b{i}" for i in range(3)]
    c.payload(0, 0, "plain0")
    c.payload(0, 1, batch=batch3)
    x = txn(c)
    c.req("ADD_PARTITION_TO_TXN", partitions=[t], **x)
    c.payload(0, 10, batch=batch3, md=x, **x)
    tsend(c, 0, 20, "txn single", x)
    c.req("END_TXN", txn_action="COMMIT", **x)
    s.settle(400)
    c.payload(0, 30, "plain after commit")
    y = txn(c)
    c.req("ADD_PARTITION_TO_TXN", partitions=[t], **y)
    c.payload(0, 40, batch=batch3, md=y, **y)
    c.req("END_TXN", txn_action="ABORT", **y)
    s.settle(400)
    c.payload(0, 50, batch=batch3)
    s.settle(400)
    for i in range(-1, 20):
        s.admin("GET", f"/getMessageIdByIndex?index={i}")
    s.admin("GET", "/getMessageIdByIndex")
    s.admin("GET", "/getMessageIdByIndex?index=abc")
    s.internal_stats(lambda v: (v["entriesAddedCounter"], v["lastConfirmedEntry"]))
    s.say("seek to the commit marker's id, then to the abort marker's")
    found = [s.http("GET", f"/admin/v2/persistent/{s.ns}/t/getMessageIdByIndex?index={i}")[1] for i in (6, 9)]
    for i, text in enumerate(text for text in found if "ledgerId" in text):
        marker = json.loads(text)
        a.req("SEEK", consumer_id=i, message_id={key: marker[key] for key in ("ledgerId", "entryId")})
        s.settle(200)
        a.sub(t, "s", i + 1, permits=100)
        s.settle(300)


@scenario(
    129,
    "transactionCoordinatorEnabled=false: TC_CLIENT_CONNECT, NEW_TXN, ADD_*, END_*, transactional SEND, ACK with "
    "txn id, END_TXN_ON_PARTITION",
    profile="stock",
)
def stock_txn_off(s: Recorder) -> None:
    a = s.conn("A")
    t = s.topic()
    txn_id: dict[str, Any] = {"txnid_most_bits": 0, "txnid_least_bits": 1}
    a.req("PARTITIONED_METADATA", topic=TCA)
    a.req("TC_CLIENT_CONNECT_REQUEST", tc_id=0)
    a.req("NEW_TXN", txn_ttl_millis=1000, tc_id=0)
    a.req("ADD_PARTITION_TO_TXN", partitions=[t], **txn_id)
    a.req("ADD_SUBSCRIPTION_TO_TXN", subscription=[{"topic": t, "subscription": "s"}], **txn_id)
    a.req("END_TXN", txn_action="COMMIT", **txn_id)
    a.prod(t, 0, "p")
    a.sub(t, initialPosition="Earliest", permits=10)
    a.payload(0, 0, "m0", md=txn_id, **txn_id)
    a.payload(0, 1, "plain")
    s.settle(300)
    a.ack({"ledgerId": 1, "entryId": 0}, reply=True, **txn_id)
    a.req("END_TXN_ON_PARTITION", topic=t, txn_action="COMMIT", t=2, **txn_id)
    a.req("END_TXN_ON_SUBSCRIPTION", subscription={"topic": t, "subscription": "s"}, txn_action="COMMIT", t=2, **txn_id)
    a.closed(0.3)


@scenario(
    135,
    "SEND in a transaction that was aborted: receipt, does it hold back later plain messages, what releases it; the "
    "same after a commit",
)
def txn_late_send(s: Recorder) -> None:
    c = tc(s)
    t = s.topic()
    c.prod(t, 0, "p")
    a = s.conn("A")
    a.sub(t, initialPosition="Earliest", permits=100)
    for i, act in enumerate(("ABORT", "COMMIT")):
        s.say(act)
        x = txn(c)
        c.req("ADD_PARTITION_TO_TXN", partitions=[t], **x)
        tsend(c, 0, 10 * i, f"in txn {i}", x)
        c.req("END_TXN", txn_action=act, **x)
        s.settle(300)
        s.say("late")
        tsend(c, 0, 10 * i + 1, f"late {i}", x)
        c.payload(0, 10 * i + 2, f"plain {i}")
        s.quiet(600)
        a.last_id()
        s.say("another transaction begins and commits on the topic")
        y = txn(c)
        c.req("ADD_PARTITION_TO_TXN", partitions=[t], **y)
        tsend(c, 0, 10 * i + 3, f"next txn {i}", y)
        c.req("END_TXN", txn_action="COMMIT", **y)
        s.quiet(600)
        a.last_id()
    s.stats(lambda v: {k: v[k] for k in ("ongoingTxnCount", "abortedTxnCount", "committedTxnCount")})


@scenario(148, "PRODUCER with txn_enabled=true on a broker without transactions", profile="stock")
def stock_txn_producer(s: Recorder) -> None:
    a = s.conn("A")
    a.prod(s.topic(), 0, "p", txn_enabled=True)
    a.payload(0, 0, "plain")
