"""Play a scenario: its connections, its admin calls, and the record of all frames and answers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import select
import socket
import struct
import threading
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pulsarium.conformance.recordings.wire import (
    Frame,
    base,
    field_of,
    fill,
    now_ms,
    show,
    simple,
    to_json,
    with_payload,
)
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Answer: TypeAlias = Any
"""The Frame that a scenario waited for, or None. A scenario that uses None fails there, and names the place."""

ESTABLISHED, CLOSED, CLOSE_WAIT = 1, 7, 8
STRAYS = ("tr/no-such-namespace/x", "tr/no-such-namespace/t", "no-such-tenant/ns/x")
"""Scalable topics that scenarios create outside of their own namespaces."""
AT_REST = 100
"""Milliseconds without a frame after which a broker with a steered clock has said everything."""


@dataclass(frozen=True)
class Scenario:
    """A scenario. Its number and slug name its recording."""

    number: int
    slug: str
    purpose: str
    profile: str
    warm: bool
    config: Mapping[str, Any]
    play: Callable[[Recorder], None]

    @property
    def name(self) -> str:
        return f"{self.number:03d}-{self.slug}"


@dataclass(frozen=True)
class Target:
    """The broker that is recorded, and how.

    `in_order` lets the broker read all of one connection before another sends. `steered` moves the clock of a broker
    with a lab in place of a wait.
    """

    address: tuple[str, int]
    admin: str
    secret: str | None = None
    in_order: bool = False
    steered: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)


def _unread(client: tuple[str, int], broker: tuple[str, int]) -> tuple[int, int]:
    """Return the state of the broker's socket, and how many bytes of a client here the broker has not read."""

    def end(address: tuple[str, int]) -> bytes:
        return socket.inet_aton(address[0]) + bytes(12)

    ids = struct.pack(">HH", broker[1], client[1]) + end(broker) + end(client)
    ids += struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    ask = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ids
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as kernel:  # NETLINK_SOCK_DIAG
        kernel.send(struct.pack("=IHHII", 16 + len(ask), 20, 1, 1, 0) + ask)
        answer = kernel.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] != 20:
        return CLOSED, 0  # SOCK_DIAG_BY_FAMILY; an error says that no socket exists
    return answer[17], struct.unpack_from("=I", answer, 72)[0]


def _raw(data: bytes) -> dict[str, Any]:
    return {"raw": data.hex()} if len(data) < 200 else {"raw_bytes": len(data)}


