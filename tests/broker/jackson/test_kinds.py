"""JSON values as Jackson reads them into types of Java. Each value and each text is that of a real broker."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pulsarium.broker.jackson.errors import JsonError, OutOfRange
from pulsarium.broker.jackson.kinds import (
    BOOL,
    BOOLEAN,
    DOUBLE,
    INT,
    INTEGER,
    LONG,
    STRINGS,
    TEXT_LIST,
    TEXTS,
    JavaType,
    choice,
    collection,
    read,
    record,
)

COLOR = choice("Color", ("RED", "GREEN"), "NONE")
COLORS = collection("java.util.HashSet", COLOR)
POINT = record("Point", {"x": INT, "tags": TEXT_LIST})
NUMBER = "(-2147483648 - 2147483647)"
BIG = '"2147483648"'
OVERFLOW = "Overflow: numeric value (2147483648) out of range of {} (-2147483648 -2147483647)"
WORDS = '"true"/"True"/"TRUE" or "false"/"False"/"FALSE"'
COERCE = "(but could if coercion was enabled using `CoercionConfig`)"
CREATOR = "(although at least one Creator exists): no"


def cannot(java_type: str, found: str) -> str:
    return f"Cannot deserialize value of type `{java_type}` from {found}"


def construct(java_type: str, word: str, found: str) -> str:
    what = f"{word}-argument constructor/factory method to deserialize from {found}"
    return f"Cannot construct instance of `{java_type}` {CREATOR} {what}"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        *((INT, text, 5) for text in ("5", '"5"', '" \\t5\\n"', '"+5"', '"000000000000000000000005"', '"٥"', "5.9")),
        *((INT, text, 0) for text in ('""', '" "', '"null"', "null", "-0.0")),
        *((INTEGER, text, None) for text in ('""', '" "', '"null"', "null")),
        (LONG, "1E5", 100_000),
        (LONG, '"-9223372036854775808"', -(2**63)),
        *((BOOL, text, True) for text in ("true", '"TRUE"', '"True"', "1", "-5")),
        *((BOOL, text, False) for text in ("0", '"false"', '""', '" "', '"null"', "null")),
        (BOOLEAN, '" "', None),
        *((DOUBLE, text, 0.0) for text in ('""', '" "', '"null"', "null")),
        *((DOUBLE, text, math.inf) for text in ("1e400", '"Infinity"', '"INF"')),
        (DOUBLE, '" 1.5e1 "', 15.0),
        *((COLOR, text, "GREEN") for text in ('"GREEN"', '" GREEN "', "1", '"1"')),
        *((COLOR, text, "NONE") for text in ('"green"', "2", "-1", '"01"', "null")),
        (COLORS, '["RED", 0, 9]', ["RED", "NONE"]),
        (TEXTS, '["a", 1, 1e3, true, "a"]', ["a", "1", "1e3", "true"]),
        (POINT, "{}", {"x": 0}),
        (POINT, '{"x": 1, "tags": ["a"], "y": [}'.replace("[}", "2}"), {"x": 1, "tags": ["a"]}),
    ],
)
def test_a_value_is_read_as_jackson_reads_it(kind: JavaType, text: str, value: Any) -> None:
    assert read(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text", "error"),
    [
        (INT, '"1_0"', cannot("int", 'String "1_0": not a valid `int` value')),
        (INT, '"5\\u00a0"', cannot("int", 'String "5\u00a0": not a valid `int` value')),
        (INT, "true", cannot("int", "Boolean value (token `JsonToken.VALUE_TRUE`)")),
        (INT, "[5]", cannot("int", "Array value (token `JsonToken.START_ARRAY`)")),
        (INT, "2147483648", f"Numeric value (2147483648) out of range of int {NUMBER}"),
        (INT, "1e300", f"Numeric value (1e300) out of range of int {NUMBER}"),
        (INT, BIG, cannot("int", f"String {BIG}: {OVERFLOW.format('int')}")),
        (INTEGER, BIG, cannot("java.lang.Integer", f"String {BIG}: {OVERFLOW.format('`java.lang.Integer`')}")),
        (LONG, '"9223372036854775808"', cannot("long", 'String "9223372036854775808": not a valid `long` value')),
        (BOOL, '" 5 "', cannot("boolean", f'String "5": only {WORDS} recognized')),
        (BOOLEAN, '"maybe"', cannot("java.lang.Boolean", 'String "maybe": only "true" or "false" recognized')),
        (BOOL, "1.5", cannot("boolean", "Floating-point value (token `JsonToken.VALUE_NUMBER_FLOAT`)")),
        (DOUBLE, '"nan"', cannot("double", 'String "nan": not a valid `double` value (as String to convert)')),
        (COLOR, "2147483648", f"Numeric value (2147483648) out of range of int {NUMBER}"),
        (COLOR, "1.5", cannot("Color", "Floating-point value (token `JsonToken.VALUE_NUMBER_FLOAT`)")),
        (COLORS, '"RED"', cannot("java.util.HashSet<Color>", "String value (token `JsonToken.VALUE_STRING`)")),
        (TEXTS, '" a "', construct("java.util.HashSet", "String", "String value ('a')")),
        (TEXTS, '" "', f'Cannot coerce empty String ("") to element of `java.util.HashSet` {COERCE}'),
        (STRINGS, '" "', f'Cannot coerce empty String ("") to element of `java.util.LinkedHashMap` {COERCE}'),
        (POINT, '""', f'Cannot coerce empty String ("") to `Point` value {COERCE}'),
        (POINT, "5", construct("Point", "int/Int", "Number value (5)")),
        (POINT, "2147483648", construct("Point", "long/Long", "Number value (2147483648)")),
        (POINT, "9223372036854775808", construct("Point", "BigInteger", "Number value (9223372036854775808)")),
        (POINT, "1e3", construct("Point", "double/Double", "Number value (1000.0)")),
        (POINT, "false", construct("Point", "boolean/Boolean", "boolean value (false)")),
        (POINT, "[1,", cannot("Point", "Array value (token `JsonToken.START_ARRAY`)")),
        (INT, "{x", cannot("int", "Object value (token `JsonToken.START_OBJECT`)")),
    ],
)  # fmt: skip
def test_a_value_that_jackson_does_not_read_is_refused(kind: JavaType, text: str, error: str) -> None:
    with pytest.raises(JsonError) as raised:
        read(kind, text)
    assert str(raised.value).partition("\n at ")[0] == error


def test_an_error_names_the_path_to_the_value() -> None:
    shape = record("Shape", {"points": collection("java.util.ArrayList", POINT), "names": STRINGS})
    for text, path in (
        ('{"points": [{}, {"x": "y"}]}', 'Shape["points"]->java.util.ArrayList[1]->Point["x"]'),
        (
            '{"points": [{"tags": [1, null, []]}]}',
            'Shape["points"]->java.util.ArrayList[0]->Point["tags"]->java.util.ArrayList[2]',
        ),
        ('{"names": {"a": {}}}', 'Shape["names"]->java.util.LinkedHashMap["a"]'),
    ):
        with pytest.raises(JsonError) as raised:
            read(shape, text)
        assert str(raised.value).endswith(f" (through reference chain: {path})")


def test_only_a_whole_value_can_be_out_of_range() -> None:
    """REST answers 500 for such a body, and 400 for an object with such a field."""
    with pytest.raises(OutOfRange):
        read(INT, "2147483648")
    with pytest.raises(JsonError) as raised:
        read(POINT, '{"x": 2147483648}')
    assert not isinstance(raised.value, OutOfRange)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{} 5", "Trailing token (of type VALUE_NUMBER_INT) found after value (bound as `Point`): not allowed"),
        ('{} {"a', "Trailing token (of type START_OBJECT) found after value (bound as `Point`): not allowed"),
        ("{}\n null", "Trailing token (of type VALUE_NULL) found after value (bound as `Point`): not allowed"),
        ("{} x", "Unrecognized token 'x': was expecting "),
    ],
)
def test_only_a_caller_that_wants_the_whole_text_minds_what_follows(text: str, error: str) -> None:
    assert read(POINT, text) == {"x": 0}
    with pytest.raises(JsonError) as raised:
        read(POINT, text, whole=True)
    assert str(raised.value).startswith(error)
