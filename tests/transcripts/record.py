#!/usr/bin/env python3
"""Record golden protocol transcripts of a Pulsar broker.

    python record.py --proto DIR_WITH_PulsarApi_pb2.py --out DIR [--broker 127.0.0.1:6650]
                     [--admin http://127.0.0.1:8080] [--profile lab|stock] [--list] [slug-part ...]

Scenarios live in scenarios.py beside this file. Each one writes <out>/<nnn>-<slug>.jsonl. Nothing is normalised.
One line per frame: {"t": ms, "conn", "dir": "c2b"|"b2c", "type", "cmd", "metadata", "payload"/"batch", "raw"}.
Bytes fields that are not printable ASCII are written {"hex": "..."}.
"""
import argparse, base64, importlib, json, os, re, select, socket, struct, sys, threading, time, traceback
import urllib.request, urllib.error

PB = None  # PulsarApi_pb2
try:
    from crc32c import crc32c as _crc32c
    def crc32c(b): return _crc32c(bytes(b))
except ImportError:
    _T = []
    for _i in range(256):
        _c = _i
        for _ in range(8): _c = (_c >> 1) ^ (0x82F63B78 if _c & 1 else 0)
        _T.append(_c)
    def crc32c(b):
        c = 0xFFFFFFFF
        for x in b: c = _T[(c ^ x) & 255] ^ (c >> 8)
        return c ^ 0xFFFFFFFF

def now_ms(): return int(time.time() * 1000)

def show(b):
    """bytes -> short JSON value"""
    b = bytes(b)
    if b.isascii() and b.decode().isprintable(): return b.decode() if len(b) <= 200 else b[:40].decode() + f"...({len(b)} bytes)"
    if len(b) > 200: return {"hex": b[:40].hex(), "bytes": len(b)}
    return {"hex": b.hex()}

def to_json(m):
    out = {}
    for f, v in m.ListFields():
        def one(x):
            if f.type == f.TYPE_MESSAGE: return to_json(x)
            if f.type == f.TYPE_BYTES: return show(x)
            if f.type == f.TYPE_ENUM:
                d = f.enum_type.values_by_number.get(x); return d.name if d else x
            return x
        rep = f.is_repeated if hasattr(f, "is_repeated") else f.label == f.LABEL_REPEATED
        if callable(rep): rep = rep()
        out[f.name] = [one(x) for x in v] if rep else one(v)
    return out

def fill(m, d):
    for k, v in d.items():
        f = m.DESCRIPTOR.fields_by_name[k]
        if isinstance(v, (list, tuple)):
            for x in v:
                if isinstance(x, dict): fill(getattr(m, k).add(), x)
                else: getattr(m, k).append(x)
        elif isinstance(v, dict):
            sub = getattr(m, k); sub.SetInParent(); fill(sub, v)
        elif f.type == f.TYPE_ENUM and isinstance(v, str): setattr(m, k, f.enum_type.values_by_name[v].number)
        elif f.type == f.TYPE_BYTES and isinstance(v, str): setattr(m, k, v.encode())
        else: setattr(m, k, v)
    return m

def field_of(type_name):
    n = PB.BaseCommand.Type.Value(type_name)
    return PB.BaseCommand.DESCRIPTOR.fields_by_number[n].name

def base(type_name, sub=True, **fields):
    m = PB.BaseCommand(); m.type = PB.BaseCommand.Type.Value(type_name)
    if sub:
        s = getattr(m, field_of(type_name)); s.SetInParent(); fill(s, fields)
    return m

def simple(cmd_bytes): return struct.pack(">II", 4 + len(cmd_bytes), len(cmd_bytes)) + cmd_bytes

def with_payload(cmd_bytes, md, payload, crc=None, magic=True):
    body = struct.pack(">I", len(md)) + md + payload
    if magic: body = b"\x0e\x01" + struct.pack(">I", crc32c(body) if crc is None else crc) + body
    return struct.pack(">II", 4 + len(cmd_bytes) + len(body), len(cmd_bytes)) + cmd_bytes + body