class Connection:
    """A raw connection whose frames are recorded."""

    def __init__(self, recorder: Recorder, name: str, auto_pong: bool = True) -> None:
        self.recorder, self.name, self.auto_pong = recorder, name, auto_pong
        self.sock = socket.create_connection(recorder.target.address, 5)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.own_address, self.broker_address = self.sock.getsockname(), self.sock.getpeername()
        self.received = b""
        self.inbox: list[Frame] = []
        self.open = True
        self.pending = False
        self._unsent = b""
        self._last_request = 0
        recorder.connections.append(self)
        recorder.note(conn=name, event="tcp_open")

    # -- out

    def raw(self, data: bytes, **note: Any) -> None:
        self.recorder.hand_over(self)
        self.recorder.note(conn=self.name, dir="c2b", **note, **_raw(data))
        self._unsent += data
        self.pending = True
        if not self.recorder.target.in_order:
            self.flush()

    def flush(self) -> None:
        data, self._unsent = self._unsent, b""
        try:
            if data:
                self.sock.sendall(data)
        except OSError as error:
            self.recorder.note(conn=self.name, event="send_failed", error=str(error))

    def heard(self) -> bool:
        """Return whether the broker has read all from this connection, or has closed its end of a closed one."""
        state, count = _unread(self.own_address, self.broker_address)
        return state not in (ESTABLISHED, CLOSE_WAIT) or (count == 0 and self.open)

    def send(self, type_: str, **fields: Any) -> None:
        command = base(type_, **fields)
        self.raw(simple(command.SerializePartialToString()), type=type_, cmd=to_json(getattr(command, field_of(type_))))

    def req(self, type_: str, t: float = 5, **fields: Any) -> Answer:
        """Send with a fresh request_id and wait for the frame that carries it."""
        if "request_id" not in fields:
            self._last_request += 1
            fields["request_id"] = self._last_request
        number = fields["request_id"]
        self.send(type_, **fields)

        def answers(frame: Frame) -> bool:
            return "request_id" in frame.cmd.DESCRIPTOR.fields_by_name and frame.cmd.request_id == number

        return self.wait(answers, t, f"a reply to request {number}")

    def connect(
        self, version: int | None = 21, flags: Mapping[str, bool] | None = None, wait: bool = True, **more: Any
    ) -> Connection:
        fields = {"client_version": "transcript-1", **more}
        if version is not None:
            fields["protocol_version"] = version
        if flags is None:
            flags = {"supports_auth_refresh": True}
        if flags:
            fields["feature_flags"] = flags
        self.send("CONNECT", **fields)
        if wait:
            self.expect("CONNECTED", "ERROR")
        return self

    def payload(
        self,
        pid: int,
        seq: int,
        payload: str | bytes = b"",
        *,
        md: Mapping[str, Any] | None = None,
        batch: Sequence[str | tuple[str | bytes, Mapping[str, Any]]] | None = None,
        crc: int | None = None,
        magic: bool = True,
        name: str | None = None,
        raw_md: bytes | None = None,
        wait: bool = True,
        t: float = 5,
        **send: Any,
    ) -> Answer:
        """Send a SEND frame and wait for its receipt; a `batch` has texts, or texts with metadata of their own."""
        command = {"producer_id": pid, "sequence_id": seq, **send}
        fields = {
            "producer_name": name or self.recorder.producer_names.get((self.name, pid), "p"),
            "sequence_id": seq,
            "publish_time": now_ms(),
            **(md or {}),
        }
        data = payload.encode() if isinstance(payload, str) else payload
        content: dict[str, Any] = {"payload": show(data)}
        if batch is not None:
            data, shown = b"", []
            for each in batch:
                text, more = (each, {}) if isinstance(each, str) else each
                message = text.encode() if isinstance(text, str) else text
                single = fill(pb.SingleMessageMetadata(), {"payload_size": len(message), **more})
                encoded = single.SerializeToString()
                data += struct.pack(">I", len(encoded)) + encoded + message
                shown.append({"metadata": to_json(single), "payload": show(message)})
            fields.setdefault("num_messages_in_batch", len(batch))
            command.setdefault("num_messages", len(batch))
            content = {"batch": shown}
        sent, metadata = base("SEND", **command), fill(pb.MessageMetadata(), fields)
        note = {
            "type": "SEND",
            "cmd": to_json(sent.send),
            "metadata": to_json(metadata) if raw_md is None else {"hex": raw_md.hex()},
            **content,
        }
        if crc is not None:
            note["crc32c"] = "bad"
        if not magic:
            note["crc32c"] = "absent"
        encoded_metadata = metadata.SerializePartialToString() if raw_md is None else raw_md
        self.raw(with_payload(sent.SerializePartialToString(), encoded_metadata, data, crc, magic), **note)
        if not wait:
            return None
        numbers = seq, max(seq, send.get("highest_sequence_id", 0))

        def is_receipt(frame: Frame) -> bool:
            if frame.type not in ("SEND_RECEIPT", "SEND_ERROR"):
                return False
            return frame.cmd.producer_id == pid and frame.cmd.sequence_id in numbers

        return self.wait(is_receipt, t, f"a receipt for {pid}/{seq}")

    # -- in

    def wait(self, is_wanted: Callable[[Frame], bool], t: float, what: str) -> Answer:
        end = time.monotonic() + t
        while True:
            for place, frame in enumerate(self.inbox):
                if is_wanted(frame):
                    return self.inbox.pop(place)
            if not self.open:
                return None
            left = end - time.monotonic()
            if left <= 0:
                self.recorder.note(conn=self.name, wait=f"no {what} within {int(t * 1000)} ms")
                return None
            self.recorder.pump(left)

    def expect(self, *types: str, t: float = 5) -> Answer:
        return self.wait(lambda frame: frame.type in types, t, "/".join(types))

    def closed(self, t: float = 3) -> bool:
        end = time.monotonic() + t
        while self.open and time.monotonic() < end:
            self.recorder.pump(end - time.monotonic())
        if self.open:
            self.recorder.note(conn=self.name, wait=f"still open after {int(t * 1000)} ms")
        return not self.open

    def close(self) -> None:
        self.recorder.hand_over(self)
        self.flush()
        if self.open:
            self.recorder.note(conn=self.name, event="closed_by_client")
        self.pending = True
        self.open = False
        self.sock.close()

    def take(self) -> list[Frame]:
        frames, self.inbox = self.inbox, []
        return frames

    def got(self, raw: bytes) -> None:
        frame = Frame(raw)
        said = {"conn": self.name, "dir": "b2c", "type": frame.type, "cmd": to_json(frame.cmd), **frame.extra}
        if frame.md is not None:
            said["metadata"] = to_json(frame.md)
            is_plain = not frame.md.compression and not frame.md.encryption_keys
            try:
                is_batch = frame.md.HasField("num_messages_in_batch") and is_plain
                said |= {"batch": frame.batch()} if is_batch else {"payload": show(frame.payload)}
            except Exception:  # no batch, whatever its metadata says
                said["payload"] = show(frame.payload)
        self.recorder.note(**said, **_raw(raw))
        if frame.type == "PING" and self.auto_pong:
            self.send("PONG")
            return
        self.inbox.append(frame)

    # -- short forms

    def sub(
        self,
        topic: str,
        sub: str = "s",
        cid: int = 0,
        type: str = "Exclusive",
        *,
        permits: int | None = None,
        t: float = 8,
        **more: Any,
    ) -> Answer:
        """Subscribe, and send a FLOW where `permits` are given."""
        fields = {"topic": topic, "subscription": sub, "subType": type, "consumer_id": cid, **more}
        answer = self.req("SUBSCRIBE", t=t, **fields)
        if permits is not None:
            self.flow(permits, cid)
        return answer

    def prod(self, topic: str, pid: int = 0, name: str | None = None, t: float = 8, **more: Any) -> Answer:
        if name:
            more["producer_name"] = name
        frame = self.req("PRODUCER", t=t, topic=topic, producer_id=pid, **more)
        if frame is not None and frame.type == "PRODUCER_SUCCESS":
            self.recorder.producer_names[self.name, pid] = frame.cmd.producer_name
        return frame

    def flow(self, n: int, cid: int = 0) -> None:
        self.send("FLOW", consumer_id=cid, messagePermits=n)

    def ack(self, ids: Any, cid: int = 0, type: str = "Individual", reply: bool = False, **more: Any) -> Answer:
        fields = {"consumer_id": cid, "ack_type": type, "message_id": ids if isinstance(ids, list) else [ids], **more}
        if reply:
            return self.req("ACK", **fields)
        self.send("ACK", **fields)
        return None

    def msgs(self, n: int, t: float = 3) -> list[Frame]:
        out: list[Frame] = []
        while len(out) < n:
            frame = self.wait(lambda frame: frame.type == "MESSAGE", t, "MESSAGE")
            if frame is None:
                break
            out.append(frame)
        return out

    def redeliver(self, ids: Sequence[Mapping[str, int]] = (), cid: int = 0, **more: Any) -> None:
        self.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=cid, message_ids=list(ids), **more)

    def last_id(self, cid: int = 0) -> Answer:
        return self.req("GET_LAST_MESSAGE_ID", consumer_id=cid)


