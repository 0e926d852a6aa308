"""Publish a message by the schema of its topic."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from pulsarium.broker.model.schema.data import SchemaData
from pulsarium.proto.routing import segment_hash
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Answer, Rest
from tests.broker.web.console.schemas import ORDER, avro, json_schema, native, pair
from tests.broker.wire import Bed, Wire

URL = "/pulsarium/publish/persistent/public/default/t"
MESSAGES = "/pulsarium/messages/persistent/public/default/t"
GOOD = {"id": 7, "customer": {"name": "Ada", "tags": ["a"]}, "state": "PAID"}


async def with_schema(wire: Wire, schema: SchemaData) -> None:
    await wire.producer(schema=schema.to_proto("s"))


async def publish(rest: Rest, body: Any) -> Answer:
    return await rest.call("POST", URL, body)


async def stored(rest: Rest) -> dict[str, Any]:
    (found,) = (await rest.get(MESSAGES))["messages"]
    row: dict[str, Any] = found
    return row


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (avro(ORDER), {**GOOD, "note": None}),
        (json_schema(ORDER), GOOD),
        (native(), {"full_name": "Ada"}),
        (pair("INLINE"), {"key": "k", "value": {"name": "Ada"}}),
        (pair("SEPARATED"), {"key": "k", "value": {"name": "Ada"}}),
        (SchemaData("STRING"), "text"),
        (SchemaData("INT32"), -5),
        (SchemaData("BOOLEAN"), True),
        (SchemaData("DOUBLE"), 0.5),
        (SchemaData("INSTANT"), "2026-01-31T12:00:00Z"),
        (SchemaData("LOCAL_DATE_TIME"), "2026-01-31T12:00:00.000001"),
    ],
    ids=lambda value: value.type if isinstance(value, SchemaData) else "",
)
@pytest.mark.parametrize("as_text", [False, True], ids=["value", "text"])
async def test_a_value_is_encoded_by_the_schema(
    rest: Rest, wire: Wire, schema: SchemaData, value: Any, as_text: bool
) -> None:
    await with_schema(wire, schema)
    text = value if schema.type == "STRING" else json.dumps(value, indent=1)
    answer = await publish(rest, {"text": text} if as_text else {"value": value})
    assert answer.status == 200, answer
    found = await stored(rest)
    assert (found["value"], found["schemaVersion"], found["kind"]) == (value, 0, schema.type)
    assert answer.json == {"messageId": found["id"], "topic": "persistent://public/default/t"}


async def test_a_consumer_receives_what_the_console_published(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await wire.subscribe()
    await wire.flow()
    body = {"text": "hello", "key": "k", "properties": {"a": "b"}, "eventMs": 5}
    assert (await publish(rest, body)).status == 200
    message = await wire.message()
    found = await stored(rest)
    assert message.payload == b"hello"
    assert (found["key"], found["properties"], found["eventMs"]) == ("k", [["a", "b"]], 5)


@pytest.mark.parametrize(
    ("change", "at", "reason"),
    [
        ({"id": "7"}, "id", 'id: expected a whole number, got "7"'),
        ({"id": 2**31}, "id", "id: 2147483648 does not fit into 32 bits, those of int"),
        ({"customer": {"name": 12, "tags": []}}, "customer.name", "customer.name: expected a string, got 12"),
        ({"customer": {"tags": []}}, "customer.name", "customer.name: it is missing; expected a string"),
        ({"customer": {"name": "A", "tags": ["a", None]}}, "customer.tags[1]", "expected a string, got null"),
        ({"state": "PAYED"}, "state", 'state: expected one of NEW, PAID, got "PAYED"'),
        ({"custmer": 1}, "custmer", "there is no such field; did you mean customer?"),
        ({"note": 5}, "note", "note: expected a string, got 5"),
    ],
)
@pytest.mark.parametrize("schema", [avro(ORDER), json_schema(ORDER)], ids=["avro", "json"])
async def test_an_error_names_its_place(
    rest: Rest, wire: Wire, schema: SchemaData, change: Any, at: str, reason: str
) -> None:
    await with_schema(wire, schema)
    answer = await publish(rest, {"value": GOOD | change})
    assert (answer.status, answer.json["at"]) == (400, at)
    assert reason in answer.json["reason"]
    assert (await rest.get(MESSAGES))["total"] == 0


@pytest.mark.parametrize(
    ("schema", "value", "at"),
    [
        (native(), {"full_name": 5}, "full_name"),
        (native(), {"fullname": "Ada"}, ""),
        (pair("INLINE"), {"key": "k", "value": {"name": 5}}, "value.name"),
        (pair("INLINE"), {"key": 5, "value": {"name": "Ada"}}, "key"),
        (SchemaData("INT8"), 128, ""),
        (SchemaData("BOOLEAN"), "yes", ""),
        (SchemaData("STRING"), 5, ""),
        (SchemaData("FLOAT"), "x", ""),
        (SchemaData("FLOAT"), 1e300, ""),
        (SchemaData("INSTANT"), "x", ""),
        (SchemaData("LOCAL_DATE_TIME"), 5, ""),
        (pair("INLINE"), [], ""),
    ],
)
async def test_a_value_of_another_type_is_refused_with_its_place(
    rest: Rest, wire: Wire, schema: SchemaData, value: Any, at: str
) -> None:
    await with_schema(wire, schema)
    answer = await publish(rest, {"value": value})
    assert (answer.status, answer.json["at"]) == (400, at), answer


async def test_a_text_that_is_no_json_names_its_line_and_column(rest: Rest, wire: Wire) -> None:
    await with_schema(wire, avro(ORDER))
    answer = await publish(rest, {"text": '{\n "id": }'})
    assert (answer.status, answer.json["line"], answer.json["column"]) == (400, 2, 8)


async def test_json_keeps_the_numbers_of_its_text(rest: Rest, wire: Wire) -> None:
    definition = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "double"}]}
    await with_schema(wire, json_schema(definition))
    await wire.subscribe()
    await wire.flow()
    assert (await publish(rest, {"text": '{ "n": 0.10000000000000000001 }'})).status == 200
    assert (await wire.message()).payload == b'{"n":0.10000000000000000001}'


@pytest.mark.parametrize("raw", [False, True])
async def test_bytes_on_a_topic_with_a_schema_are_asked_for(rest: Rest, wire: Wire, raw: bool) -> None:
    await with_schema(wire, avro(ORDER))
    answer = await publish(rest, {"base64": base64.b64encode(b"\xff").decode(), "raw": raw})
    if not raw:
        assert (answer.status, "pass raw" in answer.json["reason"]) == (400, True)
        return
    found = await stored(rest)
    assert (answer.status, found["value"], "schemaVersion" in found) == (200, "ff", False)


@pytest.mark.parametrize(
    "body",
    [{}, {"base64": "x"}, {"value": 5}, {"text": "x", "properties": 5}, 5],
)
async def test_a_wrong_body_is_refused(rest: Rest, wire: Wire, body: Any) -> None:
    await with_schema(wire, SchemaData("STRING"))
    assert 400 <= (await publish(rest, body)).status < 500


async def test_bytes_are_refused_where_the_namespace_demands_a_schema(rest: Rest, wire: Wire) -> None:
    await with_schema(wire, avro(ORDER))
    await rest.done("POST", f"{NAMESPACES}/public/default/schemaValidationEnforced", True)
    answer = await publish(rest, {"text": "x", "raw": True})
    assert (answer.status, "without a schema" in answer.reason) == (409, True)


async def test_the_key_of_a_pair_is_in_its_value(rest: Rest, wire: Wire) -> None:
    await with_schema(wire, pair("SEPARATED"))
    body = {"value": {"key": "k", "value": {"name": "Ada"}}, "key": "k"}
    assert "leave out the key" in (await publish(rest, body)).json["reason"]


async def test_a_message_goes_to_the_partition_of_its_key(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 4)
    answers = [(await publish(rest, {"text": "x", "key": "a"})).json["topic"] for _ in range(4)]
    assert set(answers) == {f"persistent://public/default/t-partition-{ord('a') % 4}"}
    without = {(await publish(rest, {"text": "x"})).json["topic"] for _ in range(50)}
    assert len(without) > 1


async def test_a_message_goes_to_the_segment_of_its_key(rest: Rest, bed: Bed) -> None:
    scalable = bed.broker.cluster.scalable.create(TopicName.parse("topic://public/default/t"), 4)
    url = URL.replace("persistent", "topic")
    for key in ("a", "b", "c", "d"):
        answer = await rest.call("POST", url, {"text": "x", "key": key})
        place = segment_hash(key)
        owner = next(each for each in scalable.layout.active() if each.start <= place <= each.end)
        assert answer.json["topic"] == str(scalable.segment_topic(owner))
    assert (await rest.call("POST", url, {"text": "x"})).status == 200
    assert (await rest.call("POST", url.replace("default/t", "default/u"), {"text": "x"})).status == 404


async def test_an_absent_topic_is_not_created(rest: Rest) -> None:
    assert (await publish(rest, {"text": "x"})).status == 404


async def test_a_message_without_a_value_ends_its_key(rest: Rest, wire: Wire) -> None:
    await with_schema(wire, avro(ORDER))
    assert (await publish(rest, {"value": None, "key": "k"})).status == 200
    assert (await stored(rest))["kind"] == "null"


async def test_a_full_topic_takes_no_message(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.producer()
    bed.topic().terminate()
    answer = await publish(rest, {"text": "x"})
    assert (answer.status, "The topic takes no message now" in answer.reason) == (409, True)


async def test_a_message_is_delivered_after_its_delay(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    assert (await publish(rest, {"text": "x", "deliverAfterMs": 60_000})).status == 200
    found = await stored(rest)
    assert found["deliverAtMs"] == found["publishMs"] + 60_000
