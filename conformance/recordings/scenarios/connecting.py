"""Connecting, frames, and what keeps a connection alive."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from crc32c import crc32c

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import scenario
from pulsarium.conformance.recordings.wire import base, command_bytes, send_frame, simple
from pulsarium.proto.generated import PulsarApi_pb2 as pb


@scenario(1, "CONNECT with protocol versions absent,0,4,5,12,17,19,20,21,22,30,-1: what CONNECTED says", warm=False)
def connect_versions(s: Recorder) -> None:
    for v in (None, 0, 4, 5, 12, 17, 19, 20, 21, 22, 30, -1):
        c = s.conn(f"v{'none' if v is None else v}", version=v, flags={})
        c.close()


@scenario(2, "CONNECT with no flags, every flag, flags false; does CONNECTED change", warm=False)
def connect_feature_flags(s: Recorder) -> None:
    names = [f.name for f in pb.FeatureFlags.DESCRIPTOR.fields]
    s.conn("none", flags={})
    s.conn("all", flags=dict.fromkeys(names, True))
    s.conn("false", flags=dict.fromkeys(names, False))


@scenario(3, "CONNECT with auth method/data while authentication is off; proxy fields; original principal", warm=False)
def connect_auth_fields(s: Recorder) -> None:
    s.conn("token", auth_method_name="token", auth_data=b"abc")
    s.conn("enum", auth_method="AuthMethodYcaV1")
    s.conn("proxyurl", proxy_to_broker_url="localhost:6650")
    pv = s.conn("proxyver", proxy_version="1.0")
    pv.closed(0.3)
    s.conn("origprin", original_principal="someone")
    s.conn("authchal", version=13, auth_method_name="none")
    s.quiet(300)


@scenario(4, "commands sent before CONNECT, each on its own connection", warm=False)
def command_before_connect(s: Recorder) -> None:
    commands: tuple[tuple[str, dict[str, Any]], ...] = (
        ("PING", {}),
        ("PONG", {}),
        ("LOOKUP", {"topic": s.topic(), "request_id": 1}),
        ("PARTITIONED_METADATA", {"topic": s.topic(), "request_id": 1}),
        ("PRODUCER", {"topic": s.topic(), "producer_id": 0, "request_id": 1}),
        ("SUBSCRIBE", {"topic": s.topic(), "subscription": "s", "subType": 0, "consumer_id": 0, "request_id": 1}),
        ("AUTH_RESPONSE", {}),
        ("GET_TOPICS_OF_NAMESPACE", {"request_id": 1, "namespace": s.ns}),
        ("GET_SCHEMA", {"request_id": 1, "topic": s.topic()}),
        ("CLOSE_PRODUCER", {"producer_id": 0, "request_id": 1}),
        ("FLOW", {"consumer_id": 0, "messagePermits": 1}),
        ("ACK", {"consumer_id": 0, "ack_type": 0}),
    )
    for t, f in commands:
        c = s.tcp(t.lower())
        c.send(t, **f)
        c.closed(0.7)
        if c.open:
            s.say("CONNECT after it")
            c.connect()
            c.close()


@scenario(5, "a second CONNECT on a live connection, with a producer open", warm=False)
def second_connect(s: Recorder) -> None:
    c = s.conn("A")
    c.prod(s.topic(), name="p1")
    c.connect(wait=False)
    c.closed(1)
    d = s.conn("B")
    d.prod(s.topic(), name="p1")


@scenario(6, "commands only a broker may send, sent by a client; each on its own connection", warm=False)
def server_only_commands(s: Recorder) -> None:
    commands: tuple[tuple[str, dict[str, Any]], ...] = (
        ("CONNECTED", {"server_version": "x"}),
        ("SUCCESS", {"request_id": 1}),
        ("ERROR", {"request_id": 1, "error": 0, "message": "x"}),
        ("SEND_RECEIPT", {"producer_id": 0, "sequence_id": 0}),
        ("SEND_ERROR", {"producer_id": 0, "sequence_id": 0, "error": 0, "message": "x"}),
        ("MESSAGE", {"consumer_id": 0, "message_id": {"ledgerId": 1, "entryId": 1}}),
        ("PRODUCER_SUCCESS", {"request_id": 1, "producer_name": "x"}),
        ("LOOKUP_RESPONSE", {"request_id": 1}),
        ("PARTITIONED_METADATA_RESPONSE", {"request_id": 1}),
        ("CONSUMER_STATS_RESPONSE", {"request_id": 1}),
        ("REACHED_END_OF_TOPIC", {"consumer_id": 0}),
        ("ACTIVE_CONSUMER_CHANGE", {"consumer_id": 0}),
        ("AUTH_CHALLENGE", {}),
        ("GET_LAST_MESSAGE_ID_RESPONSE", {"request_id": 1, "last_message_id": {"ledgerId": 1, "entryId": 1}}),
        ("GET_SCHEMA_RESPONSE", {"request_id": 1}),
        ("ACK_RESPONSE", {"consumer_id": 0}),
        ("NEW_TXN_RESPONSE", {"request_id": 1}),
        ("WATCH_TOPIC_UPDATE", {"watcher_id": 1, "topics_hash": "x"}),
        ("TOPIC_MIGRATED", {"resource_id": 1, "resource_type": 0}),
        ("GET_TOPICS_OF_NAMESPACE_RESPONSE", {"request_id": 1}),
        ("PONG", {}),
        ("AUTH_RESPONSE", {}),
    )
    for t, f in commands:
        c = s.conn(t.lower())
        c.send(t, **f)
        c.closed(0.4)
        if c.open:
            c.send("PING")
            c.expect("PONG", t=1)
            c.close()


@scenario(7, "PING, two PINGs, PING in the same segment as CONNECT, PONG unasked", warm=False)
def ping_pong(s: Recorder) -> None:
    c = s.conn("A")
    c.send("PING")
    c.expect("PONG")
    c.send("PING")
    c.send("PING")
    c.expect("PONG")
    c.expect("PONG")
    c.send("PONG")
    s.quiet(300)
    d = s.tcp("B")
    d.raw(
        simple(command_bytes("CONNECT", client_version="x", protocol_version=21)) + simple(command_bytes("PING")),
        type="CONNECT+PING in one segment",
    )
    s.settle(500)
    e = s.tcp("C")
    s.say("v0 client pings")
    e.connect(version=0)
    e.send("PING")
    e.expect("PONG", t=1)


@scenario(8, "a CONNECT and a LOOKUP sent byte by byte; three requests in one segment: order of replies", warm=False)
def split_frames(s: Recorder) -> None:
    c = s.tcp("A")
    s.note(conn="A", dir="c2b", type="CONNECT, one byte at a time")
    for b in simple(command_bytes("CONNECT", client_version="x", protocol_version=21)):
        c.sock.sendall(bytes([b]))
        s.sleep(0.001)
    c.expect("CONNECTED")
    c.raw(
        b"".join(simple(command_bytes("LOOKUP", topic=s.topic(), request_id=i)) for i in (1, 2, 3))
        + simple(command_bytes("PING")),
        type="3 x LOOKUP + PING in one segment",
    )
    s.settle(500)


@scenario(
    9,
    "BaseCommand.type 200, 0, 69, and the newer types 70-81 of the C++ client's proto, unknown field in a known "
    "command",
    warm=False,
)
def unknown_command_type(s: Recorder) -> None:
    for n in (200, 0, 1, 69, 49):
        c = s.conn(f"type{n}")
        v = bytes([0x08, n & 0x7F]) if n < 128 else bytes([0x08, (n & 0x7F) | 0x80, n >> 7])
        c.raw(simple(v), type=f"type {n}, no body")
        c.closed(0.5)
        if c.open:
            c.send("PING")
            c.expect("PONG", t=1)
            c.close()
    for t, f in (
        ("SCALABLE_TOPIC_LOOKUP", None),
        ("WATCH_SCALABLE_TOPICS", None),
        ("WATCH_TC_ASSIGNMENTS", {"watch_id": 1}),
    ):
        c = s.conn(t.lower())
        if f is None:
            m = base(t)
            c.raw(simple(m.SerializePartialToString()), type=t + " empty body")
        else:
            c.send(t, **f)
        c.closed(0.5)
        if c.open:
            c.send("PING")
            c.expect("PONG", t=1)
            c.close()
    c = s.conn("extrafield")
    m = command_bytes("LOOKUP", topic=s.topic(), request_id=1)
    s.say("LOOKUP with unknown top-level field 999 and PING")
    c.raw(simple(m + bytes.fromhex("ba3e0161")), type="LOOKUP + unknown field 999")
    s.settle(500)


@scenario(
    10, "oversize, zero, negative and inconsistent frame lengths; each on its own connection after CONNECT", warm=False
)
def frame_sizes(s: Recorder) -> None:
    for name, data in (
        ("total=5252880 (max+10K) header only", bytes.fromhex("005026d000000010")),
        ("total=5253120", struct.pack(">II", 5253120, 16)),
        ("total=5253121", struct.pack(">II", 5253121, 16)),
        ("total=5300000", struct.pack(">II", 5300000, 16)),
        ("total=2^31-1", bytes.fromhex("7fffffff00000010")),
        ("total=2^32-1", bytes.fromhex("ffffffff00000010")),
        ("total=0", bytes.fromhex("00000000")),
        ("total=0 then PING", bytes.fromhex("00000000") + simple(command_bytes("PING"))),
        ("total=2", bytes.fromhex("000000020000")),
        ("total=4 cmd=0", bytes.fromhex("0000000400000000")),
        ("total=4 cmd=5 (cmd beyond the frame)", bytes.fromhex("0000000400000005")),
        ("total=8 cmd=0xffffffff", bytes.fromhex("00000008ffffffff00000000")),
        ("cmd garbage", bytes.fromhex("00000008000000040badf00d")),
        (
            "total longer than cmd by 3 (trailing bytes after PING)",
            struct.pack(">II", 4 + 4 + 3, 4) + command_bytes("PING") + b"abc",
        ),
    ):
        c = s.conn(name)
        c.raw(data, type=name)
        c.closed(0.6)
        if c.open:
            c.send("PING")
            c.expect("PONG", t=0.7)
            c.close()


@scenario(
    11,
    "a complete SEND frame bigger than the frame limit, and messages of max_message_size -1, 0 and +1 inside a "
    "legal frame",
)
def frame_oversize_real(s: Recorder) -> None:
    c = s.conn("A")
    c.prod(s.topic(), name="p1")
    for n in (5242880 - 1000, 5242880, 5242881, 5242880 + 5000):
        if not c.open:
            c = s.conn(f"A{n}")
            c.prod(s.topic(), name=f"p{n}")
        s.say(f"payload of {n} bytes")
        c.payload(0, 0, b"x" * n, t=4)
        c.closed(0.3)
    c = s.conn("B")
    c.prod(s.topic(), name="p2")
    s.say("payload of 5253120 bytes: the frame is over the limit")
    c.payload(0, 0, b"x" * 5253120, t=3)
    c.closed(1)


@scenario(
    12,
    "SEND with wrong CRC, without checksum, with a metadata size beyond the frame, with unparsable metadata, with "
    "no headers at all",
)
def send_bad_crc(s: Recorder) -> None:
    c = s.conn("A")
    c.prod(s.topic(), name="p1")
    s.say("wrong crc")
    c.payload(0, 0, "m0", crc=1)
    c.closed(0.4)
    s.say("good one after it, same sequence id")
    c.payload(0, 0, "m0")
    s.say("no checksum")
    c.payload(0, 1, "m1", magic=False)
    s.say("subscriber sees")
    d = s.conn("B")
    d.sub(s.topic(), initialPosition="Earliest", permits=10)
    d.msgs(2)
    s.say("v10 client (checksum stripped?)")
    e = s.conn("C", version=10)
    e.sub(s.topic(), "s2", initialPosition="Earliest", permits=10)
    e.msgs(2)
    s.say("metadata without required fields")
    c.payload(0, 2, "m2", raw_md=b"")
    c.closed(0.4)
    if not c.open:
        c = s.conn("A2")
        c.prod(s.topic(), name="p2")
    s.say("garbage metadata")
    c.payload(0, 3, "m3", raw_md=b"\xff\xff\xff")
    c.closed(0.4)
    if not c.open:
        c = s.conn("A3")
        c.prod(s.topic(), name="p3")
    s.say("metadata size beyond the frame")
    body = struct.pack(">I", 1000) + b"ab"
    body = b"\x0e\x01" + struct.pack(">I", crc32c(body)) + body
    cm = command_bytes("SEND", producer_id=0, sequence_id=4)
    c.raw(struct.pack(">II", 4 + len(cm) + len(body), len(cm)) + cm + body, type="SEND")
    s.settle(700)
    if not c.open:
        c = s.conn("A4")
        c.prod(s.topic(), name="p4")
    s.say("SEND with nothing after the command")
    c.send("SEND", producer_id=0, sequence_id=5)
    s.settle(700)
    c.closed(0.4)


@scenario(13, "SEND for a producer id never seen; for one just closed by the client; for one whose creation failed")
def send_unknown_producer(s: Recorder) -> None:
    c = s.conn("A")
    c.payload(7, 0, "m", wait=False)
    c.closed(1)
    c = s.conn("B")
    c.prod(s.topic(), name="p1")
    c.payload(0, 0, "m0")
    c.req("CLOSE_PRODUCER", producer_id=0)
    c.payload(0, 1, "m1", wait=False)
    c.closed(1)
    o = s.conn("C")
    o.prod(s.topic(), name="p2")
    c = s.conn("D")
    c.prod(s.topic(), name="p2")
    c.payload(0, 0, "m", wait=False)
    c.closed(1)


@scenario(14, "commands that lack a required field or their body; each on its own connection", warm=False)
def missing_required_field(s: Recorder) -> None:
    for name, data in (
        ("LOOKUP without request_id", command_bytes("LOOKUP", topic="t")),
        ("LOOKUP without topic", command_bytes("LOOKUP", request_id=1)),
        ("LOOKUP type without body", bytes.fromhex("0817")),
        ("PING without body", bytes.fromhex("0812")),
        ("body without type", bytes.fromhex("ba0105") + bytes.fromhex("0a01741001")),
        (
            "SUBSCRIBE without topic",
            command_bytes("SUBSCRIBE", subscription="s", subType=0, consumer_id=0, request_id=1),
        ),
        ("PRODUCER without producer_id", command_bytes("PRODUCER", topic=s.topic(), request_id=1)),
        ("ACK without type", command_bytes("ACK", consumer_id=1)),
        ("empty BaseCommand", b""),
        (
            "SUBSCRIBE with subType 9",
            bytes.fromhex("0804") + bytes.fromhex("220b") + bytes.fromhex("0a017412017318092000"),
        ),
    ):
        c = s.conn(name)
        c.raw(simple(data), type=name)
        c.closed(0.6)
        if c.open:
            s.settle(100)
            c.close()


@scenario(15, "HTTP and TLS bytes on the binary port", warm=False)
def not_pulsar(s: Recorder) -> None:
    c = s.tcp("http")
    c.raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", type="HTTP")
    c.closed(1)
    c = s.tcp("tls")
    c.raw(bytes.fromhex("16030100050100000100"), type="TLS")
    c.closed(1)


@scenario(16, "client shuts down its writing side with a producer and requests in flight", warm=False)
def half_close(s: Recorder) -> None:
    c = s.conn("A")
    c.prod(s.topic(), name="p1")
    c.payload(0, 0, "m0", wait=False)
    c.send("PING")
    c.flush()
    c.sock.shutdown(socket.SHUT_WR)
    s.note(conn="A", event="shutdown(SHUT_WR)")
    c.closed(2)


@scenario(116, "the exact frame limit: total 5253116 and 5253117 (the length word counts)")
def frame_limit_edge(s: Recorder) -> None:
    for n in (5253116, 5253117):
        c = s.conn(f"t{n}")
        c.raw(struct.pack(">II", n, 16), type=f"total={n} header only")
        c.closed(0.6)
        c.close()
    s.say("topic policy maxMessageSize 10")
    a, _t = s.producing("A", 0, "p")
    s.admin("POST", "/maxMessageSize", 10)
    s.sleep(1.5)
    s.say("9 bytes payload")
    a.payload(0, 0, "x" * 9)
    a.closed(0.2)
    a.payload(0, 1, "x" * 200)
    a.closed(0.3)


@scenario(126, "CONNECTED of a broker with default switches", profile="stock", warm=False)
def stock_connect(s: Recorder) -> None:
    s.conn("A")


@scenario(
    127,
    "keepAliveIntervalSeconds=3: PING after 3 s of silence, answered; not answered: when does it close; a v0 "
    "client; any traffic counts",
    profile="stock",
)
def stock_keepalive(s: Recorder) -> None:
    a = s.conn("A")
    s.conn("Z", version=0, auto_pong=False)
    s.conn("M", auto_pong=False)
    s.tcp("N", auto_pong=False)
    x = s.conn("X", auto_pong=False)
    a.prod(s.topic(), 0, "p")
    answered = False
    end = time.monotonic() + 13
    while time.monotonic() < end:
        s.pump(0.5)
        if x.open and not answered and any(f.type == "PING" for f in x.inbox):
            answered = True
            s.say("X answers its PING with a LOOKUP")
            x.send("LOOKUP", topic=s.topic(), request_id=1)
    s.note(wait="13 s watched")


@scenario(
    137,
    "no waiting for replies: SUBSCRIBE+FLOW, PRODUCER+SEND, SUBSCRIBE+CLOSE_CONSUMER, PRODUCER+CLOSE_PRODUCER, "
    "SUBSCRIBE+UNSUBSCRIBE, SUBSCRIBE+GET_LAST_MESSAGE_ID, CLOSE_PRODUCER right after SENDs, each in one segment on "
    "a new topic",
)
def pipelined(s: Recorder) -> None:
    def subscribe(t: Any, c: Any, r: Any, sub: Any = "s") -> Any:
        return simple(
            command_bytes(
                "SUBSCRIBE", topic=t, subscription=sub, subType=0, consumer_id=c, request_id=r, initialPosition=1
            )
        )

    def produce(t: Any, p: Any, r: Any) -> Any:
        return simple(command_bytes("PRODUCER", topic=t, producer_id=p, request_id=r, producer_name="p"))

    def command(ty: Any, **k: Any) -> Any:
        return simple(command_bytes(ty, **k))

    f = s.conn("F")
    f.prod(s.topic(0), 0, "f")
    f.payload(0, 0, "m0")
    for n, data in (
        ("SUBSCRIBE+FLOW", subscribe(s.topic(0), 0, 1) + command("FLOW", consumer_id=0, messagePermits=5)),
        (
            "SUBSCRIBE+GET_LAST_MESSAGE_ID",
            subscribe(s.topic(0), 0, 1, "s2") + command("GET_LAST_MESSAGE_ID", consumer_id=0, request_id=2),
        ),
        (
            "SUBSCRIBE+CLOSE_CONSUMER",
            subscribe(s.topic(1), 0, 1) + command("CLOSE_CONSUMER", consumer_id=0, request_id=2),
        ),
        ("SUBSCRIBE+UNSUBSCRIBE", subscribe(s.topic(2), 0, 1) + command("UNSUBSCRIBE", consumer_id=0, request_id=2)),
        (
            "SUBSCRIBE+SEEK",
            subscribe(s.topic(5), 0, 1) + command("SEEK", consumer_id=0, request_id=2, message_publish_time=1),
        ),
        ("PRODUCER+SEND", produce(s.topic(3), 0, 1) + send_frame(0, 0)),
        ("PRODUCER+CLOSE_PRODUCER", produce(s.topic(4), 0, 1) + command("CLOSE_PRODUCER", producer_id=0, request_id=2)),
        (
            "PRODUCER+CLOSE_PRODUCER+PRODUCER",
            produce(s.topic(6), 0, 1)
            + command("CLOSE_PRODUCER", producer_id=0, request_id=2)
            + produce(s.topic(6), 0, 3),
        ),
    ):
        c = s.conn(n)
        c.raw(data, type=n)
        s.settle(600)
    c = s.conn("SENDs+CLOSE_PRODUCER")
    c.prod(s.topic(7), 0, "p")
    c.raw(
        send_frame(0, 0)
        + send_frame(0, 1)
        + send_frame(0, 2)
        + command("CLOSE_PRODUCER", producer_id=0, request_id=9)
        + command("PING"),
        type="3 x SEND + CLOSE_PRODUCER + PING",
    )
    s.settle(500)
    c = s.conn("ACK+CLOSE")
    c.sub(s.topic(7), initialPosition="Earliest", permits=10)
    m = c.msgs(3)
    c.raw(
        command("ACK", consumer_id=0, ack_type=0, message_id=[f.id() for f in m], request_id=50)
        + command("CLOSE_CONSUMER", consumer_id=0, request_id=51),
        type="ACK + CLOSE_CONSUMER",
    )
    s.settle(300)


@scenario(143, "Exclusive owner of a v0 client (no PING possible) and a second consumer; producer name of a v0 client")
def liveness_v0(s: Recorder) -> None:
    a = s.conn("A", version=0, flags={}, auto_pong=False)
    t = s.topic()
    a.sub(t)
    a.prod(t, 0, "p")
    b = s.conn("B")
    b.sub(t, t=8)
    b.prod(t, 0, "p", t=8)
    a.closed(0.5)
