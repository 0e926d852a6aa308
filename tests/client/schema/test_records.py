"""The Avro definitions that dataclasses stand for."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from datetime import datetime
from enum import Enum, StrEnum
from typing import Annotated, Any, ClassVar, Optional

import pytest
from pulsar.schema import Array, Boolean, Bytes, CustomEnum, Double, Float, Integer, Long, Map, Record, String

from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.schema.records import AvroFloat, AvroInt, AvroType, record_of
from tests.client.schema.people import Color


class Point(Record):  # type: ignore[misc]
    x = Integer(required=True)
    y = Long(required=True)


class Official(Record):  # type: ignore[misc]
    a = String()
    b = String(required=True)
    c = Integer()
    d = Float()
    e = Double()
    f = Boolean()
    g = Bytes()
    h = Array(String())
    i = Map(Integer())
    j = CustomEnum(Color)
    k = Point()
    l = Long(default=5, required_default=True)  # noqa: E741
    m = Array(Point())


def ours() -> Any:
    @dataclass
    class Point:
        x: AvroInt
        y: int

    names: list[tuple[str, Any, Any]] = [
        ("a", str | None, None),
        ("b", str, "?"),
        ("c", AvroInt | None, None),
        ("d", AvroFloat | None, None),
        ("e", float | None, None),
        ("f", bool | None, None),
        ("g", bytes | None, None),
        ("h", list[str] | None, None),
        ("i", dict[str, AvroInt] | None, None),
        ("j", Optional[Color], None),  # noqa: UP045
        ("k", Point | None, None),
        ("l", int | None, 5),
        ("m", list[Point] | None, None),
    ]
    return make_dataclass("Official", [(name, kind, field(default=value)) for name, kind, value in names])


def without_defaults(definition: Any) -> Any:
    """Return names, types and order of a definition, the branches of unions in any order."""
    if isinstance(definition, list):
        return [without_defaults(one) for one in sorted(definition, key=str)]
    if isinstance(definition, dict):
        parts = {key: value for key, value in definition.items() if key != "default"}
        if "fields" in parts:
            parts["fields"] = [without_defaults(one) for one in parts["fields"]]
        for key in ("type", "items", "values"):
            if key in parts:
                parts[key] = without_defaults(parts[key])
        return parts
    return definition


def test_as_the_official_client_derives_it() -> None:
    """Defaults apart: with those of nulls, as Java has them, a field may be added to a topic that has messages."""
    definition = record_of(ours()).definition
    assert without_defaults(definition) == without_defaults(Official.schema())
    defaults = {one["name"]: one.get("default", "-") for one in definition["fields"]}
    assert defaults == {**dict.fromkeys("abcdefghijkm"), "b": "?", "l": 5}


@dataclass
class Inner:
    a: int


class Kind(StrEnum):
    ONE = "1"


@dataclass
class Outer:
    _avro_namespace: ClassVar[str] = "com.example"
    _sorted_fields: ClassVar[bool] = True

    z: Inner
    y: list[Inner]
    x: Outer | None
    kind: Kind = Kind.ONE
    again: Kind | None = Kind.ONE
    raw: bytes = b"\xff\x00"
    made: Inner = field(default_factory=lambda: Inner(1))
    derived: int = field(default=3, init=False)
    infinite: float = float("inf")


def test_namespaces_order_names_and_defaults() -> None:
    inner = {"type": "record", "name": "Inner", "namespace": "com.example", "fields": [{"name": "a", "type": "long"}]}
    kind = {"type": "enum", "name": "Kind", "namespace": "com.example", "symbols": ["ONE"]}
    assert record_of(Outer).definition == {
        "type": "record",
        "name": "Outer",
        "namespace": "com.example",
        "fields": [
            {"name": "again", "type": [kind, "null"], "default": "ONE"},
            {"name": "infinite", "type": "double"},
            {"name": "kind", "type": "com.example.Kind", "default": "ONE"},
            {"name": "made", "type": inner},
            {"name": "raw", "type": "bytes", "default": "\xff\0"},
            {"name": "x", "type": ["null", "com.example.Outer"], "default": None},
            {"name": "y", "type": {"type": "array", "items": "com.example.Inner"}},
            {"name": "z", "type": "com.example.Inner"},
        ],
    }


def test_annotations_say_the_avro_type() -> None:
    kind = make_dataclass("R", [("at", Annotated[datetime, ["a note"]]), ("n", Annotated[int, AvroType("int"), 3])])
    assert record_of(kind).definition["fields"] == [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "n", "type": "int"},
    ]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (int | str, "no Avro type"),
        (object, "no Avro type for object"),
        (Any, "no Avro type"),
        (None, "no Avro type"),
        (list, "no Avro type"),
        (list[set[int]], "no Avro type"),
        (dict[int, str], "no Avro type"),
        (tuple[int, int], "no Avro type"),
        (Annotated[int, AvroType("float")], "no Avro type"),
        ("Nowhere", "cannot be resolved"),
    ],
)
def test_types_that_avro_has_not(kind: Any, text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=rf"R.*: .*{text}"):
        record_of(make_dataclass("R", [("a", kind)]))


def test_names_that_avro_has_not() -> None:
    with pytest.raises(InvalidConfiguration, match="'ä' is no name"):
        record_of(make_dataclass("R", [("ä", int)]))
    with pytest.raises(InvalidConfiguration, match="'Ä' is no name"):
        record_of(make_dataclass("Ä", [("a", int)]))
    with pytest.raises(InvalidConfiguration, match="'ö' is no name"):
        record_of(make_dataclass("R", [("a", Enum("E", ["ö"]))]))


def test_two_types_of_one_name() -> None:
    other = make_dataclass("Inner", [("b", int)])
    with pytest.raises(InvalidConfiguration, match="two types are called Inner"):
        record_of(make_dataclass("R", [("a", Inner), ("b", other)]))


def test_a_default_of_another_type() -> None:
    with pytest.raises(InvalidConfiguration, match=r"R\.a: its default is no value of it: int, not str"):
        record_of(make_dataclass("R", [("a", int, field(default="x"))]))