class Frame:
    def __init__(self, raw):
        self.raw = raw; self.md = None; self.payload = b""; self.extra = {}
        n = struct.unpack(">I", raw[4:8])[0]
        self.base = PB.BaseCommand(); self.base.MergeFromString(raw[8:8 + n])
        self.type = PB.BaseCommand.Type.Name(self.base.type)
        self.cmd = getattr(self.base, field_of(self.type))
        rest = raw[8 + n:]
        if rest[:2] == b"\x0e\x02":
            k = struct.unpack(">I", rest[2:6])[0]
            bem = PB.BrokerEntryMetadata(); bem.MergeFromString(rest[6:6 + k])
            self.extra["broker_entry_metadata"] = to_json(bem); rest = rest[6 + k:]
        if rest[:2] == b"\x0e\x01":
            got = struct.unpack(">I", rest[2:6])[0]; rest = rest[6:]
            self.extra["crc32c"] = "ok" if got == crc32c(rest) else f"bad {got:08x}"
        elif rest: self.extra["crc32c"] = "absent"
        if rest:
            k = struct.unpack(">I", rest[:4])[0]
            self.md = PB.MessageMetadata(); self.md.MergePartialFromString(rest[4:4 + k]) if hasattr(self.md, "MergePartialFromString") else self.md.MergeFromString(rest[4:4 + k])
            self.payload = rest[4 + k:]
    def __getattr__(self, k): return getattr(self.cmd, k)
    def id(self, **kw):
        m = self.cmd.message_id; return {"ledgerId": m.ledgerId, "entryId": m.entryId, **kw}

def unread(client, broker):
    """(state of the broker's socket, bytes that the broker has not read) of a connection between (host, port)s of this machine"""
    def end(address): return socket.inet_aton(address[0]) + bytes(12)
    ids = struct.pack(">HH", broker[1], client[1]) + end(broker) + end(client) + struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    ask = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ids
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as kernel:  # NETLINK_SOCK_DIAG
        kernel.send(struct.pack("=IHHII", 16 + len(ask), 20, 1, 1, 0) + ask); answer = kernel.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] != 20: return CLOSED, 0  # SOCK_DIAG_BY_FAMILY; an error says that there is none
    return answer[17], struct.unpack_from("=I", answer, 72)[0]

ESTABLISHED, CLOSED, CLOSE_WAIT = 1, 7, 8

