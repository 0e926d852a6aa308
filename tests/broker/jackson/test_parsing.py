"""Texts that Jackson reads and refuses. Each text of an error is that of a real broker."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pulsarium.broker.jackson.errors import JsonEndError, JsonError, NoContent, OutOfRange
from pulsarium.broker.jackson.kinds import STRINGS
from pulsarium.broker.jackson.parsing import parse, parse_first

VALUES = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
PLACE = re.compile(r"\[Source: REDACTED \(`\w+.\w+` disabled\); line: (\d+)(?:, column: (\d+))?\]")
ALLOW = "enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow"


def said(data: str | bytes) -> str:
    """Return the text of an error, with places as line:column."""
    with pytest.raises(JsonError) as raised:
        parse(data)
    return PLACE.sub(lambda match: ":".join(part for part in match.groups() if part), str(raised.value)).replace(
        "\n at", ""
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "Unexpected end-of-input: expected close marker for Object (start marker at 1:1) 1:2"),
        ('{"a"', "Unexpected end-of-input within/between Object entries 1:5"),
        ('{"a":', "Unexpected end-of-input within/between Object entries 1:6"),
        ('{"a":1,', "Unexpected end-of-input within/between Object entries 1:8"),
        ('{"a":1.5', "Unexpected end-of-input: expected close marker for Object (start marker at 1:1) 1:9"),
        ('{"a":{"b":[1,2', "Unexpected end-of-input: expected close marker for Array (start marker at 1:11) 1:15"),
        ('{"a', "Unexpected end-of-input in field name 1:4"),
        ('{"a":"x\\', "Unexpected end-of-input in character escape sequence 1:9"),
        ('{"a":1,}', "Unexpected character ('}' (code 125)): was expecting double-quote to start field name 1:8"),
        ('{"a" 1}', "Unexpected character ('1' (code 49)): was expecting a colon to separate field name and value 1:6"),
        ('{"a":1 "b":2}', "Unexpected character ('\"' (code 34)): was expecting comma to separate Object entries 1:8"),
        (
            '{"a":1\n,\n"b"}',
            "Unexpected character ('}' (code 125)): was expecting a colon to separate field name and value 3:4",
        ),
        ('{"adminRoles":["a",}', "Unexpected character ('}' (code 125)): expected a value 1:20"),
        ('{"a":.5}', f"Unexpected character ('.' (code 46)): expected a valid value {VALUES} 1:6"),
        (
            "//c",
            (
                "Unexpected character ('/' (code 47)): maybe a (non-standard) comment? (not recognized as one since "
                "Feature 'ALLOW_COMMENTS' not enabled for parser) 1:1"
            ),
        ),
        (
            '"a\nb"',
            (
                "Illegal unquoted character ((CTRL-CHAR, code 10)): has to be escaped using backslash to be included "
                "in string value 1:3"
            ),
        ),
        ('{"a":"\\x"}', "Unrecognized character escape 'x' (code 120) 1:8"),
        (
            '{"a":"\\u12"}',
            "Unexpected character ('\"' (code 34)): expected a hex-digit for character escape sequence 1:11",
        ),
        (
            '{"a":"\\u12zz"}',
            "Unexpected character ('z' (code 122)): expected a hex-digit for character escape sequence 1:11",
        ),
        ("tru", f"Unrecognized token 'tru': was expecting {VALUES} 1:4"),
        ('{"a":-Infinity}', f"Non-standard token '-Infinity': {ALLOW} 1:15"),
        ('{"Infinity":NaN}', f"Non-standard token 'NaN': {ALLOW} 1:16"),
        (
            '{"a":-}',
            (
                "Unexpected character ('}' (code 125)) in numeric value: expected digit (0-9) to follow minus sign, "
                "for valid numeric value 1:7"
            ),
        ),
        ("01", "Invalid numeric value: Leading zeroes not allowed 1:2"),
        ('{"a":-01}', "Invalid numeric value: Leading zeroes not allowed 1:8"),
        ("5x", "Unexpected character ('x' (code 120)): Expected space separating root-level values 1:2"),
        ('{"a":[1,2}', "Unexpected close marker '}': expected ']' (for Array starting at 1:6) 1:10"),
        ("}", "Unexpected close marker '}': expected ']' (for root starting at 1) 1:1"),
        (
            "\x00",
            (
                "Illegal character ((CTRL-CHAR, code 0)): only regular white space (\\r, \\n, \\t) is allowed between "
                "tokens 1:2"
            ),
        ),
        ("", "No content to map due to end-of-input 1"),
        (" \n", "No content to map due to end-of-input 1"),
    ],
)
def test_a_text_that_is_no_json_is_refused(text: str, error: str) -> None:
    assert said(text) == said(text.encode()) == error


@pytest.mark.parametrize(
    ("text", "characters", "octets"),
    [
        (
            '"abc',
            "Unexpected end-of-input: was expecting closing quote for a string value 1:5",
            "Unexpected end-of-input in VALUE_STRING 1:5",
        ),
        (
            '{"a":nulx}',
            f"Unrecognized token 'nulx': was expecting {VALUES} 1:10",
            f"Unrecognized token 'nulx': was expecting {VALUES} 1:11",
        ),
        (
            '{"a":1.}',
            "Unexpected character ('}' (code 125)) in numeric value: Decimal point not followed by a digit 1:7",
            "Unexpected character ('}' (code 125)) in numeric value: Decimal point not followed by a digit 1:8",
        ),
        ("-", "Unexpected end-of-inputNo digit following sign 1:2", "Unexpected end-of-input in null 1:2"),
        (
            ",",
            f"Unexpected character (',' (code 44)): expected a valid value {VALUES} 1:1",
            "Unexpected character (',' (code 44)): expected a value 1:1",
        ),
    ],
)
def test_jacksons_parsers_of_characters_and_of_bytes_differ(text: str, characters: str, octets: str) -> None:
    assert (said(text), said(text.encode())) == (characters, octets)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b'{"a":"\xff"}', "Invalid UTF-8 start byte 0xff 1:8"),
        (b'{"a":"\xc3("}', "Invalid UTF-8 middle byte 0x28 1:9"),
        (b'{"a":"\xf0\x9f\x98"}', "Invalid UTF-8 middle byte 0x22 1:11"),
        (b'{"a":"\xc3', "Unexpected end-of-input in VALUE_STRING 1:8"),
    ],
)
def test_bytes_that_are_no_text_are_refused(data: bytes, error: str) -> None:
    assert said(data) == error


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf{}", "{}".encode("utf-16"), "{}".encode("utf-16-be"), b" {}"])
def test_every_unicode_encoding_is_read(data: bytes) -> None:
    assert parse(data) == {}


def test_text_behind_the_value_is_left() -> None:
    value, text, end = parse_first(' {"a": 1} x')
    assert (value, text[end:]) == ({"a": 1}, " x")


def test_a_class_of_java_tells_the_errors_apart() -> None:
    for text, kind, name in (("{", JsonEndError, "JsonEOFException"), ("", NoContent, "MismatchedInputException")):
        with pytest.raises(kind) as raised:
            parse(text)
        assert raised.value.java_class.endswith(name)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5_000])
def test_jackson_has_limits(text: str) -> None:
    with pytest.raises(OutOfRange, match="exceeds the maximum allowed"):
        parse(text)


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (b"null", None),
        (b'{"a": "b", "n": 1, "f": 1e3, "t": true, "none": null}', {"a": "b", "n": "1", "f": "1e3", "t": "true"}),
        (b'{"\\ud83d\\ude00": "\\ud83d\\ude00"}', {"\U0001f600": "\U0001f600"}),
        (b'{"\\ud800": "a\\udc00"}', {"?": "a?"}),
        (b'{"a": "\\\\ud800"}', {"a": "\\ud800"}),
    ],
)
def test_every_text_can_be_kept(body: bytes, texts: Any) -> None:
    assert STRINGS.value_of(parse(body)) == texts
    assert str(texts).encode()
