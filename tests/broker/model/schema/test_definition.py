"""Avro definitions, compared with the recorded answers of Java."""

from __future__ import annotations

import json

import pytest

from pulsarium.broker.model.schema.definition import DEEPEST, Definition, DefinitionError, read_definition
from pulsarium.broker.model.schema.resolution import can_read
from tests.broker.model.schema.recorded import READ, REFUSED


def test_a_definition_is_written_as_java_writes_it() -> None:
    written = {line["text"]: read_definition(line["text"].encode()).pretty for line in READ}
    assert written == {line["text"]: line["pretty"] for line in READ}


@pytest.mark.req("B-31")
def test_definitions_are_equal_where_java_says_so() -> None:
    read = [read_definition(line["text"].encode()) for line in READ]
    for line, definition in zip(READ, read, strict=True):
        assert [number for number, each in enumerate(read) if definition.equals(each)] == line["equals"], line["text"]


def test_schemas_that_java_refuses_are_refused_with_its_texts() -> None:
    for line in REFUSED:
        with pytest.raises(DefinitionError) as refused:
            read_definition(line["text"].encode())
        assert str(refused.value) == line["error"], line["text"]


@pytest.mark.parametrize(("text", "column"), [('{"type": "int" , }', 18), ('["int", ]', 9)])
def test_a_trailing_comma_is_refused_with_what_follows_it(text: str, column: int) -> None:
    """Python versions differ in the place that their JSON parser names."""
    with pytest.raises(DefinitionError, match=rf"Unexpected character \('[]}}]'.*\n.* line: 1, column: {column}\]"):
        read_definition(text.encode())


@pytest.mark.parametrize(
    "text", ['"nope"', "-", '{"type":"int"', '"int', '{"type":"int","x":01}', "[1,", "[NaN]", "[" * 100_000, "\udcff"]
)
def test_unreadable_schemas_are_refused(text: str) -> None:
    """Java's texts for these errors come from its JSON parser, so only the refusal is compared."""
    with pytest.raises(DefinitionError):
        read_definition(text.encode(errors="surrogateescape"))


def test_a_definition_may_be_so_deep_and_no_deeper() -> None:
    """A definition that can be read can also be written and compared."""

    def nested(depth: int, inner: str) -> bytes:
        text = inner
        for number in range(depth):
            text = f'{{"type":"record","name":"R{number}","fields":[{{"name":"f","type":{text}}}]}}'
        return text.encode()

    deepest, other = read_definition(nested(DEEPEST - 1, '"int"')), read_definition(nested(DEEPEST - 1, '"string"'))
    assert deepest.pretty.count("record") == DEEPEST - 1
    assert deepest.equals(deepest)
    assert not deepest.equals(other)
    assert can_read(deepest, deepest)
    assert not can_read(deepest, other)
    with pytest.raises(DefinitionError, match="too deep"):
        read_definition(nested(DEEPEST, '"int"'))


@pytest.mark.parametrize(
    ("text", "kind"), [('"int"', "int"), ("[]", "union"), ('{"type":"map","values":"int"}', "map")]
)
def test_a_definition_knows_its_type(text: str, kind: str) -> None:
    found: Definition = read_definition(text.encode())
    assert found.type == kind


def test_fifty_thousand_symbols_are_read() -> None:
    """A search of each symbol among all earlier ones would take 50,000 squared steps."""
    symbols = [f"S{number}" for number in range(50_000)]
    text = json.dumps({"type": "enum", "name": "E", "symbols": symbols})
    assert read_definition(text.encode()).tree["symbols"] == symbols


def test_half_a_character_is_a_question_mark() -> None:
    """Errors contain these names and are sent to clients, so the names must be valid UTF-8."""
    with pytest.raises(DefinitionError, match=r"Undefined schema: \?$"):
        read_definition(b'{"type":"\\ud800"}')
    whole = read_definition(b'{"type":"record","name":"R","doc":"\\ud83d\\ude00","fields":[]}')
    assert whole.tree["doc"] == "\N{GRINNING FACE}"


def test_deeply_nested_properties_are_kept() -> None:
    nested = "[" * 700 + "]" * 700
    found = read_definition(f'{{"type":"record","name":"R","fields":[],"x":{nested}}}'.encode())
    assert nested in found.pretty
