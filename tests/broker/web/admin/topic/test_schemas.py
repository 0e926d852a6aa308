"""/admin/v2/schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsarium.broker.config import PULSAR_4_2
from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Rest
from tests.broker.web.admin.steps import EMPTY, PAGE, Reason, Step, Text, play
from tests.broker.wire import Bed

SCHEMAS = "/admin/v2/schemas/public/default"
URL = f"{SCHEMAS}/t"
UNEXPECTED = "\n --- An unexpected error occurred in the server ---\n\nMessage: "


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields)}


def payload(definition: Any = "", kind: str = "AVRO", **properties: str) -> dict[str, Any]:
    text = definition if isinstance(definition, str) else json.dumps(definition)
    return {"type": kind, "schema": text, "properties": properties}


A = {"name": "a", "type": "string"}
ONE = payload(record(A), k="v")
TWO = payload(record(A, {"name": "b", "type": ["null", "int"], "default": None}))
WRONG = payload(record({"name": "c", "type": "int"}))


async def test_a_schema_is_that_of_all_partitions_and_its_version_a_number(rest: Rest) -> None:
    await rest.call("POST", f"{URL}/schema", ONE)
    await play(rest, Step(f"GET {URL}/schema/x", 400, Reason('For input string: "x"')))
    found = await rest.get(f"{SCHEMAS}/t-partition-3/schema")
    assert (found["version"], found["data"], found["properties"]) == (0, ONE["schema"], {"k": "v"})


async def test_definitions_of_keys_and_values_are_json_inside_of_json(rest: Rest) -> None:
    named = {"key.schema.type": "STRING", "value.schema.type": "AVRO"}
    sent = payload({"key": "", "value": record(A)}, "KEY_VALUE", **named)
    await play(
        rest,
        Step(f"POST {URL}/schema", 200, {"version": {"version": 0}}, sent),
        Step(f"POST {URL}/schema", 400, Reason("class com.google.gson.JsonP"), payload("[]", "KEY_VALUE")),
        Step(f"POST {URL}/schema", 400, Reason("Cannot invoke"), payload({"key": ""}, "KEY_VALUE")),
    )
    found = await rest.get(f"{URL}/schema")
    assert json.loads(found["data"]) == {"key": "", "value": record(A)}
    assert found["properties"] == named


@pytest.mark.parametrize("route", ["schema", "compatibility"])
async def test_schemas_are_those_of_a_namespace_that_is_there(rest: Rest, route: str) -> None:
    missing = f"POST /admin/v2/schemas/public/missing/t/{route}"
    await play(rest, Step(missing, 404, Reason("Namespace does not exist"), ONE))


async def test_an_incompatible_schema_is_refused_with_the_strategy(rest: Rest) -> None:
    await play(
        rest,
        Step(f"POST {URL}/schema", 200, {"version": {"version": 0}}, ONE),
        Step(f"POST {URL}/compatibility", 202, {"schemaCompatibilityStrategy": "FULL", "compatibility": True}, TWO),
        Step(f"POST {URL}/compatibility", 409, Reason("Error during schema compatibility check"), WRONG),
        Step(f"POST {URL}/compatibility", 422, Reason("Invalid schema definition data"), payload("bad")),
        Step(f"PUT {NAMESPACES}/public/default/schemaCompatibilityStrategy", 204, value="ALWAYS_COMPATIBLE"),
        Step(
            f"POST {URL}/compatibility",
            202,
            {"schemaCompatibilityStrategy": "ALWAYS_COMPATIBLE", "compatibility": True},
            WRONG,
        ),
        Step(f"PUT {TOPICS}/t", 204),
        Step(f"PUT {TOPICS}/t/schemaCompatibilityStrategy", 204, value="BACKWARD"),
    )
    for sent, status, message in (
        (WRONG, 409, "Error during schema compatibility check with strategy BACKWARD: org.apache.avro."),
        (payload(kind="STRING"), 409, "Incompatible schema: exists schema type AVRO, new schema type STRING"),
        (payload(ONE["schema"], "JSON"), 409, "Incompatible schema: exists schema type AVRO, new schema type JSON"),
        (payload("bad"), 422, "Invalid schema definition data for AVRO schema"),
        (payload(kind="AUTO_PUBLISH"), 422, "Schema AUTO_PUBLISH is a client-side schema type"),
    ):
        answer = await rest.call("POST", f"{URL}/schema", sent, Accept="application/json")
        assert (answer.status, answer.body.decode().startswith(PAGE)) == (status, True)
        assert answer.json["message"].startswith(message)


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_an_incompatible_schema_is_a_fault_of_the_released_broker(rest: Rest) -> None:
    await rest.call("POST", f"{URL}/schema", ONE)
    for sent, text in ((WRONG, "Error during schema"), (payload("bad"), "Invalid schema definition data")):
        status, reason = await rest.refused("POST", f"{URL}/compatibility", sent)
        assert (status, reason.startswith(UNEXPECTED + text)) == (500, True)


@pytest.mark.parametrize("route", ["schema", "version", "compatibility"])
async def test_bodies_that_are_no_schema_are_refused(rest: Rest, route: str) -> None:
    url = f"POST {URL}/{route}"
    await play(
        rest,
        Step(url, 400, Reason('Cannot invoke "org.apache.pulsar.common.protocol')),
        Step(url, 400, Reason("No enum constant org.apache.pulsar.common.schema.SchemaType.avro"),
             payload(record(), "avro")),
        Step(url, 400, Reason("Name is null"), {"schema": ""}),
        Step(url, 400, Reason('Cannot invoke "String.getBytes'), {"type": "STRING"}),
        Step(url, 400, Text("Cannot deserialize value of type"), [1]),
    )  # fmt: skip


async def test_a_topic_takes_its_schema_with_it(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.call("POST", f"{URL}/schema", ONE)
    await rest.done("DELETE", f"{TOPICS}/t")
    await play(rest, Step(f"GET {URL}/metadata", 200, EMPTY))


NASTY: list[dict[str, Any]] = [
    {"type": 1, "schema": ""},
    {"type": [], "schema": ""},
    {"type": "STRING", "schema": {}},
    {"type": "STRING", "schema": "\ud800"},
    {"type": "STRING", "schema": "", "properties": []},
    {"type": "STRING", "schema": "", "properties": {"a": {}}},
    {"type": "INT8", "schema": 5},
    payload("[" * 5000),
    payload('{"type":' * 200 + '"int"' + "}" * 200, "JSON"),
    payload({"type": "array", "items": {"type": "map", "values": "missing"}}),
    payload({"type": "enum", "name": "E", "symbols": [1, None]}),
    payload({"type": "record", "name": "R", "fields": [None]}),
    payload({"type": "record", "name": "R", "fields": [{"name": "a", "type": 5}]}),
    payload({"type": "record", "name": 5, "fields": []}),
    payload({"type": "record", "name": "R", "namespace": 5, "aliases": [5], "fields": []}),
    payload({"type": "record", "name": "R", "fields": [], "x": float("inf")}),
    payload({"fileDescriptorSet": 5, "rootMessageTypeName": [], "rootFileDescriptorName": {}}, "PROTOBUF_NATIVE"),
    payload({"fileDescriptorSet": "", "rootMessageTypeName": None}, "PROTOBUF_NATIVE"),
    payload("5", "PROTOBUF_NATIVE"),
    payload({"key": 5, "value": None}, "KEY_VALUE"),
    payload({"key": {}, "value": []}, "KEY_VALUE", **{"key.schema.type": "AVRO", "value.schema.type": "KEY_VALUE"}),
    payload({"key": "", "value": ""}, "KEY_VALUE", **{"key.schema.type": "NOPE"}),
    payload({"key": "", "value": ""}, "KEY_VALUE", **{"key.schema.properties": "{"}),
    payload("{" * 9, "EXTERNAL"),
]


@pytest.mark.parametrize("sent", NASTY, ids=range(len(NASTY)))
async def test_no_schema_is_a_fault_of_the_broker(rest: Rest, sent: dict[str, Any]) -> None:
    await rest.call("POST", f"{URL}/schema", ONE)
    for route in ("version", "compatibility", "schema"):
        for topic in (URL, f"{SCHEMAS}/fresh"):
            answer = await rest.call("POST", f"{topic}/{route}", sent)
            assert answer.status in (200, 202, 400, 409, 422), (route, answer.body)
    for url in (f"{URL}/schema", f"{SCHEMAS}/fresh/schema", f"{SCHEMAS}/fresh/schemas"):
        assert (await rest.call("GET", url)).status in (200, 404)
