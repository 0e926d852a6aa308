"""Common behavior of Avro and JSON: dataclasses come back, and other values raise InvalidMessage."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.client.errors import InvalidConfiguration, InvalidMessage
from pulsarium.client.schema.avro_schema import AvroSchema
from tests.client.schema.people import ADA, BOTH, Color, Home, Person, people

both = pytest.mark.parametrize("kind", BOTH)


@both
@settings(max_examples=40)
@given(person=people)
def test_dataclasses_come_back(kind: Callable[..., Any], person: Person) -> None:
    schema = kind(Person)
    assert schema.decode(schema.encode(person)) == person


@both
@settings(max_examples=40)
@given(data=st.binary(max_size=200), keep=st.integers(0, 300))
def test_random_bytes_are_an_invalid_message_or_a_person(kind: Callable[..., Any], data: bytes, keep: int) -> None:
    schema = kind(Person)
    for one in (data, schema.encode(ADA)[:keep] + data):
        with suppress(InvalidMessage):
            assert isinstance(schema.decode(one), Person)


@both
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"name": 3}, "name: str, not int"),
        ({"name": None}, "name: str, not None"),
        ({"name": "\ud800"}, "name: surrogates not allowed"),
        ({"age": 2**31}, "age: does not fit into 32 bits"),
        ({"wealth": 2**63}, "wealth: does not fit into 64 bits"),
        ({"wealth": True}, "wealth: int, not bool"),
        ({"height": "1"}, "height: float, not str"),
        ({"height": 10**400}, "height: too large"),
        ({"weight": 1e39}, "weight: 1e+39 is too large"),
        ({"is_here": 1}, "is_here: bool, not int"),
        ({"picture": "x"}, "picture: bytes, not str"),
        ({"born": datetime(2020, 1, 1)}, "born: a datetime without a time zone"),  # noqa: DTZ001
        ({"color": "RED"}, "color: Color, not str"),
        ({"homes": {"x": 3}}, "homes['x']: Home, not int"),
        ({"homes": {3: Home("")}}, "homes: str as a key, not int"),
        ({"homes": {"x": Home("", "y")}}, "homes['x'].number: int, not str"),  # type: ignore[arg-type]
        ({"names": "Ada"}, "names: list, not str"),
        ({"names": ["Ada", 3]}, "names[1]: str, not int"),
        ({"nested": [[], [1, "x"]]}, "nested[1][1]: int, not str"),
    ],
)
def test_a_value_that_does_not_fit(kind: Callable[..., Any], change: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        kind(Person).encode(replace(ADA, **change))
    assert str(caught.value).startswith(f"{kind.__name__} of Person: {text}")


@both
@pytest.mark.parametrize("value", [None, 3, {}, Person, Home("x")])
def test_a_value_of_another_class_is_refused(kind: Callable[..., Any], value: object) -> None:
    with pytest.raises(InvalidMessage, match="of Person: Person, not "):
        kind(Person).encode(value)


@dataclass
class Chain:
    link: int
    rest: Chain | None = None


def chain(length: int) -> Chain:
    whole = Chain(0)
    for link in range(1, length):
        whole = Chain(link, whole)
    return whole


@both
def test_records_nested_in_themselves_have_a_most_of_levels(kind: Callable[..., Any]) -> None:
    """The limit is at least a hundred levels. Deeper values are refused, and do not crash the process."""
    schema = kind(Chain)
    assert schema.decode(schema.encode(chain(100))) == chain(100)
    with pytest.raises(InvalidMessage, match="nested too deeply"):
        schema.encode(chain(5000))


@pytest.mark.parametrize("levels", [2_000, 1_000_000])
@pytest.mark.parametrize("definition", [Chain, AvroSchema(Chain).definition])
def test_avro_nested_without_end(levels: int, definition: Any) -> None:
    with pytest.raises(InvalidMessage, match="nested too deeply"):
        AvroSchema(definition).decode(b"\x02\x02" * levels)


def test_dicts_nested_without_end() -> None:
    value: dict[str, Any] = {"link": 1, "rest": None}
    for _ in range(100_000):
        value = {"link": 1, "rest": value}
    with pytest.raises(InvalidMessage, match="nested too deeply"):
        AvroSchema(AvroSchema(Chain).definition).encode(value)
    while value:  # otherwise Python would free the value recursively
        value = value.pop("rest", None) or {}


@both
@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ("{", "is not JSON"),
        ("\ud800", "the Avro definition cannot be written"),
        ("[" * 100_000, "is not JSON"),
        ("3", "is not a record"),
        ('{"type": "array", "items": "int"}', "is not a record"),
        ({"type": "record"}, "lacks name or fields"),
        ({"type": "record", "name": "R", "fields": 3}, "lacks name or fields"),
        ({"type": "record", "name": "R", "fields": [b""]}, "the Avro definition cannot be written"),
        (int, "neither a dataclass"),
        (Color, "neither a dataclass"),
    ],
)
def test_definitions_that_are_none(kind: Callable[..., Any], definition: Any, text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=text):
        kind(definition)


@both
def test_a_definition_in_too_many_levels(kind: Callable[..., Any]) -> None:
    deep: Any = "int"
    for _ in range(300):
        deep = {"type": "array", "items": deep}
    with pytest.raises(InvalidConfiguration, match="levels"):
        kind({"type": "record", "name": "R", "fields": [{"name": "a", "type": deep}]})


@both
def test_the_broker_is_told_the_definition(kind: Callable[..., Any]) -> None:
    text = json.dumps({"type": "record", "name": "R", "fields": []}, indent=1)
    assert kind(text).info.data == text.encode()
    assert json.loads(kind(json.loads(text)).info.data) == json.loads(text)
    assert json.loads(kind(Home).info.data) == {
        "type": "record",
        "name": "Home",
        "fields": [{"name": "street", "type": "string"}, {"name": "number", "type": ["null", "int"], "default": None}],
    }


class Size(Enum):
    SMALL = "s"


@dataclass
class Picky:
    size: Size
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("negative")


@both
def test_an_exception_of_the_dataclass_is_an_invalid_message(kind: Callable[..., Any]) -> None:
    schema = kind(Picky)
    picky = Picky(Size.SMALL, 1)
    picky.number = -1
    with pytest.raises(InvalidMessage, match="Picky refused the fields: ValueError"):
        schema.decode(schema.encode(picky))
