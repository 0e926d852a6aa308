"""Schemas."""

from __future__ import annotations

import struct
from typing import Any

from pulsarium.conformance.recordings.recorder import Recorder
from pulsarium.conformance.recordings.scenarios.common import scenario


@scenario(
    99,
    "GET_OR_CREATE_SCHEMA and GET_SCHEMA: each type, same again, new version, incompatible, by version, unknown "
    "version, absent topic, bad data",
)
def schema_get_create(s: Recorder) -> None:
    c = s.conn("A")

    def rec(*f: Any) -> Any:
        return '{"type":"record","name":"R","fields":[' + ",".join(f) + "]}"

    fa, fb, fc = (
        '{"name":"a","type":"int"}',
        '{"name":"b","type":["null","string"],"default":null}',
        '{"name":"c","type":"string"}',
    )

    def schema(t: Any, d: Any = "", n: Any = "n", **k: Any) -> Any:
        return dict(name=n, type=t, schema_data=d, **k)

    t = s.topic()
    c.req("GET_SCHEMA", topic=t)

    def get_or_create(tt: Any, sch: Any) -> Any:
        return c.req("GET_OR_CREATE_SCHEMA", topic=tt, schema=sch)

    s.say("avro on an absent topic")
    get_or_create(t, schema("Avro", rec(fa)))
    s.say("now it exists")
    s.admin("PUT", "")
    c.req("GET_SCHEMA", topic=t)
    get_or_create(t, schema("Avro", rec(fa), properties=[{"key": "k", "value": "v"}]))
    get_or_create(t, schema("Avro", rec(fa)))
    s.say("formatting differs")
    get_or_create(t, schema("Avro", rec(fa).replace(",", ", ")))
    get_or_create(t, schema("Avro", rec(fa, fb)))
    s.say("incompatible")
    get_or_create(t, schema("Avro", rec(fa, fc)))
    s.say("other type")
    get_or_create(t, schema("String"))
    s.say("get")
    c.req("GET_SCHEMA", topic=t)
    for v in (0, 1, 2, 999):
        c.req("GET_SCHEMA", topic=t, schema_version=struct.pack(">q", v))
    c.req("GET_SCHEMA", topic=t, schema_version=b"")
    c.req("GET_SCHEMA", topic=t, schema_version=b"ab", t=1)
    if not c.open:
        c = s.conn("A2")
    for ty, d in (
        ("None", ""),
        ("String", ""),
        ("Json", rec(fa)),
        ("Protobuf", rec(fa)),
        ("Bool", ""),
        ("Int32", ""),
        ("Date", ""),
        ("KeyValue", struct.pack(">i", 0) + struct.pack(">i", 0)),
        ("ProtobufNative", "{}"),
        ("AutoConsume", ""),
        ("External", "x"),
        ("Json", "{}"),
        ("Avro", "{bad"),
    ):
        if not c.open:
            c = s.conn("A-" + ty)
        tt = s.topic(f"-{ty}-{len(d)}")
        s.http("PUT", f"/admin/v2/persistent/{s.ns}/t-{ty}-{len(d)}")
        s.say(f"{ty} {len(d)} bytes")
        c.req("GET_OR_CREATE_SCHEMA", topic=tt, schema=schema(ty, d), t=2)
        if c.open:
            c.req("GET_SCHEMA", topic=tt)
    if not c.open:
        c = s.conn("A9")
    s.say("invalid topic name")
    c.req("GET_SCHEMA", topic="persistent://x", t=1)
    c.req("GET_OR_CREATE_SCHEMA", topic="persistent://x", schema=schema("String"), t=1)


@scenario(
    100,
    "schema compatibility strategies ALWAYS_COMPATIBLE, ALWAYS_INCOMPATIBLE, FORWARD, NONE; auto-update off; "
    "consumer side",
)
def schema_policies(s: Recorder) -> None:
    c = s.conn("A")

    def rec(*f: Any) -> Any:
        return '{"type":"record","name":"R","fields":[' + ",".join(f) + "]}"

    fa, fc = '{"name":"a","type":"int"}', '{"name":"c","type":"string"}'

    def avro(*f: Any) -> Any:
        return {"name": "n", "type": "Avro", "schema_data": rec(*f)}

    for i, st in enumerate(("ALWAYS_COMPATIBLE", "ALWAYS_INCOMPATIBLE", "FORWARD", "BACKWARD")):
        s.rest("PUT", f"/admin/v2/namespaces/{s.ns}/schemaCompatibilityStrategy", st)
        s.sleep(0.4)
        t = s.topic(f"{i}")
        c.prod(t, i * 3, schema=avro(fa))
        c.prod(t, i * 3 + 1, schema=avro(fa, fc))
        c.prod(t, i * 3 + 2, schema=avro())
        c.sub(t, "s", i, schema=avro(fa))
        c.sub(t, "s2", i + 20, schema={"name": "n", "type": "String", "schema_data": b""})
