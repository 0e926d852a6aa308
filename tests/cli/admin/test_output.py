"""Results in pulsar-admin's words, and as tables."""

from __future__ import annotations

import json
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.cli.admin import output
from pulsarium.cli.admin.message import hex_dump
from pulsarium.cli.admin.output import table

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_json_is_indented_as_jackson_does() -> None:
    data = {"a": [], "b": {}, "c": ["x", 1, True, None], "d": {"e": 0.5}, "f": [{"g": 1}, {"h": []}], "i": "é\n"}
    assert output.jackson(data) == textwrap.dedent(
        """\
        {
          "a" : [ ],
          "b" : { },
          "c" : [ "x", 1, true, null ],
          "d" : {
            "e" : 0.5
          },
          "f" : [ {
            "g" : 1
          }, {
            "h" : [ ]
          } ],
          "i" : "é\\n"
        }"""
    )


@given(JSON)
def test_jackson_is_json(data: object) -> None:
    assert json.loads(output.jackson(data)) == data


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (1234567.0, "1234567.0"),
        (10000000.0, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.000001, "1.0E-6"),
        (-2.5e-05, "-2.5E-5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (100000.0, "100000.0"),
        (3e22, "3.0E22"),
    ],
)
def test_doubles_as_java_writes_them(number: float, text: str) -> None:
    assert output.jackson(number) == text


def test_texts_lists_and_pairs() -> None:
    assert output.value("x") == "x"
    assert output.json_value("x") == '"x"'
    assert output.value(None) == "null"
    assert output.lines(["b", "a"]) == "b\na"
    assert output.lines(None) == output.lines([]) == output.pairs({}) == output.pairs(None) == ""
    data = {"k": "v", "list": ["a", "b"], "map": {"x": 1}, "flag": True}
    assert output.pairs(data) == "k    v\nlist    [a, b]\nmap    {x=1}\nflag    true"


def test_a_value_is_shown_as_an_aligned_table() -> None:
    assert table(None) == "not set"
    assert table([]) == table({}) == "nothing"
    assert table(["a", "b"]) == "a\nb"
    assert table(True) == "yes"
    assert table({"rate": 0.5, "on": False, "none": None, "roles": ["a", "b"], "empty": []}) == (
        "rate   0.5\non     no\nnone   -\nroles  a, b\nempty  -"
    )


def test_a_table_of_things_with_names() -> None:
    data = {"sub-1": {"type": "Shared", "backlog": 3}, "s": {"type": "Exclusive", "backlog": 12, "more": 1}}
    assert table(data) == "       type       backlog  more\nsub-1  Shared     3\ns      Exclusive  12       1"
    assert table([{"a": 1}, {"a": 22}]) == "a\n1\n22"


def test_tables_inside_a_table_are_indented() -> None:
    data = {"msgIn": 1, "subscriptions": {"s": {"backlog": 3, "consumers": []}}, "ledgers": [{"id": 3}]}
    assert table(data) == ("msgIn  1\nsubscriptions\n     backlog  consumers\n  s  3        -\nledgers\n  id\n  3")


def test_a_name_cannot_forge_a_line_of_a_table() -> None:
    assert table(["a\nb"]) == "a\\nb"
    assert table({"x\ny": 1}) == "x\\ny  1"
    assert table([{"n\n": "v\n"}]) == "n\\n\nv\\n"


@given(JSON)
def test_anything_has_a_table(data: object) -> None:
    assert table(data) or data == ""


def test_a_hex_dump() -> None:
    assert hex_dump(b"") == ""
    assert hex_dump(b"hello, hex\x00world\xff") == textwrap.dedent(
        """\
                 +-------------------------------------------------+
                 |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |
        +--------+-------------------------------------------------+----------------+
        |00000000| 68 65 6c 6c 6f 2c 20 68 65 78 00 77 6f 72 6c 64 |hello, hex.world|
        |00000010| ff                                              |.               |
        +--------+-------------------------------------------------+----------------+"""
    )
