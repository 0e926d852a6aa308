"""Authentication and authorization."""

from __future__ import annotations

import time
from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import TCA, scenario, tsend, txn


@scenario(
    149,
    "token authentication on: CONNECT without auth, wrong method, bad / expired / wrongly signed token, deprecated "
    "enum, proxy_version and original_principal from a non-proxy role, PING before CONNECT",
    profile="auth",
    warm=False,
)
def auth_connect(s: Recorder) -> None:
    def go(n: Any, **kw: Any) -> Any:
        c = s.tcp(n)
        c.connect(**kw)
        c.closed(0.4)
        c.close()

    def token(*a: Any, **k: Any) -> Any:
        return {"auth_method_name": "token", "auth_data": s.jwt(*a, **k)}

    go("none")
    go("method only", auth_method_name="token")
    go("garbage", auth_method_name="token", auth_data=b"abc")
    go("unknown method", auth_method_name="basic", auth_data=b"u:p")
    go("expired", **token("user", ttl=-10))
    go("wrong key", **token("user", secret="x" * 32))
    go("no subject", auth_method_name="token", auth_data=s.jwt(""))
    go("enum none", auth_method="AuthMethodNone", auth_data=s.jwt("user"))
    go("good", **token("user"))
    go("good v0", version=0, flags={}, **token("user"))
    go("original_principal", original_principal="other", **token("user"))
    go("proxy_version", proxy_version="1.0", **token("user"))
    go("admin as proxy", original_principal="user", **token("admin"))
    go("proxy role, no principal", **token("proxy"))
    go("proxy role with principal", original_principal="user", **token("proxy"))
    go("proxy role, principal = proxy", original_principal="proxy", **token("proxy"))
    c = s.tcp("ping")
    c.send("PING")
    c.expect("PONG", t=1)


@scenario(
    150,
    "tokens of 4 s, authenticationRefreshCheckSeconds=2: AUTH_CHALLENGE; answered with a new token, with another "
    "role, with garbage, not answered; client without the flag; unasked AUTH_RESPONSE",
    profile="auth",
)
def auth_refresh(s: Recorder) -> None:
    def token(r: Any, ttl: Any) -> Any:
        return {"auth_method_name": "token", "auth_data": s.jwt(r, ttl=ttl)}

    cs = {n: s.conn(n, **token("user", 4)) for n in ("good", "role", "garbage", "silent")}
    s.conn("noflag", flags={}, **token("user", 4))
    end = time.monotonic() + 13
    done = set()
    u = s.conn("unasked", **token("user", 100))
    u.send(
        "AUTH_RESPONSE",
        client_version="x",
        protocol_version=21,
        response={"auth_method_name": "token", "auth_data": s.jwt("user", ttl=100)},
    )
    u.closed(0.5)
    if u.open:
        u.send("PING")
        u.expect("PONG", t=1)
    while time.monotonic() < end:
        s.pump(0.2)
        for n, c in cs.items():
            if n != "silent" and n not in done and c.open and any(f.type == "AUTH_CHALLENGE" for f in c.inbox):
                done.add(n)
                c.send(
                    "AUTH_RESPONSE",
                    client_version="x",
                    protocol_version=21,
                    response={
                        "auth_method_name": "token",
                        "auth_data": {"good": s.jwt("user", ttl=60), "role": s.jwt("admin", ttl=60), "garbage": "abc"}[
                            n
                        ],
                    },
                )
    s.note(wait="13 s watched")


@scenario(
    151,
    "role without grants, with consume, with produce: LOOKUP, PARTITIONED_METADATA, PRODUCER, SUBSCRIBE, "
    "GET_TOPICS, WATCH, GET_SCHEMA, initial_subscription_name, getMessageIdByIndex",
    profile="auth",
)
def authz(s: Recorder) -> None:
    t = s.topic()
    s.admin("PUT", "")
    ns = f"persistent://{s.ns}/.*"
    for role, grant in (("nobody", None), ("eater", ["consume"]), ("maker", ["produce"])):
        if grant:
            s.policy("POST", f"/permissions/{role}", grant)
        s.sleep(0.4)
        s.say(f"{role} {grant}")
        c = s.conn(role, auth_method_name="token", auth_data=s.jwt(role))
        c.req("LOOKUP", topic=t)
        c.req("PARTITIONED_METADATA", topic=t)
        c.prod(t, 0)
        c.prod(t, 1, initial_subscription_name="init")
        c.sub(t)
        c.req("GET_TOPICS_OF_NAMESPACE", namespace=s.ns)
        c.req("WATCH_TOPIC_LIST", watcher_id=1, namespace=s.ns, topics_pattern=ns)
        c.req("GET_SCHEMA", topic=t)
        c.req("GET_OR_CREATE_SCHEMA", topic=t, schema={"name": "n", "type": "String", "schema_data": b""})
        c.last_id()
        c.req("UNSUBSCRIBE", consumer_id=0)


@scenario(
    152,
    "a transaction of role a: ADD_PARTITION, ADD_SUBSCRIPTION, END_TXN by role b, by a on another connection; then "
    "by a",
    profile="auth",
)
def auth_txn_owner(s: Recorder) -> None:
    for r in ("a", "b"):
        s.policy("POST", f"/permissions/{r}", ["produce", "consume"])
    s.sleep(0.3)
    t = s.topic()

    def mk(n: Any, r: Any) -> Any:
        return s.conn(n, auth_method_name="token", auth_data=s.jwt(r))

    boot = mk("admin", "admin")
    boot.req("LOOKUP", topic=TCA + "-partition-0")
    a, b, a2 = mk("A", "a"), mk("B", "b"), mk("A2", "a")
    for _ in range(15):
        f = boot.req("TC_CLIENT_CONNECT_REQUEST", tc_id=0)
        if f is not None and not f.cmd.HasField("error"):
            break
        s.sleep(0.3)
    for c in (a, b, a2):
        c.req("TC_CLIENT_CONNECT_REQUEST", tc_id=0)
    x = txn(a)
    b.req("ADD_PARTITION_TO_TXN", partitions=[t], **x)
    b.req("ADD_SUBSCRIPTION_TO_TXN", subscription=[{"topic": t, "subscription": "s"}], **x)
    b.req("END_TXN", txn_action="COMMIT", **x)
    a2.req("ADD_PARTITION_TO_TXN", partitions=[t], **x)
    a.prod(t, 0, "p")
    tsend(a, 0, 0, "m", x)
    b.req("END_TXN_ON_PARTITION", topic=t, txn_action="COMMIT", **x)
    a.req("END_TXN", txn_action="COMMIT", **x)