class Conn:
    def __init__(self, s, name, auto_pong=True):
        self.s, self.name, self.auto_pong = s, name, auto_pong
        self.sock = socket.create_connection(s.addr, 5); self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = b""; self.inbox = []; self.open = True; self.rid = 0; self.name_of_socket = self.sock.getsockname(); self.pending = False; self.out = b""
        s.conns.append(self); s.note(conn=name, event="tcp_open")
    # -- out
    def raw(self, data, **note):
        self.s.hand_over(self)
        self.s.note(conn=self.name, dir="c2b", **note, **({"raw": data.hex()} if len(data) < 200 else {"raw_bytes": len(data)}))
        self.out += data; self.pending = True
        if not self.s.a.in_order: self.flush()
    def flush(self):
        data, self.out = self.out, b""
        try:
            if data: self.sock.sendall(data)
        except OSError as e: self.s.note(conn=self.name, event="send_failed", error=str(e))
    def heard(self):
        """whether the broker has read all from this connection; if that is closed, whether it has closed its end"""
        state, count = unread(self.name_of_socket, self.s.addr)
        return state not in (ESTABLISHED, CLOSE_WAIT) or count == 0 and self.open
    def send(self, type_, **fields):
        m = base(type_, **fields)
        self.raw(simple(m.SerializePartialToString()), type=type_, cmd=to_json(getattr(m, field_of(type_))))
    def req(self, type_, t=5, **fields):
        """send with a fresh request_id, wait for the frame that carries it"""
        if "request_id" not in fields: self.rid += 1; fields["request_id"] = self.rid
        rid = fields["request_id"]
        self.send(type_, **fields)
        return self.wait(lambda f: "request_id" in f.cmd.DESCRIPTOR.fields_by_name and f.cmd.request_id == rid, t, f"a reply to request {rid}")
    def connect(self, version=21, flags=None, wait=True, **kw):
        f = {"client_version": "transcript-1", **kw}
        if version is not None: f["protocol_version"] = version
        if flags is None: flags = {"supports_auth_refresh": True}
        if flags: f["feature_flags"] = flags
        self.send("CONNECT", **f)
        if wait: self.expect("CONNECTED", "ERROR")
        return self
    def payload(self, pid, seq, payload=b"", md=None, batch=None, crc=None, magic=True, name=None, raw_md=None, wait=True, t=5, **send):
        """a SEND frame; batch = list of (payload, single-metadata dict)"""
        if isinstance(payload, str): payload = payload.encode()
        c = {"producer_id": pid, "sequence_id": seq, **send}
        m = {"producer_name": name or self.s.pname.get((self.name, pid), "p"), "sequence_id": seq, "publish_time": now_ms(), **(md or {})}
        shown = None
        if batch is not None:
            payload = b""; shown = []
            for p, smd in batch:
                p = p.encode() if isinstance(p, str) else p
                x = fill(PB.SingleMessageMetadata(), {"payload_size": len(p), **smd}); b = x.SerializeToString()
                payload += struct.pack(">I", len(b)) + b + p; shown.append({"metadata": to_json(x), "payload": show(p)})
            m.setdefault("num_messages_in_batch", len(batch)); c.setdefault("num_messages", len(batch))
        cm = base("SEND", **c); mm = fill(PB.MessageMetadata(), m)
        mdb = mm.SerializePartialToString() if raw_md is None else raw_md
        data = with_payload(cm.SerializePartialToString(), mdb, payload, crc, magic)
        note = {"type": "SEND", "cmd": to_json(cm.send), "metadata": to_json(mm) if raw_md is None else {"hex": mdb.hex()}}
        if shown is not None: note["batch"] = shown
        else: note["payload"] = show(payload)
        if crc is not None: note["crc32c"] = "bad"
        if not magic: note["crc32c"] = "absent"
        self.raw(data, **note)
        if wait:
            want = max(seq, send.get("highest_sequence_id", 0))
            return self.wait(lambda f: f.type in ("SEND_RECEIPT", "SEND_ERROR") and f.cmd.producer_id == pid and f.cmd.sequence_id in (seq, want), t, f"a receipt for {pid}/{seq}")
    # -- in
    def wait(self, pred, t, what):
        end = time.monotonic() + t
        while True:
            for i, f in enumerate(self.inbox):
                if pred(f): return self.inbox.pop(i)
            if not self.open: return None
            left = end - time.monotonic()
            if left <= 0: self.s.note(conn=self.name, wait=f"no {what} within {int(t * 1000)} ms"); return None
            self.s.pump(left)
    def expect(self, *types, t=5): return self.wait(lambda f: f.type in types, t, "/".join(types))
    def closed(self, t=3):
        end = time.monotonic() + t
        while self.open and time.monotonic() < end: self.s.pump(end - time.monotonic())
        if self.open: self.s.note(conn=self.name, wait=f"still open after {int(t * 1000)} ms")
        return not self.open
    def close(self):
        self.s.hand_over(self); self.flush()
        if self.open: self.s.note(conn=self.name, event="closed_by_client")
        self.pending = True; self.open = False; self.sock.close()
    def take(self):
        x, self.inbox = self.inbox, []; return x
    # -- short forms
    def sub(self, topic, sub="s", cid=0, type="Exclusive", t=8, **kw):
        return self.req("SUBSCRIBE", t=t, topic=topic, subscription=sub, subType=type, consumer_id=cid, **kw)
    def prod(self, topic, pid=0, name=None, t=8, **kw):
        if name: kw["producer_name"] = name
        f = self.req("PRODUCER", t=t, topic=topic, producer_id=pid, **kw)
        if f is not None and f.type == "PRODUCER_SUCCESS": self.s.pname[(self.name, pid)] = f.cmd.producer_name
        return f
    def flow(self, n, cid=0): self.send("FLOW", consumer_id=cid, messagePermits=n)
    def ack(self, ids, cid=0, type="Individual", reply=False, **kw):
        ids = ids if isinstance(ids, list) else [ids]
        if reply: return self.req("ACK", consumer_id=cid, ack_type=type, message_id=ids, **kw)
        self.send("ACK", consumer_id=cid, ack_type=type, message_id=ids, **kw)
    def msgs(self, n, t=3):
        out = []
        for _ in range(n):
            f = self.wait(lambda f: f.type == "MESSAGE", t, "MESSAGE")
            if f is None: break
            out.append(f)
        return out
    def redeliver(self, ids=(), cid=0, **kw): self.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=cid, message_ids=list(ids), **kw)
    def last_id(self, cid=0): return self.req("GET_LAST_MESSAGE_ID", consumer_id=cid)

