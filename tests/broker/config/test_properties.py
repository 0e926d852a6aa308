"""Java properties. The expected values are those that java.util.Properties read from the same bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.config.file import PropertiesError, parse


def pairs(text: str) -> list[tuple[str, str]]:
    return [(setting.key, setting.value) for setting in parse(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n  \n\t\f\n", []),
        ("# a=1\n ! b=2\n", []),
        ("a=1", [("a", "1")]),
        ("a=1\r\nb=2\rc=3\n", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("  a  =  1  \n", [("a", "1  ")]),
        ("a:1\nb 2\nc\t:\t3\n", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("a=\nb\nc:\n", [("a", ""), ("b", ""), ("c", "")]),
        ("a==1\nb=:2\nc = = 3\n", [("a", "=1"), ("b", ":2"), ("c", "= 3")]),
        ("a=1#2!3\n", [("a", "1#2!3")]),
        ("a=1,\\\n    2,\\\r\n\t3\nb=4", [("a", "1,2,3"), ("b", "4")]),
        ("a=1\\\n# no comment\n", [("a", "1# no comment")]),
        ("a=1\\\n\nb=2\n", [("a", "1"), ("b", "2")]),
        ("# comment \\\na=1\n", [("a", "1")]),
        ("\\\n# comment\na=1\n", [("a", "1")]),
        ("a=1\\\\\nb=2\n", [("a", "1\\"), ("b", "2")]),
        ("a=1\\", [("a", "1")]),
        ("a\\=b\\:c\\ d=1\n", [("a=b:c d", "1")]),
        ("a=\\t\\n\\r\\f\\q\\\\\n", [("a", "\t\n\r\fq\\")]),
        ("a=C:\\temp\n", [("a", "C:\temp")]),
        ("\\u0061=\\u00e9\\u20AC\n", [("a", "é€")]),
        ("a=é\n", [("a", "é")]),
        ("a=1\na=2\n", [("a", "1"), ("a", "2")]),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: list[tuple[str, str]]) -> None:
    assert pairs(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=\\u 123", "\\u=1", "a=\\u٠٠٠٠"])
def test_a_unicode_escape_wants_four_digits(text: str) -> None:
    with pytest.raises(PropertiesError) as caught:
        parse(f"# first\n\n{text}")
    assert caught.value.line == 3


def test_a_setting_stands_where_its_key_does() -> None:
    settings = parse("# 1\na=1,\\\n  2\n\nb=3\r\nc=4")
    assert [(setting.key, setting.line) for setting in settings] == [("a", 2), ("b", 5), ("c", 6)]


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


latin = st.text(st.characters(max_codepoint=255), max_size=8)


@given(st.lists(st.tuples(latin.filter(bool), latin), max_size=4))
def test_text_that_is_escaped_comes_back(written: list[tuple[str, str]]) -> None:
    assert pairs("\n".join(f"{escaped(key)}={escaped(value)}" for key, value in written)) == written


@given(st.text(st.sampled_from("ab=: \t\f\\\n\r#!"), max_size=20))
def test_no_text_without_a_unicode_escape_is_wrong(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    numbers = [setting.line for setting in parse(text)]
    assert numbers == sorted(set(numbers))
    assert all(1 <= number <= lines for number in numbers)