class Recorder:
    """A play of a scenario, in a namespace of its own."""

    def __init__(self, scenario: Scenario, target: Target) -> None:
        self.scenario, self.target = scenario, target
        self.ns = f"tr/{scenario.slug}"
        self.connections: list[Connection] = []
        self.producer_names: dict[tuple[str, int], str] = {}
        self.lines: list[str] = []
        self._lock = threading.Lock()
        self._begin = time.monotonic()

    def topic(self, suffix: object = "", domain: str = "persistent") -> str:
        return f"{domain}://{self.ns}/t{suffix}"

    def _now(self) -> int:
        return int((time.monotonic() - self._begin) * 1000)

    def note(self, **line: Any) -> None:
        line = {key: value for key, value in line.items() if value is not None}
        with self._lock:
            self.lines.append(json.dumps({"t": self._now(), **line}, ensure_ascii=False))

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        """Leave out of the recording what happens in a block: the state that earlier scenarios left behind."""
        kept = len(self.lines)
        yield
        del self.lines[kept:]

    def say(self, text: str) -> None:
        self.note(step=text)

    def conn(
        self,
        name: str,
        version: int | None = 21,
        flags: Mapping[str, bool] | None = None,
        auto_pong: bool = True,
        **more: Any,
    ) -> Connection:
        return Connection(self, name, auto_pong).connect(version, flags, **more)

    def producing(self, name: str, pid: int = 0, producer: str | None = None, **more: Any) -> tuple[Connection, str]:
        """Connect and open a producer of the topic; return both."""
        connection, topic = self.conn(name), self.topic()
        connection.prod(topic, pid, producer, **more)
        return connection, topic

    def tcp(self, name: str, **more: Any) -> Connection:
        return Connection(self, name, **more)

    def hand_over(self, to: Connection | None = None) -> None:
        """Send, when `in_order`, what the other connections hold back, and wait until the broker has read it.

        A broker with one loop finds all that two connections sent while it was busy, and serves either first; what one
        connection sends in a row is one read for it, or several. Here the first to send is served first, and a row is
        one read, however busy the machine. A broker that does not read is waited for 250 ms.
        """
        if not self.target.in_order:
            return
        before = [connection for connection in self.connections if connection is not to and connection.pending]
        end = time.monotonic() + 0.25
        for connection in before:
            connection.flush()
            connection.pending = False
        while not all(connection.heard() for connection in before) and time.monotonic() < end:
            time.sleep(0.001)

    def now_ms(self) -> int:
        """Return the broker's time in milliseconds: that of the machine, unless scenarios moved a steered clock."""
        if not self.target.steered:
            return now_ms()
        shown: dict[str, Any] = json.loads(self.http("GET", "/lab/clock")[1])
        return int(shown["nowMs"])

    def sleep(self, t: float) -> None:
        """Let t seconds pass; when `in_order` PINGs are answered meanwhile: on a busy machine it may be long."""
        if not self.target.in_order:
            time.sleep(t)
            return
        self.hand_over()
        end = time.monotonic() + t
        while (left := end - time.monotonic()) > 0:
            self.pump(left)

    def pump(self, t: float) -> int:
        """Read what is there; return the number of frames."""
        for connection in self.connections:
            connection.flush()
        sockets = {connection.sock: connection for connection in self.connections if connection.open}
        if not sockets:
            time.sleep(min(t, 0.05))
            return 0
        readable, _, _ = select.select(list(sockets), [], [], max(0, min(t, 0.25)))
        return sum(self._read(sockets[each]) for each in readable)

    def _read(self, connection: Connection) -> int:
        try:
            data = connection.sock.recv(1 << 20)
        except OSError as error:
            data = b""
            self.note(conn=connection.name, event="reset", error=str(error))
        if not data:
            connection.open = False
            self.note(conn=connection.name, event="closed_by_broker")
            connection.sock.close()
            return 0
        connection.received += data
        count = 0
        while len(connection.received) >= 4:
            size = 4 + struct.unpack(">I", connection.received[:4])[0]
            if len(connection.received) < size:
                break
            frame, connection.received = connection.received[:size], connection.received[size:]
            connection.got(frame)
            count += 1
        return count

    def quiet(self, ms: int) -> None:
        """Listen for ms, whatever comes."""
        if self.target.steered:
            self.settle(AT_REST)
            self._while_listening(lambda: self.http("POST", "/lab/clock/advance", {"seconds": ms / 1000}))
            self.settle(AT_REST)
            return
        self.hand_over()
        end = time.monotonic() + ms / 1000
        count = 0
        while (left := end - time.monotonic()) > 0:
            count += self.pump(left)
        self.note(wait=f"nothing for {ms} ms" if count == 0 else f"{count} frames in {ms} ms")

    def settle(self, ms: int = 300, limit: float = 6) -> None:
        """Listen until ms pass without a frame."""
        self.hand_over()
        stop = time.monotonic() + limit
        last = time.monotonic()
        while time.monotonic() < stop and time.monotonic() - last < ms / 1000:
            if self.pump(ms / 1000 - (time.monotonic() - last)):
                last = time.monotonic()
        self.note(wait=f"nothing more for {ms} ms")

    def http(
        self, method: str, path: str, body: Any = None, ctype: str = "application/json", timeout: float = 20
    ) -> tuple[int, str]:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.target.admin + path, data=data, method=method)
        if data is not None:
            request.add_header("Content-Type", ctype)
        if self.target.secret:
            request.add_header("Authorization", "Bearer " + self.jwt("admin"))
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                return reply.status, reply.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode("utf-8", "replace")
        except Exception as error:
            return -1, repr(error)

    def _while_listening(self, call: Callable[[], tuple[int, str]]) -> tuple[int, str]:
        """Make a call in a thread, and record the frames that arrive meanwhile at their time."""
        replies: list[tuple[int, str]] = []
        caller = threading.Thread(target=lambda: replies.append(call()), daemon=True)
        caller.start()
        while caller.is_alive():
            self.pump(0.01)
        [reply] = replies
        return reply

    def rest(
        self, method: str, path: str, body: Any = None, pick: Callable[[Any], Any] | None = None, **more: Any
    ) -> Any:
        """Make an admin call; frames that arrive meanwhile are recorded at their time."""
        self.hand_over()
        sent_at = self._now()
        status, text = self._while_listening(lambda: self.http(method, path, body, **more))
        try:
            value = json.loads(text)
        except ValueError:
            value = text[:400]
        shown = pick(value) if pick and status == 200 else value
        request = {} if body is None or isinstance(body, bytes) else {"request": body}
        self.note(rest=f"{method} {path}", **request, sent_at=sent_at, status=status, body=shown)
        return value

    def admin(
        self,
        method: str,
        suffix: str,
        body: Any = None,
        topic: str | None = None,
        domain: str = "persistent",
        **more: Any,
    ) -> Any:
        path = (topic or self.topic(domain=domain)).replace("://", "/", 1)
        return self.rest(method, f"/admin/v2/{path}{suffix}", body, **more)

    def stats(self, pick: Callable[[Any], Any] | None = None, **more: Any) -> Any:
        return self.admin("GET", "/stats", pick=pick, **more)

    def internal_stats(self, pick: Callable[[Any], Any] | None = None, **more: Any) -> Any:
        return self.admin("GET", "/internalStats", pick=pick, **more)

    def topics(self) -> Any:
        return self.rest("GET", f"/admin/v2/persistent/{self.ns}")

    def subscriptions(self) -> Any:
        return self.admin("GET", "/subscriptions")

    def policy(self, method: str, suffix: str, body: Any = None) -> Any:
        return self.rest(method, f"/admin/v2/namespaces/{self.ns}{suffix}", body)

    def jwt(self, sub: str, ttl: int | None = None, secret: str | None = None, **claims: Any) -> str:
        """Return an HS256 token for the profile with authentication."""

        def encoded(data: bytes) -> bytes:
            return base64.urlsafe_b64encode(data).rstrip(b"=")

        key = secret or self.target.secret or ""
        expiry = {} if ttl is None else {"exp": int(time.time()) + ttl}
        signed = encoded(b'{"alg":"HS256"}') + b"." + encoded(json.dumps({"sub": sub, **expiry, **claims}).encode())
        return (signed + b"." + encoded(hmac.new(key.encode(), signed, hashlib.sha256).digest())).decode()

    def _prepare(self) -> None:
        if self.target.steered:  # the times of one scenario must not depend on those before
            self.http("POST", "/lab/clock/reset")
            for stray in STRAYS:
                self.http("DELETE", f"/admin/v2/scalable/{stray}?force=true")
        clusters = json.loads(self.http("GET", "/admin/v2/clusters")[1])
        self.http("PUT", "/admin/v2/tenants/tr", {"allowedClusters": clusters, "adminRoles": []})
        namespace = f"/admin/v2/namespaces/{self.ns}"
        if self.http("GET", namespace)[0] == 200:
            self.http("DELETE", f"{namespace}?force=true")
            for _ in range(40):
                if self.http("GET", namespace)[0] == 404:
                    break
                time.sleep(0.25)
        bundles = {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}
        status, text = self.http("PUT", namespace, {"bundles": bundles})
        if status not in (200, 204):
            print("namespace", self.ns, status, text)
        if self.scenario.warm:  # so that the broker owns the bundle and has the policies: times are the scenario's own
            self.http("PUT", f"/admin/v2/persistent/{self.ns}/warm")
            self.http("DELETE", f"/admin/v2/persistent/{self.ns}/warm")

    def run(self, out: Path) -> bool:
        """Play the scenario and write its recording to the folder `out`; return whether the play came to its end."""
        self._prepare()
        it = self.scenario
        config = {"profile": it.profile, **self.target.config, "namespace": self.ns, **it.config}
        self.lines = [json.dumps({"scenario": it.slug, "purpose": it.purpose, "config": config})]
        self._begin = time.monotonic()
        ended = True
        try:
            it.play(self)
        except Exception:
            ended = False
            self.note(event="driver_error", error=traceback.format_exc(limit=-2))
            traceback.print_exc()
        still_open = [connection for connection in self.connections if connection.open]
        if still_open:
            self.settle(50, 0.3)
        for connection in still_open:
            connection.sock.close()
        (out / f"{it.name}.jsonl").write_text("\n".join(self.lines) + "\n")
        return ended
