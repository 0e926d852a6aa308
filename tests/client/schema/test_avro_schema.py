"""Avro encoding, and values of other versions of a schema."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.client.errors import InvalidConfiguration, InvalidMessage
from pulsarium.client.schema.avro_schema import MOST_WRITERS, AvroSchema
from pulsarium.client.schema.schema import SchemaInfo
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.installing import remedy
from tests.client.schema.people import Home, Person, people


def record(*fields: tuple[Any, ...], name: str = "R", **more: Any) -> dict[str, Any]:
    """Return the definition of a record. Each field has a name, a type, and maybe a default."""
    parts = [dict(zip(("name", "type", "default"), one, strict=False)) for one in fields]
    return {"type": "record", "name": name, "fields": parts, **more}


def test_the_form_has_no_header() -> None:
    schema = AvroSchema(Home)
    assert schema.encode(Home("ab", 1)) == b"\x04ab\x02\x02"
    assert schema.info.type == pb.Schema.Avro
    assert schema.reads_by_writer


# ---- dicts


def test_dicts_are_encoded_by_a_definition() -> None:
    schema = AvroSchema(record(("a", "int"), ("b", ["null", "bytes"]), ("c", {"type": "map", "values": "string"})))
    value = {"a": 3, "b": b"\xff", "c": {"x": "y"}}
    assert schema.decode(schema.encode(value)) == value
    change: dict[str, Any]
    for change in (
        {"a": "x"},
        {"a": 2**40},
        {"a": True},
        {"b": 3},
        {"c": {"x": 3}},
        {"c": {3: "x"}},
        {"c": []},
        {"b": []},
    ):
        with pytest.raises(InvalidMessage, match="AvroSchema of R"):
            schema.encode(value | change)
    bad: Any
    for bad in (None, [], 3, {}, {"a": 3}):
        with pytest.raises(InvalidMessage, match="AvroSchema of R"):
            schema.encode(bad)


def test_every_type_that_avro_has() -> None:
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    schema = AvroSchema(
        record(
            ("e", enum),
            ("again", "E"),
            ("f", {"type": "fixed", "name": "F", "size": 2}),
            ("u", ["null", "string", record(("x", "int"), name="In")]),
            ("t", {"type": "long", "logicalType": "timestamp-millis"}),
            ("n", "null"),
            ("l", {"type": "array", "items": ["null", "int"]}),
        )
    )
    value = {"e": "A", "again": "B", "f": b"ab", "u": {"x": 1}, "t": datetime(2020, 1, 1, tzinfo=UTC), "n": None}
    assert schema.decode(schema.encode(value | {"l": [None]})) == value | {"l": [None]}


@settings(max_examples=20)
@given(person=people)
def test_dataclasses_and_dicts_have_the_same_encoding(person: Person) -> None:
    data = AvroSchema(Person).encode(person)
    dicts = AvroSchema(AvroSchema(Person).definition)
    assert dicts.encode(dicts.decode(data)) == data


@pytest.mark.parametrize(
    "definition",
    [
        record(("a", "x")),
        record(("a", {"type": "enum", "name": "E"})),
        record(("a", "int", "x")),
        record(("a", None)),
        record(("a", {})),
        record(("a", {"type": "fixed", "name": "F", "size": "x"})),
        record(("a", record(name="R"))),
    ],
)
def test_definitions_that_avro_refuses(definition: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        AvroSchema(definition)


@pytest.mark.parametrize("items", ["null", record(name="E"), record(("n", "null"), name="E"), {"type": "null"}])
def test_arrays_of_nothing_are_refused(items: Any) -> None:
    """A few bytes could claim 2**62 elements without a size."""
    endless = record(("a", {"type": "array", "items": items}))
    with pytest.raises(InvalidConfiguration, match="an array whose items take no bytes"):
        AvroSchema(endless)
    with pytest.raises(InvalidMessage, match="an array whose items take no bytes"):
        AvroSchema(Home).decode(b"\xfe" * 9, of(endless))


@pytest.mark.parametrize(
    "kind", ["bytes", "string", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}]
)
@pytest.mark.parametrize("count", [b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x01", b"\xff" * 20])
def test_lengths_beyond_the_end(kind: Any, count: bytes) -> None:
    """The decoder allocates nothing for a length of 2**62, a length of -1, or bytes that are no number."""
    with pytest.raises(InvalidMessage):
        AvroSchema(record(("a", kind))).decode(count + b"a")


# ---- of other versions


def of(definition: Any, kind: pb.Schema.Type = pb.Schema.Avro) -> SchemaInfo:
    return SchemaInfo(kind, definition if isinstance(definition, bytes) else json.dumps(definition).encode())


@dataclass
class Before:
    gone: str
    number: int


class Unit(Enum):
    M = 1
    KM = 2


@dataclass
class After:
    number: float
    added: str = "new"
    best: Home = field(default_factory=lambda: Home("x"))


@given(text=st.text(st.characters(exclude_categories=["Cs"])), number=st.integers(-(2**53), 2**53))
def test_fields_that_came_and_went_and_grew(text: str, number: int) -> None:
    before, after = (
        AvroSchema(Before),
        AvroSchema(record(*[("number", "double"), ("added", "string", "new")], name="After")),
    )
    data = before.encode(Before(text, number))
    assert after.decode(data, before.info) == {"number": float(number), "added": "new"}


def test_a_default_factory_gives_no_default() -> None:
    """A factory might make a different value each time, and each would be another version of the schema."""
    fields = AvroSchema(After).definition["fields"]
    assert [one["name"] for one in fields if "default" not in one] == ["number", "best"]


@dataclass
class Grown:
    number: float
    tags: list[str] = field(default_factory=list)
    home: Home | None = None
    raw: bytes = b"\xff"
    unit: Unit = Unit.KM
    since: datetime = datetime(2020, 1, 1, tzinfo=UTC)


def test_new_fields_have_their_defaults() -> None:
    before, grown = AvroSchema(Before), AvroSchema(Grown)
    data = before.encode(Before("x", 5))
    first = grown.decode(data, before.info)
    assert first == Grown(5.0)
    first.tags.append("mine")
    assert grown.decode(data, before.info).tags == []


def test_defaults_of_dicts_are_not_shared() -> None:
    reader = AvroSchema(record(("tags", {"type": "array", "items": "string"}, [])))
    reader.decode(b"", of(record()))["tags"].append("mine")
    assert reader.decode(b"", of(record())) == {"tags": []}


def test_a_field_without_a_default_is_missed() -> None:
    before, after = AvroSchema(Before), AvroSchema(After)
    with pytest.raises(InvalidMessage, match="best"):
        after.decode(before.encode(Before("x", 5)), before.info)


def test_another_order_and_other_names_of_the_record() -> None:
    writer = record(("number", "int"), ("street", "string"), name="Other", namespace="com.example")
    assert AvroSchema(Home).decode(b"\x02\x04ab", of(writer)) == Home("ab", 1)


def test_other_names_of_records_inside() -> None:
    """Brokers accept the other names, and Java reads them. Names that fit come first."""
    kinds = [record(("number", "int"), name=name) for name in ("Address", "Home")]
    writer = record(
        ("main", ["null", kinds[0]]), ("also", kinds[1]), ("more", {"type": "array", "items": "Address"}), name="Other"
    )
    reader = record(
        ("main", ["null", record(("number", "int"), name="Place")]),
        ("also", record(("number", "long"), name="Home")),
        ("more", {"type": "array", "items": "Place"}),
        name="Mine",
    )
    value = {"main": {"number": 1}, "also": {"number": 2}, "more": [{"number": 3}]}
    assert AvroSchema(reader).decode(AvroSchema(writer).encode(value), of(writer)) == value


def test_the_same_definition_is_no_other_version() -> None:
    schema = AvroSchema(Home)
    assert schema.decode(schema.encode(Home("ab", 1)), schema.info) == Home("ab", 1)


@pytest.mark.parametrize(
    ("writer", "text"),
    [
        (of(b"", pb.Schema.String), "of type String"),
        (of(AvroSchema(Home).info.data, pb.Schema.Json), "of type Json"),
        (of(b"\xff"), "is not JSON"),
        (of(b"[" * 100_000), "is not JSON"),
        (of(b"null"), "is not a record"),
        (of(record(("street", "x"))), "cannot be used"),
        (of(record(("street", {"type": "array", "items": "int"}))), "AvroSchema of Home"),
    ],
)
def test_writers_that_cannot_be_understood(writer: SchemaInfo, text: str) -> None:
    with pytest.raises(InvalidMessage, match=text):
        AvroSchema(Home).decode(b"\x04ab\x00", writer)


@pytest.mark.parametrize("items", ["double", "float", "boolean", "string", {"type": "fixed", "name": "F", "size": 1}])
@pytest.mark.parametrize("kind", ["array", "map"])
def test_fields_that_we_lack_and_that_do_not_end(kind: str, items: Any) -> None:
    part = {"type": kind, "items": items, "values": items}
    writer = record(("gone", part), ("street", "string"))
    with pytest.raises(InvalidMessage):
        AvroSchema(Home).decode(b"\x80\x80\x80\x80\x80\x40" + b"\x02\x01\x00", of(writer))


def test_a_writer_that_nests_without_end() -> None:
    """The compiled library would crash the process."""
    writer = record(("rest", ["null", "R"]), ("street", "string"))
    with pytest.raises(InvalidMessage, match="nested too deeply"):
        AvroSchema(Home).decode(b"\x02" * 1_000_000, of(writer))


def test_only_so_many_writers_are_kept() -> None:
    schema = AvroSchema(Home)
    for number in range(MOST_WRITERS + 10):
        assert schema.decode(b"\x04ab", of(record(("street", "string"), name=f"R{number}"))) == Home("ab")
    assert len(schema._writers) == MOST_WRITERS


@settings(max_examples=15)
@given(
    definition=st.recursive(
        st.none() | st.text() | st.sampled_from(["int", "record", "type"]),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["type", "name", "fields", "items", "values", "symbols", "size", "default"]), inner
            )
        ),
    )
)
def test_random_writer_schemas_are_read_or_refused(definition: Any) -> None:
    for writer in (definition, record(("street", definition))):
        with suppress(InvalidMessage):
            AvroSchema(Home).decode(AvroSchema(Home).encode(Home("x")), of(writer))


def test_without_fastavro_the_error_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['fastavro'] = None\n"
        "from dataclasses import make_dataclass\n"
        "from pulsarium.client import AvroSchema, JsonSchema, errors\n"
        "R = make_dataclass('R', [('a', int)])\n"
        "print(JsonSchema(R).encode(R(1)))\n"
        "try: AvroSchema(R)\n"
        "except errors.InvalidConfiguration as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        """b'{"a":1}'""",
        f"AvroSchema needs fastavro; {remedy('avro')}",
    ]


def test_the_library_comes_with_its_first_user() -> None:
    program = "import sys, pulsarium.client; print('fastavro' in sys.modules)"
    run = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