class Scenario:
    def __init__(self, a, nn, fn):
        self.a, self.fn = a, fn; self.addr = a.addr; self.conns = []; self.pname = {}
        self.slug = fn.slug; self.ns = f"tr/{fn.slug}"; self.lock = threading.Lock()
        self.path = os.path.join(a.out, f"{nn:03d}-{fn.slug}.jsonl"); self.lines = []; self.t0 = time.monotonic()
    def topic(self, suffix="", domain="persistent"): return f"{domain}://{self.ns}/t{suffix}"
    def note(self, **d):
        d = {k: v for k, v in d.items() if v is not None}
        with self.lock: self.lines.append(json.dumps({"t": int((time.monotonic() - self.t0) * 1000), **d}, ensure_ascii=False))
    def say(self, text): self.note(step=text)
    def conn(self, name, version=21, flags=None, auto_pong=True, **kw): return Conn(self, name, auto_pong).connect(version, flags, **kw)
    def tcp(self, name, **kw): return Conn(self, name, **kw)
    def hand_over(self, to=None):
        """with --in-order, send what the other connections hold back, and wait until the broker has read it

        A broker with one loop finds all that two connections sent while it was busy, and serves either first; what one
        connection sends in a row is one read for it, or several. Here the first to send is served first, and a row is one
        read, however busy the machine. A broker that does not read is waited for 250 ms.
        """
        if not self.a.in_order: return
        before = [c for c in self.conns if c is not to and c.pending]; end = time.monotonic() + 0.25
        for c in before: c.flush(); c.pending = False
        while not all(c.heard() for c in before) and time.monotonic() < end: time.sleep(0.001)
    def sleep(self, t):
        """let t seconds pass; with --in-order PINGs are answered meanwhile, for on a busy machine it may be long"""
        if not self.a.in_order: time.sleep(t); return
        self.hand_over(); end = time.monotonic() + t
        while (left := end - time.monotonic()) > 0: self.pump(left)
    def pump(self, t):
        """read what is there; returns the number of frames"""
        for c in self.conns: c.flush()
        socks = {c.sock: c for c in self.conns if c.open}
        if not socks: time.sleep(min(t, 0.05)); return 0
        r, _, _ = select.select(list(socks), [], [], max(0, min(t, 0.25)))
        n = 0
        for sk in r:
            c = socks[sk]
            try: data = sk.recv(1 << 20)
            except OSError as e: data = b""; self.note(conn=c.name, event="reset", error=str(e))
            if not data: c.open = False; self.note(conn=c.name, event="closed_by_broker"); sk.close(); continue
            c.buf += data
            while len(c.buf) >= 4:
                k = 4 + struct.unpack(">I", c.buf[:4])[0]
                if len(c.buf) < k: break
                raw, c.buf = c.buf[:k], c.buf[k:]
                self.got(c, raw); n += 1
        return n
    def got(self, c, raw):
        f = Frame(raw); d = {"conn": c.name, "dir": "b2c", "type": f.type, "cmd": to_json(f.cmd), **f.extra}
        if f.md is not None:
            d["metadata"] = to_json(f.md)
            if f.md.HasField("num_messages_in_batch") and not f.md.compression and not f.md.encryption_keys:
                try:
                    p, out = f.payload, []
                    for _ in range(f.md.num_messages_in_batch):
                        if not p: break
                        k = struct.unpack(">I", p[:4])[0]; x = PB.SingleMessageMetadata(); x.MergeFromString(p[4:4 + k]); p = p[4 + k:]
                        out.append({"metadata": to_json(x), "payload": show(p[:x.payload_size])}); p = p[x.payload_size:]
                    d["batch"] = out
                except Exception: d["payload"] = show(f.payload)
            else: d["payload"] = show(f.payload)
        self.note(**d, **({"raw": raw.hex()} if len(raw) < 200 else {"raw_bytes": len(raw)}))
        if f.type == "PING" and c.auto_pong: c.send("PONG"); return
        c.inbox.append(f)
    def quiet(self, ms):
        """listen for ms whatever comes"""
        self.hand_over()
        end = time.monotonic() + ms / 1000; n = 0
        while (left := end - time.monotonic()) > 0: n += self.pump(left)
        self.note(wait=f"nothing for {ms} ms" if n == 0 else f"{n} frames in {ms} ms")
        return n
    def settle(self, ms=300, limit=6):
        """listen until ms pass without a frame"""
        self.hand_over()
        stop = time.monotonic() + limit; last = time.monotonic(); n = 0
        while time.monotonic() < stop and time.monotonic() - last < ms / 1000:
            k = self.pump(ms / 1000 - (time.monotonic() - last))
            if k: n += k; last = time.monotonic()
        self.note(wait=f"nothing more for {ms} ms")
        return n
    def http(self, method, path, body=None, ctype="application/json", timeout=20):
        data = None if body is None else (body if isinstance(body, (bytes, bytearray)) else json.dumps(body).encode())
        rq = urllib.request.Request(self.a.admin + path, data=data, method=method)
        if data is not None: rq.add_header("Content-Type", ctype)
        if self.a.secret: rq.add_header("Authorization", "Bearer " + self.jwt("admin"))
        try:
            with urllib.request.urlopen(rq, timeout=timeout) as r: return r.status, r.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as e: return e.code, e.read().decode("utf-8", "replace")
        except Exception as e: return -1, repr(e)
    def rest(self, method, path, body=None, pick=None, retry=None, **kw):
        """an admin call; frames that arrive meanwhile are recorded at their time"""
        self.hand_over()
        box = []
        th = threading.Thread(target=lambda: box.append(self.http(method, path, body, **kw)), daemon=True)
        t1 = int((time.monotonic() - self.t0) * 1000); th.start()
        while th.is_alive(): self.pump(0.01)
        st, tx = box[0]
        try: val = json.loads(tx)
        except Exception: val = tx[:400]
        full = val
        if pick and st == 200: val = pick(val)
        self.note(rest=f"{method} {path}", **({"request": body} if body is not None and not isinstance(body, bytes) else {}), sent_at=t1, status=st, body=val)
        return full
    def admin(self, method, suffix, body=None, topic=None, domain="persistent", **kw):
        t = (topic or self.topic(domain=domain)).split("://")
        return self.rest(method, f"/admin/v2/{t[0]}/{t[1]}{suffix}", body, **kw)
    def policy(self, method, suffix, body=None): return self.rest(method, f"/admin/v2/namespaces/{self.ns}{suffix}", body)
    def jwt(self, sub, ttl=None, secret=None, **claims):
        """an HS256 token for the profile with authentication"""
        import hmac, hashlib
        b = lambda x: base64.urlsafe_b64encode(x).rstrip(b"=")
        c = {"sub": sub, **({"exp": int(time.time()) + ttl} if ttl is not None else {}), **claims}
        m = b(b'{"alg":"HS256"}') + b"." + b(json.dumps(c).encode())
        return (m + b"." + b(hmac.new((secret or self.a.secret).encode(), m, hashlib.sha256).digest())).decode()
    def prepare(self):
        cl = json.loads(self.http("GET", "/admin/v2/clusters")[1])
        self.http("PUT", "/admin/v2/tenants/tr", {"allowedClusters": cl, "adminRoles": []})
        if self.http("GET", f"/admin/v2/namespaces/{self.ns}")[0] == 200:
            self.http("DELETE", f"/admin/v2/namespaces/{self.ns}?force=true")
            for _ in range(40):
                if self.http("GET", f"/admin/v2/namespaces/{self.ns}")[0] == 404: break
                time.sleep(0.25)
        st, tx = self.http("PUT", f"/admin/v2/namespaces/{self.ns}", {"bundles": {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}})
        if st not in (200, 204): print("namespace", self.ns, st, tx)
        if self.fn.warm:  # own the bundle and load the topic-policies cache first, so that timings are of the scenario
            self.http("PUT", f"/admin/v2/persistent/{self.ns}/warm"); self.http("DELETE", f"/admin/v2/persistent/{self.ns}/warm")
    def run(self):
        self.prepare()
        self.lines = [json.dumps({"scenario": self.slug, "purpose": self.fn.purpose, "config": {"profile": self.fn.profile, **self.a.config, "namespace": self.ns, **self.fn.config}})]
        self.t0 = time.monotonic(); ok = True
        try: self.fn(self)
        except Exception as e:
            ok = False; self.note(event="driver_error", error=traceback.format_exc(limit=-2)); traceback.print_exc()
        for c in self.conns:
            if c.open: self.settle(50, 0.3); break
        for c in self.conns:
            if c.open: c.sock.close()
        with open(self.path, "w") as f: f.write("\n".join(self.lines) + "\n")
        return ok

