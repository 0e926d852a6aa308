"""Parse JSON, and refuse a text that is none with Jackson's text."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pulsarium.broker.jackson.errors import JsonEndError, JsonParseError, NoContent, OutOfRange, place, source

VALUES: Final = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
VALUE: Final = f"expected a valid value {VALUES}"
ROOT: Final = "Expected space separating root-level values"
COMMA: Final = "Expecting ',' delimiter"
WANTED: Final = {  # by what Python says
    "Expecting property name enclosed in double quotes": "was expecting double-quote to start field name",
    "Expecting ':' delimiter": "was expecting a colon to separate field name and value",
    ROOT: ROOT,
}
MINUS: Final = "expected digit (0-9) to follow minus sign, for valid numeric value"
PLUS: Final = (
    "JSON spec does not allow numbers to have plus signs: enable "
    "`JsonReadFeature.ALLOW_LEADING_PLUS_SIGN_FOR_NUMBERS` to allow"
)
COMMENT: Final = (
    "maybe a (non-standard) comment? (not recognized as one since Feature 'ALLOW_COMMENTS' not enabled for parser)"
)
NOT_LINE: Final = re.compile(r"[^\n]")
BLANK: Final = " \t\r\n"
WORD: Final = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
NAMED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN', re.DOTALL)
ESCAPE: Final = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F])..|.)")
HEX: Final = re.compile(r"u[0-9a-fA-F]{,3}")
CUT: Final = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")  # the text ends with the beginning of an escape
NUMBER_END: Final = re.compile(r"(?<![\d.eE+])-?0\Z")
DIGITS: Final = re.compile(r"\d+")


class Decimal(float):
    """A number with a fraction or an exponent, and its text."""

    def __new__(cls, text: str) -> Decimal:
        """Return the number of a text."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def parse(data: str | bytes) -> Any:
    """Return the first value of a JSON text. Raise `JsonError` if there is none."""
    return parse_first(data)[0]


def parse_behind(text: str, end: int) -> Any:
    """Return the value behind `end`; of an object or a list, an empty one. Errors have places in the whole text."""
    first = text[end:].lstrip(BLANK)[:1]
    if first in "{[":
        return {} if first == "{" else []
    return parse((NOT_LINE.sub(" ", text[:end]) + text[end:]).encode())


def parse_first(data: str | bytes) -> tuple[Any, str, int]:
    """Return the first value of a JSON text, the text, and where the value ends in it."""
    text = data if isinstance(data, str) else _decoded(data)
    text = text if "\\u" not in text else ESCAPE.sub(lambda match: "?" if match[1] else match[0], text)
    start = len(text) - len(text.lstrip(BLANK))
    if start == len(text):
        raise NoContent(f"No content to map due to end-of-input{place(1, None)}")
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        limit = "1000, from `StreamReadConstraints.getMaxNestingDepth()`"
        raise OutOfRange(f"Document nesting depth (1001) exceeds the maximum allowed ({limit})") from None
    except json.JSONDecodeError as error:
        raise _refused(_as_before_3_13(error), of_bytes=isinstance(data, bytes)) from None
    except _NotFinite as error:
        raise error.where(text) from None
    except ValueError:  # more digits than Python reads; Jackson stops at 1,000
        digits = max(map(len, DIGITS.findall(text)))
        limit = "1000, from `StreamReadConstraints.getMaxNumberLength()`"
        raise OutOfRange(f"Number value length ({digits}) exceeds the maximum allowed ({limit})") from None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and text[end : end + 1].strip(BLANK):
        raise _refused(json.JSONDecodeError(ROOT, text, end), of_bytes=isinstance(data, bytes))
    return value, text, end


def _decoded(data: bytes) -> str:
    try:
        return data.decode(json.detect_encoding(data))
    except UnicodeDecodeError as error:
        line, column = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
        if error.reason == "unexpected end of data":
            raise JsonEndError(f"Unexpected end-of-input in VALUE_STRING{place(line, column + 1)}") from None
        what, at = ("start", error.start) if "start" in error.reason else ("middle", error.end)
        where = place(line, column + at - error.start + 1)
        raise JsonParseError(f"Invalid UTF-8 {what} byte 0x{data[at : at + 1].hex()}{where}") from None


class _NotFinite(Exception):
    def where(self, text: str) -> JsonParseError:
        """Return Jackson's error for the first number of this name outside of strings."""
        found = next(match for match in NAMED.finditer(text) if match.group() == str(self))
        wanted = "enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow"
        return JsonParseError(f"Non-standard token '{self}': {wanted}{_place_in(text, found.end())}")


def _not_finite(name: str) -> Any:
    raise _NotFinite(name)


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_not_finite)


