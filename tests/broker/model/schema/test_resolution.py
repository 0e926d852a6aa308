"""Avro schemas that can read each other, compared with the recorded answers of Java."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.schema import resolution
from pulsarium.broker.model.schema.definition import Definition, read_definition
from pulsarium.broker.model.schema.resolution import can_read
from tests.broker.model.schema.recorded import READ

DEFINITIONS = [read_definition(line["text"].encode()) for line in READ]
NUMBERS = st.integers(0, len(READ) - 1)


@pytest.mark.req("B-31")
def test_each_definition_reads_those_that_java_reads_with_it() -> None:
    for line, reader in zip(READ, DEFINITIONS, strict=True):
        reads = [number for number, writer in enumerate(DEFINITIONS) if can_read(reader, writer)]
        assert reads == line["reads"], line["text"]


@given(NUMBERS, NUMBERS)
def test_compatibility_holds_inside_arrays_maps_and_fields(one: int, other: int) -> None:
    reader, writer = READ[one]["text"], READ[other]["text"]
    expected = other in READ[one]["reads"]
    for around in ('{"type":"array","items":%s}', '{"type":"map","values":%s}'):
        pair = [read_definition((around % text).encode()) for text in (reader, writer)]
        assert can_read(pair[0], pair[1]) is expected


COLOR = '"null",{"type":"enum","name":"Color","symbols":["RED","BLUE"]}'
THEIRS = '"null",{"type":"enum","name":"n.Color","symbols":["RED","BLUE"]}'


def home(name: str, *fields: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": each, "type": "int"} for each in fields]})


@pytest.mark.req("B-31")
@pytest.mark.parametrize(
    ("one", "other", "fits"),
    [
        (COLOR, THEIRS, True),
        (COLOR, THEIRS.replace("Color", "Hue"), False),
        (COLOR, THEIRS.replace('"RED","BLUE"', '"BLUE","RED"'), False),
        (COLOR, THEIRS.replace('"BLUE"]', '"BLUE","X"]'), False),
        (COLOR, f'{THEIRS},"int"', False),
        (f'{COLOR},{{"type":"array","items":"int"}}', f'{THEIRS},{{"type":"array","items":"long"}}', False),
        ('"null",{"type":"fixed","name":"F","size":2}', '"null",{"type":"fixed","name":"n.F","size":2}', True),
        ('"null",{"type":"fixed","name":"F","size":2}', '"null",{"type":"fixed","name":"n.F","size":3}', False),
        (f'"null",{{"type":"map","values":[{COLOR}]}}', f'"null",{{"type":"map","values":[{THEIRS}]}}', True),
        (f"{COLOR},{home('H', 'a', 'b')}", f"{THEIRS},{home('n.H', 'a', 'b')}", True),
        (f"{COLOR},{home('H', 'a', 'b')}", f"{THEIRS},{home('n.H', 'b', 'a')}", False),
    ],
)
def test_unions_that_are_alike_but_for_namespaces(one: str, other: str, fits: bool) -> None:
    """Java gave these answers for each pair, in both directions."""
    pair = [read_definition(f"[{branches}]".encode()) for branches in (one, other)]
    assert (can_read(*pair), can_read(*reversed(pair))) == (fits, fits)


def test_a_default_of_another_type_does_not_fit() -> None:
    """Java encodes the default by the field's type while it builds its grammar, and fails."""
    text = '{"type":"record","name":"R","fields":[%s]}'
    empty = read_definition((text % "").encode())
    for kind, default, fits in (
        ('"int"', "1", True),
        ('"int"', '"x"', False),
        ('"int"', str(2**31), False),
        ('"long"', str(2**31), True),
        ('"boolean"', "false", True),
        ('"boolean"', "0", False),
        ('"double"', "1", True),
        ('"double"', '"1"', False),
        ('"null"', "null", True),
        ('"string"', "1", False),
        ('["null","int"]', "null", True),
        ('{"type":"array","items":"int"}', "[1]", True),
        ('{"type":"array","items":"int"}', '["x"]', False),
        ('{"type":"map","values":"int"}', '{"a":1}', True),
        ('{"type":"map","values":"int"}', "[]", False),
        ('{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]}', '{"x":1}', True),
        ('{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]}', "{}", False),
    ):
        reader = read_definition((text % f'{{"name":"a","type":{kind},"default":{default}}}').encode())
        assert can_read(reader, empty) is fits, (kind, default)


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def definition(*fields: dict[str, Any]) -> Definition:
    return read_definition(json.dumps(record("Whole", *fields)).encode())


def test_defaults_that_multiply_are_read() -> None:
    """The defaults are 2**200 values, because each record has the record before it twice."""
    fields = [{"name": "f0", "type": record("R0"), "default": {}}]
    for number in range(1, 200):
        twice = ({"name": name, "type": f"R{number - 1}", "default": {}} for name in "ab")
        fields.append({"name": f"f{number}", "type": record(f"R{number}", *twice), "default": {}})
    assert can_read(definition(*fields), definition())


def test_a_default_without_end_does_not_fit() -> None:
    itself = record("R", {"name": "again", "type": "R", "default": {}})
    assert not can_read(definition({"name": "a", "type": itself, "default": {}}), definition())


@pytest.mark.parametrize(("kind", "fits"), [("long", True), ("string", False)])
def test_schemas_deeper_than_the_stack_are_compared(kind: str, fits: bool) -> None:

    def chain(last: str) -> Definition:
        fields: list[dict[str, Any]] = [{"name": "f0", "type": record("R0", {"name": "x", "type": last})}]
        for number in range(1, 3000):
            below = {"name": "below", "type": f"R{number - 1}"}
            fields.append({"name": f"f{number}", "type": record(f"R{number}", below)})
        return definition({"name": "first", "type": "R2999"}, *reversed(fields))

    assert can_read(chain(kind), chain("int")) is fits


def test_ten_thousand_fields_are_compared() -> None:
    def many(name: str) -> Definition:
        numbers = ({"name": f"f{number}", "type": ["null", "int"], "default": None} for number in range(10_000))
        return definition({"name": name, "type": "int", "default": 1}, *numbers)

    assert can_read(many("one"), many("other"))


def test_a_comparison_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The branches have no names in common, so that each branch is compared with all others."""
    monkeypatch.setattr(resolution, "MOST_STEPS", 10_000)

    def many(prefix: str) -> Definition:
        inner = {"name": "x", "type": "int"}
        return definition({"name": "u", "type": [record(f"{prefix}{number}", inner) for number in range(2000)]})

    assert not can_read(many("a"), many("b"))