def main():
    global PB
    p = argparse.ArgumentParser()
    p.add_argument("--proto", required=True); p.add_argument("--out", required=True)
    p.add_argument("--broker", default="127.0.0.1:6650"); p.add_argument("--admin", default="http://127.0.0.1:8080")
    p.add_argument("--profile", default="lab"); p.add_argument("--config", default="{}", help="JSON put into the first line")
    p.add_argument("--secret", help="HS256 key of the token authentication of this broker"); p.add_argument("--list", action="store_true"); p.add_argument("only", nargs="*")
    p.add_argument("--in-order", action="store_true", help="let a broker on this machine read all from one connection before another sends")
    a = p.parse_args()
    sys.path.insert(0, a.proto); sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.modules["record"] = sys.modules[__name__]
    import PulsarApi_pb2 as pb
    PB = pb; a.config = json.loads(a.config); a.addr = (a.broker.rsplit(":", 1)[0], int(a.broker.rsplit(":", 1)[1]))
    os.makedirs(a.out, exist_ok=True)
    import scenarios
    for nn, fn in enumerate(scenarios.ALL, 1):
        if a.list: print(f"{nn:03d} {fn.profile} {fn.slug}: {fn.purpose}"); continue
        if fn.profile != a.profile or (a.only and not any(o in f"{nn:03d}-{fn.slug}" for o in a.only)): continue
        t = time.monotonic(); s = Scenario(a, nn, fn); ok = s.run()
        print(f"{nn:03d}-{fn.slug} {'ok' if ok else 'DRIVER ERROR'} {len(s.lines)} lines {time.monotonic() - t:.1f} s", flush=True)

if __name__ == "__main__": main()
