"""Avro's binary form of plain values."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto import avro
from pulsarium.proto.avro import AvroCodec
from pulsarium.proto.errors import AvroError, Misfit

COLOR = {"type": "enum", "name": "Color", "symbols": ["red", "green"]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
RECORD = {
    "type": "record",
    "name": "R",
    "namespace": "n",
    "fields": [
        {"name": "color", "type": ["null", COLOR], "default": None},
        {"name": "again", "type": ["null", "n.Color"], "default": None},
        {"name": "long", "type": "long"},
        {"name": "yes", "type": "boolean"},
        {"name": "half", "type": "double"},
        {"name": "texts", "type": {"type": "array", "items": "string"}},
        {"name": "numbers", "type": {"type": "map", "values": "int"}},
    ],
}


@pytest.mark.parametrize(
    ("schema", "value", "encoded"),
    [
        ("null", None, ""),
        ("boolean", True, "01"),
        ("long", 0, "00"),
        ("long", -1, "01"),
        ("int", 64, "8001"),
        ("long", -(2**63), "ffffffffffffffffff01"),
        ("double", 1.5, "000000000000f83f"),
        ("string", "é", "04c3a9"),
        (COLOR, "green", "02"),
        (["null", "string"], None, "00"),
        (["null", "string"], "a", "020261"),
        ({"type": "array", "items": "int"}, [3, 27], "04063600"),
        ({"type": "array", "items": "int"}, [], "00"),
        ({"type": "map", "values": "boolean"}, {"a": True}, "02026101" + "00"),
        ("float", 1.5, "0000c03f"),
        ("bytes", "\u00ff\x00", "04ff00"),
        ({"type": "fixed", "name": "F", "size": 2}, "ab", "6162"),
        ({"type": "string", "avro.java.string": "String"}, "a", "0261"),
        ({"type": {"type": "long", "logicalType": "timestamp-millis"}}, 1, "02"),
        (["int", "string"], "a", "020261"),
        (["string", {"type": "array", "items": "int"}], [3], "02020600"),
        (DECIMAL, 12.5, "0404e2"),
        (DECIMAL, -1, "029c"),
        ({**DECIMAL, "scale": 0}, 5, "0205"),
    ],
)
def test_avro_fits_its_vectors(schema: Any, value: Any, encoded: str) -> None:
    codec = AvroCodec(schema)
    assert codec.encode(value).hex() == encoded
    assert codec.decode(bytes.fromhex(encoded)) == value


@given(
    st.fixed_dictionaries(
        {
            "color": st.sampled_from([None, "red", "green"]),
            "again": st.sampled_from([None, "red", "green"]),
            "long": st.integers(-(2**63), 2**63 - 1),
            "yes": st.booleans(),
            "half": st.floats(allow_nan=False),
            "texts": st.lists(st.text()),
            "numbers": st.dictionaries(st.text(), st.integers(-(2**31), 2**31 - 1)),
        }
    )
)
def test_records_come_back(value: dict[str, Any]) -> None:
    codec = AvroCodec(RECORD)
    assert codec.decode(codec.encode(value)) == value


def test_missing_fields_have_the_defaults_of_java() -> None:
    codec = AvroCodec(RECORD)
    value = codec.decode(codec.encode_as_java({"texts": [], "numbers": {}}))
    assert value == {"color": None, "again": None, "long": 0, "yes": False, "half": 0, "texts": [], "numbers": {}}


def test_a_block_may_say_its_size() -> None:
    assert AvroCodec({"type": "array", "items": "int"}).decode(bytes.fromhex("0304063600")) == [3, 27]


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(AvroError):
        AvroCodec(RECORD).decode(data)


@pytest.mark.parametrize(
    ("schema", "encoded", "why"),
    [
        ("string", "0461", "2 bytes wanted, 1 left"),
        ("string", "01", "-1 bytes wanted"),
        ("int", "0200", "1 unread bytes follow the value"),
        ("long", "ff" * 11, "does not end"),
        (COLOR, "04", "choice 2 of 2"),
        (["null", "int"], "01", "choice -1 of 2"),
        ({"type": "array", "items": "null"}, "feff7f", "items in 0 bytes"),
        ("fixed", "00", "no such type"),
    ],
)
def test_unreadable_avro_is_refused(schema: Any, encoded: str, why: str) -> None:
    with pytest.raises(AvroError, match=why):
        AvroCodec(schema).decode(bytes.fromhex(encoded))


def test_a_schema_without_an_end() -> None:
    loop = {"type": "record", "name": "L", "namespace": "n", "fields": [{"name": "next", "type": "n.L"}]}
    with pytest.raises(AvroError, match="too deeply"):
        AvroCodec(loop).decode(b"")


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ("int", "x", 'expected a whole number, got "x"'),
        ("int", 1.5, "expected a whole number, got 1.5"),
        ("int", True, "expected a whole number, got true"),
        ("int", 2**31, "does not fit into 32 bits"),
        ("long", -(2**63) - 1, "does not fit into 64 bits"),
        ("float", 1e39, "too large for a float"),
        ("double", 10**400, "too large for a double"),
        ("boolean", 1, "expected true or false, got 1"),
        ("null", 0, "expected null, got 0"),
        ("string", 5, "expected a string, got 5"),
        ("string", "\ud800", "UTF-8 cannot encode this text"),
        ("bytes", "\u0100", "at most"),
        ({"type": "fixed", "name": "F", "size": 2}, "abc", "expected 2 bytes, got 3"),
        (COLOR, "blue", 'expected one of red, green, got "blue"'),
        (["null", "int", "string"], [], "expected null or a whole number or a string, got an array"),
        (["string", "int"], None, "expected a string or a whole number, got null"),
        (DECIMAL, "x", 'expected a number, got "x"'),
        (DECIMAL, 0.001, "has more digits than the decimal: 6, and 2 behind the point"),
        ({"type": "array", "items": "int"}, {}, "expected an array, got an object"),
        (RECORD, 5, "expected an object, got 5"),
    ],
)
def test_a_value_of_another_type_is_refused(schema: Any, value: Any, said: str) -> None:
    with pytest.raises(Misfit, match=re.escape(said)):
        AvroCodec(schema).encode(value)


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ({"long": 1, "yes": True, "half": 0, "texts": ["a", 5], "numbers": {}}, "texts[1]"),
        ({"long": 1, "yes": True, "half": 0, "texts": [], "numbers": {"a b": "x"}}, 'numbers["a b"]'),
        ({"long": 1, "yes": True, "half": 0, "texts": []}, "numbers"),
        ({"long": 1, "yes": True, "half": 0, "texts": [], "numbers": {}, "lon": 1}, "lon"),
    ],
)
def test_the_place_of_a_misfit_is_named(value: Any, at: str) -> None:
    with pytest.raises(Misfit) as raised:
        AvroCodec(RECORD).encode(value)
    assert (raised.value.at, str(raised.value).startswith(f"{at}: ")) == (at, True)


def test_a_misfit_in_the_only_branch_that_could_fit_is_named() -> None:
    schema = ["null", {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}, "string"]
    with pytest.raises(Misfit, match="id: expected a whole number"):
        AvroCodec(schema).encode({"id": "x"})


@pytest.mark.parametrize("value", [{"n.Color": "green"}, {"Color": "green"}, "green"])
def test_a_value_of_a_union_may_name_its_branch(value: Any) -> None:
    codec = AvroCodec(["null", {**COLOR, "namespace": "n"}])
    assert codec.decode(codec.encode(value)) == "green"


@pytest.mark.parametrize("space", [{}, {"namespace": "n"}, {"namespace": None}])
def test_a_type_is_known_by_its_short_name(space: Any) -> None:
    node = {"type": "record", "name": "Node", **space, "fields": [{"name": "next", "type": ["null", "Node"]}]}
    value = {"next": {"next": None}}
    codec = AvroCodec(node)
    assert codec.decode(codec.encode(value)) == value


def test_a_value_of_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "_MOST_WRITTEN", 3)
    with pytest.raises(AvroError, match="too many values"):
        AvroCodec({"type": "array", "items": "int"}).encode([1, 2, 3])


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("bytes", "\u0100"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "2026-01-31T12:00:00Z"),
        (DECIMAL, 12.345),
    ],
)
def test_json_has_bytes_and_times_as_java_writes_them(schema: Any, value: Any) -> None:
    AvroCodec(schema).check_json(value)
    with pytest.raises(Misfit):
        AvroCodec(schema).encode(value)


def test_values_that_multiply() -> None:
    """Ten records of ten records of ten records, and so on, and not a byte of data."""
    schema: Any = "null"
    for number in range(20):
        first = {"type": "record", "name": f"r{number}", "namespace": "n", "fields": [{"name": "f0", "type": schema}]}
        again = [{"name": f"f{each}", "type": f"n.r{number}"} for each in range(1, 10)]
        schema = {"type": "record", "name": f"s{number}", "namespace": "n", "fields": [{"name": "f", "type": first}]}
        schema["fields"] += again
    with pytest.raises(AvroError, match="too many values"):
        AvroCodec(schema).decode(b"")


@pytest.mark.parametrize("schema", [5, {}, {"type": "record"}, {"type": "array"}, {"type": "record", "fields": [5]}])
def test_a_definition_that_is_no_avro_is_refused(schema: Any) -> None:
    with pytest.raises(AvroError):
        AvroCodec(schema).decode(b"\2\2")


def test_a_number_that_is_none() -> None:
    for schema, value in (("int", float("inf")), ("double", "x")):
        with pytest.raises(AvroError):
            AvroCodec(schema).encode(value)
