"""Compatibility of a new schema with the existing ones, by strategy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.config.keys import SCHEMA_STRATEGIES
from pulsarium.broker.model.schema.compatibility import check, is_transitive
from pulsarium.broker.model.schema.data import IncompatibleSchemaError, MalformedSchemaError, SchemaData, joined
from tests.broker.model.schema.descriptors import descriptor

STRATEGIES = [each for each in SCHEMA_STRATEGIES if each != "UNDEFINED"]
FIELDS: list[dict[str, Any]] = [
    {"name": "a", "type": "int"},
    {"name": "a", "type": "long"},
    {"name": "a", "type": "string"},
    {"name": "a", "type": "int", "default": 1},
    {"name": "b", "type": "int"},
    {"name": "b", "type": ["null", "int"], "default": None},
]


def avro(*fields: dict[str, Any], kind: str = "AVRO") -> SchemaData:
    return SchemaData(kind, json.dumps({"type": "record", "name": "R", "fields": fields}).encode())


def fits(existing: list[SchemaData], new: SchemaData, strategy: str) -> bool:
    try:
        check(existing, new, strategy)
    except IncompatibleSchemaError:
        return False
    return True


def a_schema() -> st.SearchStrategy[SchemaData]:
    some = st.lists(st.sampled_from(FIELDS), max_size=2, unique_by=lambda field: str(field["name"]))
    return some.map(lambda fields: avro(*fields))


SCHEMA = a_schema()


@pytest.mark.req("B-30")
@given(SCHEMA, SCHEMA)
def test_backward_is_forward_seen_from_the_other_side(one: SchemaData, other: SchemaData) -> None:
    assert fits([one], other, "BACKWARD") is fits([other], one, "FORWARD")
    assert fits([one], other, "FULL") is (fits([one], other, "BACKWARD") and fits([one], other, "FORWARD"))
    assert fits([one], one, "FULL")


@pytest.mark.req("B-30")
@given(st.lists(SCHEMA, max_size=4), SCHEMA, st.sampled_from(("BACKWARD", "FORWARD", "FULL")))
def test_a_transitive_strategy_asks_all_schemas_and_the_others_the_newest(
    existing: list[SchemaData], new: SchemaData, name: str
) -> None:
    assert fits(existing, new, f"{name}_TRANSITIVE") is all(fits([each], new, name) for each in existing)
    assert fits(existing, new, name) is fits(existing[-1:], new, name)


@given(st.lists(SCHEMA, max_size=3), SCHEMA)
def test_always_compatible_and_always_incompatible_judge_nothing(existing: list[SchemaData], new: SchemaData) -> None:
    assert fits(existing, new, "ALWAYS_COMPATIBLE")
    assert fits(existing, new, "ALWAYS_INCOMPATIBLE") is (not existing)


def test_three_strategies_are_transitive() -> None:
    assert [each for each in STRATEGIES if is_transitive(each)] == [
        "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"
    ]  # fmt: skip


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_schema_of_another_type_does_not_fit(strategy: str) -> None:
    existing, new = [avro()], SchemaData("STRING")
    assert fits(existing, new, strategy) is (strategy == "ALWAYS_COMPATIBLE")
    if strategy != "ALWAYS_COMPATIBLE":
        with pytest.raises(IncompatibleSchemaError, match="exists schema type AVRO, new schema type STRING"):
            check(existing, new, strategy)


@pytest.mark.parametrize("kind", ["STRING", "INT32", "EXTERNAL", "PROTOBUF", "NONE"])
def test_types_that_are_not_looked_into(kind: str) -> None:
    """A broker checks PROTOBUF schemas only when a check for them is configured."""
    for strategy in STRATEGIES:
        assert fits([SchemaData(kind, b"1")], SchemaData(kind, b"2"), strategy) is (
            strategy != "ALWAYS_INCOMPATIBLE" or kind == "EXTERNAL"
        )


def test_json_is_judged_as_avro() -> None:
    one, more = avro(FIELDS[0], kind="JSON"), avro(FIELDS[0], FIELDS[4], kind="JSON")
    assert fits([one], more, "FORWARD")
    assert not fits([one], more, "BACKWARD")
    with pytest.raises(IncompatibleSchemaError, match="expected Avro schema format"):
        check([one], SchemaData("JSON", b'{"type":"object"}'), "FULL")


def test_a_schema_that_is_no_avro_does_not_fit() -> None:
    with pytest.raises(IncompatibleSchemaError, match=r"^org.apache.avro.SchemaParseException: No type: {}$"):
        check([avro()], SchemaData("AVRO", b"{}"), "BACKWARD")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_protobuf_native_schema_fits_by_its_root_message(strategy: str) -> None:
    """Pulsar compares only the names of the root messages."""
    one, more, other = (SchemaData("PROTOBUF_NATIVE", descriptor(*each)) for each in (("p.M",), ("p.M", 3), ("p.N",)))
    always = strategy == "ALWAYS_COMPATIBLE"
    assert fits([one], more, strategy) is (strategy != "ALWAYS_INCOMPATIBLE")
    assert fits([one], other, strategy) is always
    if not always and strategy != "ALWAYS_INCOMPATIBLE":
        with pytest.raises(
            IncompatibleSchemaError, match=f"under the '{strategy}' strategy. Original message name: 'p.M'"
        ):
            check([one], other, strategy)


def key_value(key: SchemaData, value: SchemaData) -> SchemaData:
    names = {"key.schema.type": key.type, "value.schema.type": value.type, "key.schema.properties": ""}
    return SchemaData.of("KEY_VALUE", joined(key.data, value.data), names)


def test_a_key_value_schema_fits_by_both_halves() -> None:
    text, one, more = SchemaData("STRING"), avro(FIELDS[0]), avro(FIELDS[0], FIELDS[4])
    for strategy in ("BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE"):
        expected = fits([one], more, strategy)
        key = strategy == "ALWAYS_COMPATIBLE" or fits([text], text, strategy)
        assert fits([key_value(text, one)], key_value(text, more), strategy) is (expected and key)
        assert fits([key_value(one, text)], key_value(more, text), strategy) is (expected and key)
    with pytest.raises(IncompatibleSchemaError, match="from value schema is AVRO and to value schema is STRING"):
        check([key_value(text, one)], key_value(text, text), "FULL")
    with pytest.raises(MalformedSchemaError):
        check([key_value(text, one)], SchemaData("KEY_VALUE", b"\0\0"), "FULL")
