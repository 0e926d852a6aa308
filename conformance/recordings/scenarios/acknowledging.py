"""Acknowledgements."""

from __future__ import annotations

from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import B10, EARLIEST, consumers, publish, scenario


@scenario(
    74,
    "ACK with request_id: individual, cumulative, several ids, unknown consumer, unknown ledger, already acked, "
    "never delivered, empty list; without request_id",
)
def ack_receipts(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    a.sub(t, permits=100)
    ids = publish(a, 8)
    s.settle(200)
    s.say("individual")
    a.ack(ids[0], reply=True)
    s.say("again")
    a.ack(ids[0], reply=True)
    s.say("two ids")
    a.ack([ids[2], ids[3]], reply=True)
    s.say("cumulative")
    a.ack(ids[4], type="Cumulative", reply=True)
    s.say("cumulative backwards")
    a.ack(ids[1], type="Cumulative", reply=True)
    s.say("cumulative with two ids")
    a.ack([ids[5], ids[6]], type="Cumulative", reply=True)
    s.say("no ids")
    a.req("ACK", consumer_id=0, ack_type="Individual", t=1)
    a.req("ACK", consumer_id=0, ack_type="Cumulative", t=1)
    s.say("unknown ledger")
    a.ack({"ledgerId": 999999, "entryId": 0}, reply=True)
    s.say("entry beyond the end")
    a.ack({"ledgerId": ids[0]["ledgerId"], "entryId": 500}, reply=True)
    s.say("cumulative beyond the end")
    a.ack({"ledgerId": ids[0]["ledgerId"], "entryId": 500}, type="Cumulative", reply=True)
    s.say("-1:-1")
    a.ack(EARLIEST, reply=True)
    s.say("unknown consumer")
    a.req("ACK", consumer_id=99, ack_type="Individual", message_id=[ids[5]], t=1)
    s.say("no request id")
    a.ack(ids[6])
    s.settle(300)
    s.internal_stats(lambda v: v["cursors"])
    a.last_id()


@scenario(75, "ACK with request_id from v16 and v17 clients")
def ack_old_client(s: Recorder) -> None:
    for v in (16, 17):
        a = s.conn(f"v{v}", version=v)
        t = s.topic()
        a.prod(t, 0, f"p{v}")
        a.sub(t, f"s{v}", permits=10)
        i = publish(a, 1)
        a.msgs(1)
        a.req("ACK", consumer_id=0, ack_type="Individual", message_id=i, t=1)


@scenario(76, "cumulative ACK on Shared and Key_Shared: reply and effect")
def ack_shared_cumulative(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    a.sub(t, "sh", 0, "Shared")
    a.sub(t, "ks", 1, "Key_Shared")
    a.sub(t, "fo", 2, "Failover")
    for i in range(3):
        a.flow(100, i)
    s.quiet(1200)
    ids = publish(a, 4)
    s.settle(300)
    for i in range(3):
        a.ack(ids[2], i, "Cumulative", reply=True)
    s.settle(200)
    s.internal_stats(
        lambda v: {k: (c["markDeletePosition"], c["individuallyDeletedMessages"]) for k, c in v["cursors"].items()}
    )


@scenario(
    77,
    "Shared: B acks what A received; ack of an entry by a consumer on Exclusive not delivered to it; ack after "
    "redeliver",
)
def ack_other_consumer(s: Recorder) -> None:
    p, t = s.producing("P", 0, "p")
    a, b = s.conn("A"), s.conn("B")
    a.sub(t, "x", 0, "Shared", consumer_name="c0")
    b.sub(t, "x", 0, "Shared", consumer_name="c1")
    a.flow(10)
    ids = publish(p, 4)
    s.settle(200)
    s.say("B acks A's first")
    b.ack(ids[0], reply=True)
    s.stats(consumers("x"))
    s.say("A acks it too")
    a.ack(ids[0], reply=True)
    s.stats(consumers("x"))
    s.say("A redelivers, then acks the old delivery")
    b.flow(0 + 10)
    a.redeliver([ids[1]])
    a.ack(ids[1], reply=True)
    s.settle(300)
    s.stats(consumers("x"))


@scenario(
    78,
    "batch of 5 on Shared: partial ack_set, redeliver, reconnect: MESSAGE.ack_set; ack_set all zero; longer than "
    "the batch; not carried; batch_size; duplicates",
)
def ack_batch_index(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    batch5 = [f"b{i}" for i in range(5)]
    a.sub(t, "x", 0, "Shared", permits=100)
    i = a.payload(0, 0, batch=batch5).id()
    a.msgs(1)

    def st() -> Any:
        return s.stats(
            lambda v: {
                n: (q["msgBacklog"], [(c["availablePermits"], c["unackedMessages"]) for c in q["consumers"]])
                for n, q in v["subscriptions"].items()
            }
        )

    s.say("ack indexes 1 and 3 (ack_set = remaining 10101b = 21)")
    a.ack({**i, "ack_set": [21], "batch_size": 5}, reply=True)
    st()
    s.say("redeliver")
    a.redeliver([i])
    s.settle(300)
    st()
    s.say("ack index 3 again and 0 (remaining 20)")
    a.ack({**i, "ack_set": [20], "batch_size": 5}, reply=True)
    s.say("reconnect")
    a.req("CLOSE_CONSUMER", consumer_id=0)
    a.sub(t, "x", 1, "Shared", permits=100)
    s.settle(300)
    st()
    s.internal_stats(lambda v: v["cursors"])
    s.say("ack_set all zero")
    a.ack({**i, "ack_set": [0], "batch_size": 5}, 1, reply=True)
    st()
    s.internal_stats(lambda v: v["cursors"]["x"]["markDeletePosition"])
    j = a.payload(0, 10, batch=batch5).id()
    a.msgs(1)
    s.say("ack_set longer than the batch (two words), no batch_size")
    a.ack({**j, "ack_set": [21, 1]}, 1, reply=True)
    st()
    a.redeliver([j], 1)
    s.settle(300)
    s.say("bits beyond the batch: 0xff0f")
    a.ack({**j, "ack_set": [0xFF01], "batch_size": 5}, 1, reply=True)
    a.redeliver([j], 1)
    s.settle(300)
    st()
    s.say("plain ack of the entry (no ack_set)")
    a.ack(j, 1, reply=True)
    st()
    k = a.payload(0, 20, batch=batch5).id()
    a.msgs(1)
    s.say("one id per index: batch_index without ack_set")
    a.ack({**k, "batch_index": 2}, 1, reply=True)
    s.settle(100)
    st()
    a.redeliver([k], 1)
    s.settle(300)
    m = a.payload(0, 30, "plain").id()
    a.msgs(1)
    s.say("ack_set on a plain message")
    a.ack({**m, "ack_set": [1], "batch_size": 1}, 1, reply=True)
    st()
    a.redeliver([m], 1)
    s.settle(300)
    a.ack({**m, "ack_set": [0]}, 1, reply=True)
    st()


@scenario(79, "batch of 5 on Exclusive: cumulative with ack_set, individual with ack_set, reconnect")
def ack_batch_index_exclusive(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    batch5 = [f"b{i}" for i in range(5)]
    a.sub(t, permits=100)
    _i, j = a.payload(0, 0, batch=batch5).id(), a.payload(0, 5, batch=batch5).id()
    a.msgs(2)
    s.say("cumulative up to index 1 of the second batch (remaining 11100b = 28)")
    a.ack({**j, "ack_set": [28], "batch_size": 5}, 0, "Cumulative", reply=True)
    a.last_id()
    a.req("CLOSE_CONSUMER", consumer_id=0)
    a.sub(t, cid=1, permits=100)
    s.settle(300)
    s.internal_stats(lambda v: v["cursors"])
    s.say("cumulative backwards in the same batch")
    a.ack({**j, "ack_set": [30], "batch_size": 5}, 1, "Cumulative", reply=True)
    s.say("individual index 4 (remaining 12)")
    a.ack({**j, "ack_set": [12], "batch_size": 5}, 1, reply=True)
    a.req("CLOSE_CONSUMER", consumer_id=1)
    a.sub(t, cid=2, permits=100)
    s.settle(300)
    s.say("finish: remaining 0")
    a.ack({**j, "ack_set": [0], "batch_size": 5}, 2, "Cumulative", reply=True)
    a.last_id(2)
    s.internal_stats(lambda v: v["cursors"])


@scenario(80, "partly acked batch redelivered: what it costs in permits; unacked counters with batches on Shared")
def ack_batch_index_permits(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    a.sub(t, "x", 0, "Shared", permits=10)
    i = a.payload(0, 0, batch=B10).id()
    a.msgs(1)
    s.stats(consumers("x"))
    s.say("ack 4 of 10")
    a.ack({**i, "ack_set": [0b1111110000], "batch_size": 10}, reply=True)
    s.stats(consumers("x"))
    a.flow(10)
    a.redeliver([i])
    s.settle(300)
    s.stats(consumers("x"))
    s.say("close, join with 10")
    a.req("CLOSE_CONSUMER", consumer_id=0)
    a.sub(t, "x", 1, "Shared", permits=10)
    s.settle(300)
    s.stats(consumers("x"))


@scenario(81, "ACK with each validation_error; effect")
def ack_validation_error(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    a.sub(t, permits=100)
    ids = publish(a, 6)
    s.settle(200)
    errors = ("UncompressedSizeCorruption", "DecompressionError", "ChecksumMismatch", "BatchDeSerializeError")
    for n, i in zip((*errors, "DecryptionError"), ids, strict=False):
        a.ack(i, validation_error=n, reply=True)
    a.last_id()


@scenario(82, "ACK with properties (cumulative and individual): kept by the cursor")
def ack_properties(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    a.sub(t, permits=100)
    ids = publish(a, 4)
    s.settle(200)
    a.ack(ids[1], type="Cumulative", reply=True, properties=[{"key": "k", "value": 42}])
    a.ack(ids[3], reply=True, properties=[{"key": "i", "value": 7}])
    s.internal_stats(lambda v: v["cursors"])


@scenario(
    123,
    "Exclusive: cumulative ack_set all zero against cumulative without ack_set: mark-delete, reconnect; Shared "
    "individual zero without batch_size",
)
def ack_batch_cumulative_zero(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    batch5 = B10[:5]
    a.sub(t, permits=100)
    i, j = a.payload(0, 0, batch=batch5).id(), a.payload(0, 5, batch=batch5).id()
    a.msgs(2)

    def md() -> Any:
        return s.internal_stats(
            lambda v: (v["cursors"]["s"]["markDeletePosition"], v["cursors"]["s"]["individuallyDeletedMessages"])
        )

    s.say("cumulative, ack_set [0], on the first")
    a.ack({**i, "ack_set": [0], "batch_size": 5}, 0, "Cumulative", reply=True)
    md()
    s.say("reconnect")
    a.req("CLOSE_CONSUMER", consumer_id=0)
    a.sub(t, cid=1, permits=100)
    s.settle(300)
    s.say("cumulative, empty ack_set, on the first")
    a.ack(i, 1, "Cumulative", reply=True)
    md()
    s.say("cumulative ack_set [28] on the second, twice, then [16]")
    for v in (28, 28, 16):
        a.ack({**j, "ack_set": [v], "batch_size": 5}, 1, "Cumulative", reply=True)
    md()
    a.redeliver((), 1)
    s.settle(300)


@scenario(
    128,
    "acknowledgmentAtBatchIndexLevelEnabled=false: ack_set partial, zero, cumulative; redeliver; SEEK into a batch",
    profile="stock",
)
def stock_batch_ack_off(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    a.sub(t, "x", 0, "Shared")
    a.sub(t, "e", 1)
    a.flow(100, 0)
    a.flow(100, 1)
    i = a.payload(0, 0, batch=B10[:5]).id()
    s.settle(200)

    def md() -> Any:
        return s.stats(
            lambda v: {
                k: (q["msgBacklog"], [(c["availablePermits"], c["unackedMessages"]) for c in q["consumers"]])
                for k, q in v["subscriptions"].items()
            }
        )

    s.say("partial")
    a.ack({**i, "ack_set": [21], "batch_size": 5}, 0, reply=True)
    a.ack({**i, "ack_set": [28], "batch_size": 5}, 1, "Cumulative", reply=True)
    md()
    a.redeliver([i], 0)
    s.settle(300)
    s.say("all zero")
    a.ack({**i, "ack_set": [0], "batch_size": 5}, 0, reply=True)
    a.ack({**i, "ack_set": [0], "batch_size": 5}, 1, "Cumulative", reply=True)
    md()
    s.say("plain")
    a.ack(i, 0, reply=True)
    a.ack(i, 1, "Cumulative", reply=True)
    md()
    s.say("SEEK into the batch")
    a.req("SEEK", consumer_id=1, message_id={**i, "batch_index": 1, "ack_set": [28], "batch_size": 5})
    s.settle(200)
    a.sub(t, "e", 2, permits=100)
    s.settle(300)
