"""JSON encoding of values."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from pulsarium.client.errors import InvalidMessage
from pulsarium.client.schema.structured import JsonSchema
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.schema.people import ADA, Color, Home, Person

DICTS = JsonSchema({"type": "record", "name": "R", "fields": []})


def test_the_form_is_javas() -> None:
    schema = JsonSchema(Person)
    data = schema.encode(ADA)
    assert "Ada Ä".encode() in data
    plain = json.loads(data)
    assert plain["picture"] == "AP8="
    assert plain["color"] == "BLUE"
    assert plain["born"] == -4861728000000
    assert plain["main"] == {"street": "y", "number": None}
    assert plain["favourite"] is None
    assert schema.info.type == pb.Schema.Json
    assert not schema.reads_by_writer


def changed(**change: Any) -> bytes:
    plain = json.loads(JsonSchema(Person).encode(ADA)) | change
    return json.dumps({key: value for key, value in plain.items() if value is not ...}).encode()


def test_missing_fields_get_their_defaults_and_unknown_fields_are_ignored() -> None:
    found = JsonSchema(Person).decode(changed(names=..., main=..., more=[3]))
    assert (found.names, found.main, found.name) == ([], None, "Ada Ä")
    with pytest.raises(InvalidMessage, match="Person: name: missing"):
        JsonSchema(Person).decode(changed(name=...))


def test_enums_by_value_as_the_official_client_writes_them() -> None:
    assert JsonSchema(Person).decode(changed(color=1)).color is Color.RED
    with pytest.raises(InvalidMessage, match="color: True is no Color"):
        JsonSchema(Person).decode(changed(color=True))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_texts(number: float) -> None:
    ada = Person(**{**vars(ADA), "height": number})
    found = JsonSchema(Person).decode(JsonSchema(Person).encode(ada))
    assert repr(found.height) == repr(number)
    assert repr(JsonSchema(Person).decode(changed(height=number)).height) == repr(number)  # NaN, as Python writes it


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"picture": "AP8"}, "picture: no base64"),
        ({"born": 2**70}, "born: .* ms are outside the years"),
        ({"age": 2**40}, "age: does not fit into 32 bits"),
        ({"age": 1.0}, "age: int, not float"),
        ({"height": "x"}, "height: float, not str"),
        ({"homes": []}, "homes: dict, not list"),
        ({"main": "x"}, "main: Home, not str"),
    ],
)
def test_json_values_that_do_not_fit_are_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidMessage, match=text):
        JsonSchema(Person).decode(changed(**change))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000])
def test_bytes_that_are_no_json_object_are_refused(data: bytes) -> None:
    for schema in (JsonSchema(Person), DICTS):
        with pytest.raises(InvalidMessage):
            schema.decode(data)


def test_dicts_are_what_json_has() -> None:
    value: dict[str, Any] = {"a": [1, None, "ä", 1.5, True, {}], "R": {"b": {}}}
    data = DICTS.encode(value)
    assert data == '{"a":[1,null,"ä",1.5,true,{}],"R":{"b":{}}}'.encode()
    assert DICTS.decode(data) == value
    endless: dict[str, Any] = {}
    endless["a"] = endless
    bad: Any
    for bad in ({"a": b""}, {"a": Home("x")}, {"a": math.nan}, {"a": "\ud800"}, endless, [], None, "a", 3):
        with pytest.raises(InvalidMessage, match="JsonSchema of R"):
            DICTS.encode(bad)