def _place_in(text: str, at: int) -> str:
    return place(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _as_before_3_13(error: json.JSONDecodeError) -> json.JSONDecodeError:
    """Return the error of older Pythons for a trailing comma: they name the character behind it, as Jackson does."""
    if not error.msg.startswith("Illegal trailing comma"):
        return error
    rest = error.doc[error.pos + 1 :]
    follows = len(error.doc) - len(rest.lstrip())
    wanted = "Expecting value" if rest.lstrip()[:1] == "]" else "Expecting property name enclosed in double quotes"
    return json.JSONDecodeError(wanted, error.doc, follows)


def _refused(error: json.JSONDecodeError, *, of_bytes: bool) -> JsonParseError:
    """Return Jackson's error for what stopped Python's parser."""
    text, at, said = error.doc, error.pos, error.msg
    if said.startswith(("Unterminated", "Invalid")):
        return _refused_string(text, at, said, of_bytes=of_bytes)
    opened = _opened(text, at)
    kind = "root" if opened is None else {"{": "Object", "[": "Array"}[text[opened]]
    start = source(1, None) if opened is None else _place_in(text, opened).removeprefix("\n at ")
    found, last = text[at : at + 1], text[:at].rstrip()[-1:]
    if not found:
        is_between = last in ",:" or said.startswith("Expecting ':'")
        what = (
            f" within/between {kind} entries"
            if is_between
            else f": expected close marker for {kind} (start marker at {start})"
        )
        return JsonEndError(f"Unexpected end-of-input{what}{_place_in(text, at)}")
    if found < " ":
        wanted = r"only regular white space (\r, \n, \t) is allowed between tokens"
        return JsonParseError(f"Illegal character ((CTRL-CHAR, code {ord(found)})): {wanted}{_place_in(text, at + 1)}")
    if said == "Expecting value":
        return _refused_value(text, at, kind, start, of_bytes=of_bytes)
    if said in (COMMA, ROOT):
        if found in "0123456789" and NUMBER_END.search(text, 0, at):
            return JsonParseError(f"Invalid numeric value: Leading zeroes not allowed{_place_in(text, at)}")
        if found in ".eE" and last.isdigit():
            what = "Decimal point" if found == "." else "Exponent indicator"
            return _unexpected(text, at + 1, f"{what} not followed by a digit", " in numeric value", back=not of_bytes)
        if found in "}]" and opened is not None:
            return _unexpected_close(text, at, kind, start)
    return _unexpected(text, at, f"was expecting comma to separate {kind} entries" if said == COMMA else WANTED[said])


def _refused_value(text: str, at: int, kind: str, start: str, *, of_bytes: bool) -> JsonParseError:
    found, word = text[at], WORD.match(text, at)
    if word is not None:
        where = _place_in(text, word.end() + (of_bytes and word.end() < len(text)))
        return JsonParseError(f"Unrecognized token '{word.group()}': was expecting {VALUES}{where}")
    if found == "-" and at + 1 == len(text):
        what = " in null" if of_bytes else "No digit following sign"
        return JsonEndError(f"Unexpected end-of-input{what}{_place_in(text, at + 1)}")
    if found == "-":
        return _unexpected(text, at + 1, MINUS, " in numeric value")
    if found == "+":
        return _unexpected(text, at, PLUS, " in numeric value")
    if found in "}]" and kind == "root":
        return _unexpected_close(text, at, kind, start)
    is_in_array = kind == "Array" or (kind == "root" and of_bytes)
    return _unexpected(
        text, at, COMMENT if found == "/" else "expected a value" if is_in_array and found in ",]}" else VALUE
    )


def _refused_string(text: str, at: int, said: str, *, of_bytes: bool) -> JsonParseError:
    if said.startswith("Invalid control"):
        what = f"Illegal unquoted character ((CTRL-CHAR, code {ord(text[at])}))"
        wanted = "has to be escaped using backslash to be included in string value"
        return JsonParseError(f"{what}: {wanted}{_place_in(text, at)}")
    if said.startswith("Invalid \\e") and at + 1 < len(text):
        what = f"Unrecognized character escape '{text[at + 1]}' (code {ord(text[at + 1])})"
        return JsonParseError(f"{what}{_place_in(text, at + 1)}")
    digits = HEX.match(text, at)
    if digits is not None and digits.end() < len(text):
        return _unexpected(text, digits.end(), "expected a hex-digit for character escape sequence")
    is_name = text[:at].rstrip()[-1:] != ":" and text[_opened(text, at) or 0] == "{"
    if digits is not None or CUT.search(text):
        what = " in character escape sequence"
    elif is_name:
        what = " in field name"
    else:
        what = " in VALUE_STRING" if of_bytes else ": was expecting closing quote for a string value"
    return JsonEndError(f"Unexpected end-of-input{what}{_place_in(text, len(text))}")


def _opened(text: str, at: int) -> int | None:
    """Return the position of the innermost brace or bracket that is open there."""
    stack = []
    for match in TOKEN.finditer(text, 0, at):
        if match.group() in "{[":
            stack.append(match.start())
        elif match.group() in "}]":
            stack.pop()
    return stack[-1] if stack else None


def _unexpected(text: str, at: int, wanted: str, where: str = "", *, back: bool = False) -> JsonParseError:
    found = text[at : at + 1]
    code = f"{ord(found)}" if found < "\u0100" else f"{ord(found)} / 0x{ord(found):x}"
    what = f"Unexpected character ('{found}' (code {code})){where}: {wanted}"
    return JsonParseError(f"{what}{_place_in(text, at - back)}")


def _unexpected_close(text: str, at: int, kind: str, start: str) -> JsonParseError:
    what = f"Unexpected close marker '{text[at]}': expected '{'}' if text[at] == ']' else ']'}'"
    return JsonParseError(f"{what} (for {kind} starting at {start}){_place_in(text, at)}")
