"""Producers and what they send."""

from __future__ import annotations

from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import MAXL, publish, scenario
from pulsarium.conformance.recordings.wire import command_bytes, send_frame, simple


@scenario(
    25,
    "generated name, user name, metadata, close, close again, close unknown id, same id again after close; stats of "
    "each",
)
def producer_basic(s: Recorder) -> None:
    c, t = s.producing("A", 0)
    c.prod(t, 1, "p1", metadata=[{"key": "k", "value": "v"}])
    c.prod(t, 2, "")
    c.prod(t, 3, "p3", user_provided_producer_name=False)
    s.stats(lambda v: v["publishers"])
    for i in (0, 0, 99):
        c.req("CLOSE_PRODUCER", producer_id=i)
    c.prod(t, 0)
    c.payload(0, 5, "five")
    c.payload(0, 3, "three (lower sequence id)")
    c.payload(0, 3, "again")
    c.send("PING")
    c.expect("PONG")


@scenario(
    26, "the same producer name twice: same connection and other connection, user-provided or generated flag, epochs"
)
def producer_same_name(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    s.say("same connection, other producer_id")
    a.prod(t, 1, "p")
    s.say("same connection, higher epoch, other id")
    a.prod(t, 2, "p", epoch=5)
    b = s.conn("B")
    s.say("other connection")
    b.prod(t, 0, "p")
    s.say("other connection, higher epoch")
    b.prod(t, 0, "p", epoch=1)
    s.say("other connection, flag user_provided=false, higher epoch")
    b.prod(t, 0, "p", epoch=2, user_provided_producer_name=False)
    s.settle(300)
    s.stats(lambda v: v["publishers"])


@scenario(27, "PRODUCER for a producer_id that is live: same topic and name, other topic, other name, higher epoch")
def producer_same_id(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    s.say("identical")
    a.prod(t, 0, "p")
    s.say("other name")
    a.prod(t, 0, "q")
    s.say("other topic")
    a.prod(s.topic("2"), 0, "p")
    s.say("higher epoch")
    a.prod(t, 0, "p", epoch=3)
    s.say("two in one segment")
    a.raw(
        b"".join(
            simple(command_bytes("PRODUCER", topic=t, producer_id=9, request_id=r, producer_name="z"))
            for r in (101, 102)
        ),
        type="2 x PRODUCER id 9 in one segment",
    )
    s.settle(500)
    s.stats(lambda v: v["publishers"])


@scenario(28, "generated-name producer re-created with a higher/equal/lower epoch from the same and another connection")
def producer_epoch_takeover(s: Recorder) -> None:
    t = s.topic()
    a = s.conn("A")
    f = a.prod(t, 0)
    n = f.producer_name
    b = s.conn("B")
    s.say("B takes the name, epoch 1")
    b.prod(t, 0, n, epoch=1, user_provided_producer_name=False)
    s.settle(300)
    s.say("A sends")
    a.payload(0, 0, "m", t=1.5)
    s.say("C takes the name, epoch 1 again (equal)")
    d = s.conn("C")
    d.prod(t, 0, n, epoch=1, user_provided_producer_name=False)
    s.say("epoch 0")
    d.prod(t, 1, n, epoch=0, user_provided_producer_name=False)
    s.settle(300)


@scenario(29, "name owned by a connection that no longer answers PING: the newcomer asks, waits, retries")
def producer_dead_owner(s: Recorder) -> None:
    t = s.topic()
    a = s.conn("A", auto_pong=False)
    a.prod(t, 0, "p")
    b = s.conn("B")
    s.say("A will not answer PING")
    b.prod(t, 0, "p", t=9)
    s.settle(300)
    s.say("again")
    b.prod(t, 0, "p", t=9)
    a.closed(6)
    s.say("again")
    b.prod(t, 0, "p")


@scenario(
    30, "Shared present then Exclusive; Exclusive present then Shared, Exclusive; ProducerFenced texts; topic_epoch"
)
def access_shared_exclusive(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()
    a.prod(t, 0, "sh")
    b.prod(t, 0, "ex", producer_access_mode="Exclusive")
    a.req("CLOSE_PRODUCER", producer_id=0)
    s.say("now alone")
    b.prod(t, 0, "ex", producer_access_mode="Exclusive")
    b.payload(0, 0, "m0")
    a.prod(t, 1, "sh")
    a.prod(t, 2, "ex2", producer_access_mode="Exclusive")
    s.stats(lambda v: v["publishers"])
    b.req("CLOSE_PRODUCER", producer_id=0)
    s.say("re-created Exclusive: epoch")
    a.prod(t, 3, "ex2", producer_access_mode="Exclusive")
    s.say("B reconnects with the old topic_epoch")
    b.prod(t, 1, "ex", producer_access_mode="Exclusive", topic_epoch=0)
    a.req("CLOSE_PRODUCER", producer_id=3)
    s.say("nobody there, stale epoch")
    b.prod(t, 2, "ex", producer_access_mode="Exclusive", topic_epoch=0)
    s.say("current epoch")
    b.prod(t, 3, "ex", producer_access_mode="Exclusive", topic_epoch=1)


@scenario(
    31,
    "WaitForExclusive: queue of two, hand-over when the owner closes, hand-over when the connection drops, closing "
    "a waiter",
)
def access_wait(s: Recorder) -> None:
    t = s.topic()
    a, b, c, d = (s.conn(x) for x in "ABCD")
    a.prod(t, 0, "pa", producer_access_mode="Exclusive")
    b.prod(t, 0, "pb", producer_access_mode="WaitForExclusive")
    c.prod(t, 0, "pc", producer_access_mode="WaitForExclusive")
    d.prod(t, 0, "pd", producer_access_mode="WaitForExclusive")
    s.quiet(500)
    s.stats(lambda v: (v["publishers"], v["waitingPublishers"]))
    s.say("a waiter sends")
    b.payload(0, 0, "early", wait=False)
    s.quiet(400)
    s.say("owner closes")
    a.req("CLOSE_PRODUCER", producer_id=0)
    if b.open:
        b.expect("PRODUCER_SUCCESS", t=1)
    s.settle(400)
    s.say("waiter C closes")
    c.req("CLOSE_PRODUCER", producer_id=0)
    s.say("B drops")
    b.close()
    d.expect("PRODUCER_SUCCESS", t=2)
    s.settle(400)
    s.say("the first producer ever, WaitForExclusive, on an empty topic")
    a.prod(s.topic("2"), 5, "x", producer_access_mode="WaitForExclusive")
    s.settle(200)


@scenario(32, "WaitForExclusive while shared producers are connected; then Shared arrives while a waiter is queued")
def access_wait_shared_present(s: Recorder) -> None:
    t = s.topic()
    a, b, c = (s.conn(x) for x in "ABC")
    a.prod(t, 0, "pa")
    b.prod(t, 0, "pb", producer_access_mode="WaitForExclusive")
    s.quiet(300)
    c.prod(t, 0, "pc")
    a.req("CLOSE_PRODUCER", producer_id=0)
    s.quiet(300)
    c.req("CLOSE_PRODUCER", producer_id=0)
    s.settle(500)


@scenario(
    33, "ExclusiveWithFencing over shared, over exclusive, with waiters; what the fenced ones are told; their next SEND"
)
def access_fencing(s: Recorder) -> None:
    t = s.topic()
    a, b, c, d, e = (s.conn(x) for x in "ABCDE")
    a.prod(t, 0, "pa")
    b.prod(t, 0, "pb")
    s.say("C fences A and B")
    c.prod(t, 0, "pc", producer_access_mode="ExclusiveWithFencing")
    s.settle(300)
    s.say("A sends")
    a.payload(0, 0, "m", wait=False)
    s.settle(300)
    d.prod(t, 0, "pd", producer_access_mode="WaitForExclusive")
    s.quiet(200)
    s.say("E fences C and the waiter D")
    e.prod(t, 0, "pe", producer_access_mode="ExclusiveWithFencing")
    s.settle(400)
    s.say("C comes back with its topic epoch")
    c.prod(t, 1, "pc", producer_access_mode="ExclusiveWithFencing", topic_epoch=0)
    c.prod(t, 2, "pc", producer_access_mode="Exclusive")
    c.prod(t, 3, "pc2")


@scenario(34, "namespace encryptionRequired: plain producer, encrypted producer, unencrypted SEND, encrypted SEND")
def encryption_required(s: Recorder) -> None:
    s.policy("POST", "/encryptionRequired", True)
    s.sleep(0.3)
    c, t = s.producing("A", 0, "plain")
    c.prod(t, 1, "enc", encrypted=True)
    c.payload(1, 0, "m0")
    c.closed(0.3)
    if not c.open:
        c = s.conn("A2")
        c.prod(t, 1, "enc2", encrypted=True)
    c.payload(1, 1, "m1", md={"encryption_keys": [{"key": "k", "value": b"v"}]})
    c.closed(0.3)


@scenario(35, "initial_subscription_name on a new topic, existing subscription, empty name; where the cursor stands")
def producer_initial_subscription(s: Recorder) -> None:
    c, t = s.producing("A", 0, "p0")
    c.payload(0, 0, "m0")
    c.prod(t, 1, "p1", initial_subscription_name="init")
    c.prod(t, 2, "p2", initial_subscription_name="init")
    c.prod(t, 3, "p3", initial_subscription_name="")
    s.subscriptions()
    c.sub(t, "init", permits=10)
    c.msgs(1)
    s.quiet(200)


@scenario(
    36,
    "batches: right count, num_messages too low / high / absent, num_messages 0 and -1, empty batch, one-message "
    "batch; then what a consumer gets",
)
def send_batch(s: Recorder) -> None:
    c, t = s.producing("A", 0, "p")
    batch = ["a", "b", "c"]
    c.sub(t, cid=0)
    c.payload(0, 0, batch=batch)
    for i, num in enumerate((2, 5, 0, -1), 10):
        s.say(f"3 messages in the batch, {{'num_messages': {num}}}")
        c.payload(0, i, batch=batch, num_messages=num)
        c.closed(0.3)
        if not c.open:
            c = s.conn(f"A{i}")
            c.prod(t, 0, "p")
            c.sub(t, cid=0)
    s.say("num_messages left out")
    c.payload(0, 20, payload=b"\0\0\0\2\x18\1a" * 3, md={"num_messages_in_batch": 3})
    c.closed(0.3)
    s.say("batch of one")
    c.payload(0, 21, batch=["one"])
    s.say("batch of none")
    c.payload(0, 22, batch=[])
    c.closed(0.3)
    if not c.open:
        c = s.conn("AZ")
        c.prod(t, 0, "p")
        c.sub(t, cid=0)
    s.say("plain with num_messages 1")
    c.payload(0, 23, "x", num_messages=1)
    c.flow(100)
    s.settle(400)
    c.last_id()
    s.stats(lambda v: (v["msgInCounter"], v["subscriptions"]["s"]["msgBacklog"], v["subscriptions"]["s"]["consumers"]))


@scenario(37, "SEND with highest_sequence_id equal, above, below, zero; receipts")
def send_highest_sequence(s: Recorder) -> None:
    c, _t = s.producing("A", 0, "p")
    batch = ["a", "b"]
    c.payload(0, 0, batch=batch, highest_sequence_id=1, md={"highest_sequence_id": 1})
    c.payload(0, 5, batch=batch, highest_sequence_id=5)
    c.payload(0, 9, batch=batch, highest_sequence_id=7)
    c.closed(0.3)
    if c.open:
        c.payload(0, 10, batch=batch, highest_sequence_id=0)
        c.payload(0, 2**63, "big", t=1)
        c.payload(0, MAXL, "biggest", t=1)


@scenario(
    38,
    "SEND with message_id set, marker flag, is_chunk without chunk fields, replicate_to, null_value, unknown "
    "compression, publish_time 0",
)
def send_odd_fields(s: Recorder) -> None:
    c, t = s.producing("A", 0, "p")
    c.sub(t, permits=100)
    c.payload(0, 0, "m0", message_id={"ledgerId": 1, "entryId": 1})
    s.settle(200)
    c.payload(0, 1, "m1", marker=True)
    s.settle(200)
    c.payload(0, 2, "m2", md={"marker_type": 10})
    s.settle(200)
    c.payload(0, 3, "m3", is_chunk=True)
    s.settle(200)
    c.payload(0, 4, "m4", md={"replicate_to": ["__local__"]})
    c.payload(0, 5, "", md={"null_value": True, "partition_key": "k"})
    c.payload(0, 6, "m6", md={"compression": "ZSTD", "uncompressed_size": 3})
    c.payload(0, 7, "m7", md={"publish_time": 0})
    c.payload(0, 8, "m8", name="not-my-name")
    s.settle(300)
    c.last_id()


@scenario(
    39,
    "terminate by REST: open producer's SEND, new producer, second terminate, REACHED_END_OF_TOPIC timings for "
    "consumers with and without backlog, subscribe after",
)
def send_terminated(s: Recorder) -> None:
    a, b, c = (s.conn(x) for x in "ABC")
    t = s.topic()
    a.prod(t, 0, "p")
    a.payload(0, 0, "m0")
    b.sub(t, "drained", initialPosition="Earliest", permits=10)
    m = b.msgs(1)
    b.ack(m[0].id())
    c.sub(t, "behind", initialPosition="Earliest")
    s.settle(200)
    s.admin("POST", "/terminate")
    s.settle(400)
    a.payload(0, 1, "m1")
    a.payload(0, 2, "m2")
    a.prod(t, 1, "p2")
    s.say("C reads its backlog")
    c.flow(10)
    m = c.msgs(1)
    s.settle(300)
    s.say("C acks")
    c.ack(m[0].id())
    s.settle(300)
    s.say("new subscriptions")
    d = s.conn("D")
    d.sub(t, "fresh")
    d.sub(t, "fresh2", 1, initialPosition="Earliest")
    s.settle(300)
    d.flow(1, 1)
    s.settle(300)
    d.last_id(0)
    d.last_id(1)
    d.sub(t, "sh", 2, "Shared")
    s.settle(300)
    s.admin("POST", "/terminate")


@scenario(
    40,
    "namespace deduplication on: last_sequence_id, duplicate SEND, duplicate batch, reconnect of the same name, "
    "lower sequence",
)
def dedup(s: Recorder) -> None:
    s.policy("POST", "/deduplication", True)
    s.sleep(0.5)
    a, t = s.producing("A", 0, "p")
    a.payload(0, 0, "m0")
    a.payload(0, 1, "m1")
    s.say("duplicates")
    a.payload(0, 1, "m1 again")
    a.payload(0, 0, "m0 again")
    a.payload(0, 5, "gap is fine")
    s.say("batch 6..8")
    batch = ["a", "b", "c"]
    a.payload(0, 6, batch=batch, highest_sequence_id=8, md={"highest_sequence_id": 8})
    s.say("same batch")
    a.payload(0, 6, batch=batch, highest_sequence_id=8, md={"highest_sequence_id": 8})
    s.say("overlap 8..10")
    a.payload(0, 8, batch=batch, highest_sequence_id=10, md={"highest_sequence_id": 10})
    s.say("three in one segment: 20,20,21")
    for q in (20, 20, 21):
        a.payload(0, q, f"m{q}", wait=False)
    s.settle(500)
    a.req("CLOSE_PRODUCER", producer_id=0)
    s.say("same name again")
    a.prod(t, 1, "p")
    a.prod(t, 2, "other")
    a.payload(2, 0, "other producer, seq 0")
    a.sub(t, initialPosition="Earliest", permits=100)
    s.settle(400)
    s.stats(lambda v: v["deduplicationStatus"])


@scenario(41, "deduplication across an unload: last_sequence_id after reconnect, in-flight duplicate")
def dedup_unload(s: Recorder) -> None:
    s.policy("POST", "/deduplication", True)
    s.sleep(0.5)
    a, t = s.producing("A", 0, "p")
    a.payload(0, 0, "m0")
    a.payload(0, 4, "m4")
    s.admin("PUT", "/unload")
    s.settle(300)
    s.say("SEND to the closed producer")
    a.payload(0, 5, "m5", wait=False)
    s.settle(300)
    a.prod(t, 0, "p", epoch=1)
    a.payload(0, 4, "m4 again")
    a.payload(0, 5, "m5")


@scenario(
    46,
    "schema on PRODUCER: first, same, incompatible, none while a schema exists, schema_version in the reply; "
    "consumer schema mismatch",
)
def producer_schema(s: Recorder) -> None:
    def av(*f: Any) -> Any:
        return {
            "name": "x",
            "type": "Avro",
            "schema_data": ('{"type":"record","name":"R","fields":[' + ",".join(f) + "]}"),
        }

    fa, fb, fc = (
        '{"name":"a","type":"int"}',
        '{"name":"b","type":["null","string"],"default":null}',
        '{"name":"c","type":"string"}',
    )
    c, t = s.producing("A", 0, "none first")
    c.prod(t, 1, "p1", schema=av(fa))
    c.prod(t, 2, "p2", schema=av(fa))
    c.prod(t, 3, "p3", schema=av(fa, fb))
    c.prod(t, 4, "p4", schema=av(fa, fc))
    c.prod(t, 5, "p5", schema={"name": "x", "type": "String", "schema_data": b""})
    c.prod(t, 6, "no schema")
    c.prod(t, 7, "bad json", schema={"name": "x", "type": "Avro", "schema_data": b"{nope"})
    c.sub(t, "s1", 1, schema=av(fa))
    c.sub(t, "s2", 2, schema=av(fa, fc))
    c.sub(t, "s3", 3, schema={"name": "x", "type": "String", "schema_data": b""})
    c.sub(t, "s4", 4, schema={"name": "x", "type": "AutoConsume", "schema_data": b""})
    c.sub(t, "s5", 5)
    s.policy("POST", "/schemaValidationEnforced", True)
    s.sleep(0.4)
    c.prod(t, 8, "no schema, enforced")


@scenario(47, "maxProducersPerTopic 1 and backlog quota (hold / exception) on PRODUCER and SEND")
def producer_limits(s: Recorder) -> None:
    s.policy("POST", "/maxProducersPerTopic", 1)
    s.sleep(0.4)
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()
    a.prod(t, 0, "p1")
    b.prod(t, 0, "p2")
    s.policy("POST", "/maxConsumersPerSubscription", 1)
    s.policy("POST", "/maxConsumersPerTopic", 2)
    s.sleep(0.4)
    a.sub(t, "x", 0, "Shared")
    b.sub(t, "x", 1, "Shared")
    b.sub(t, "y", 2, "Shared")
    a.sub(t, "z", 3, "Shared")


@scenario(
    118,
    "ExclusiveWithFencing over an Exclusive owner: is the owner told anything, PING, its SEND; stats; a failed "
    "fencing attempt and the owner",
)
def access_fencing_2(s: Recorder) -> None:
    a, b, c = (s.conn(x) for x in "ABC")
    t = s.topic()

    def producers() -> Any:
        return s.stats(lambda v: [(x["producerName"], x["accessMode"]) for x in v["publishers"]])

    a.prod(t, 0, "pa", producer_access_mode="Exclusive")
    b.prod(t, 0, "pb", producer_access_mode="ExclusiveWithFencing")
    s.quiet(500)
    producers()
    s.say("A asks for the same producer id again")
    a.prod(t, 0, "pa", producer_access_mode="Exclusive")
    s.say("C tries fencing with a stale topic_epoch")
    c.prod(t, 0, "pc", producer_access_mode="ExclusiveWithFencing", topic_epoch=0)
    s.quiet(300)
    producers()
    s.say("does B still own?")
    b.payload(0, 0, "m")
    b.closed(0.3)
    producers()
    c.prod(t, 1, "pd")
    producers()


@scenario(
    119, "the waiter whose connection the broker closed after an early SEND; the queue order with a dead waiter first"
)
def wait_exclusive_send(s: Recorder) -> None:
    a, b = s.conn("A"), s.conn("B")
    t = s.topic()
    a.prod(t, 0, "pa", producer_access_mode="Exclusive")
    b.prod(t, 0, "pb", producer_access_mode="WaitForExclusive")
    s.say("the waiter asks again with the same id")
    b.prod(t, 0, "pb", producer_access_mode="WaitForExclusive")
    b.prod(t, 1, "pb", producer_access_mode="WaitForExclusive")
    s.say("owner drops its connection")
    a.close()
    s.settle(500)


@scenario(
    134,
    "backlog quota 1 KiB: producer_request_hold and producer_exception on PRODUCER and on the open producer",
    profile="stock",
)
def stock_backlog_quota(s: Recorder) -> None:
    a = s.conn("A")
    for pol in ("producer_request_hold", "producer_exception"):
        s.rest(
            "POST",
            f"/admin/v2/namespaces/{s.ns}/backlogQuota?backlogQuotaType=destination_storage",
            {"limitSize": 1024, "policy": pol},
        )
        s.sleep(0.4)
        t = s.topic(pol[9])
        a.sub(t, cid=ord(pol[9]))
        a.prod(t, ord(pol[9]), pol)
        for i in range(4):
            a.payload(ord(pol[9]), i, "x" * 400)
        s.sleep(2.75)  # until after a PING, and for less than the 3 s after CLOSE_PRODUCER in which a SEND is ignored
        a.prod(t, ord(pol[9]) + 1, pol + "2")
        a.payload(ord(pol[9]), 9, "x", t=1)


@scenario(
    138,
    "two producers of one connection and one of another, 5 sends each in one segment: order of receipts and ledger "
    "entries",
)
def send_interleaved(s: Recorder) -> None:
    a, _b = s.conn("A"), s.conn("B")
    t = s.topic()
    a.prod(t, 0, "p0")
    a.prod(s.topic("2"), 1, "p1")

    a.raw(
        b"".join(send_frame(i % 2, i, name=f"p{i % 2}") for i in range(10)), type="10 x SEND, producers 0 and 1 in turn"
    )
    s.settle(400)


@scenario(
    146,
    "namespace publish rate 5 msg/s: 15 SENDs in one segment, then PING; dispatch rate 5 msg/s on a topic with 20 "
    "messages; subscribe rate 1 per 30 s",
)
def rate_limits(s: Recorder) -> None:
    a, t = s.producing("A", 0, "p")
    publish(a, 20)
    s.policy("POST", "/publishRate", {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": -1})
    s.sleep(1.2)

    a.raw(b"".join(send_frame(0, i) for i in range(100, 115)) + simple(command_bytes("PING")), type="15 x SEND + PING")
    s.quiet(1500)
    a.send("PING")
    s.quiet(2500)
    s.policy("DELETE", "/publishRate")
    s.policy(
        "POST",
        "/dispatchRate",
        {
            "dispatchThrottlingRateInMsg": 5,
            "dispatchThrottlingRateInByte": -1,
            "ratePeriodInSecond": 1,
            "relativeToPublishRate": False,
        },
    )
    s.sleep(0.5)
    b = s.conn("B")
    b.sub(t, initialPosition="Earliest", permits=100)
    s.quiet(3500)
    s.policy("POST", "/subscribeRate", {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 30})
    s.sleep(0.5)
    s.say("subscribe rate")
    for i in range(3):
        b.sub(t, f"x{i}", 10 + i, "Shared")
