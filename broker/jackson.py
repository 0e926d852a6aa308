"""Parse JSON, and refuse bad JSON with the texts of Jackson, the parser of Pulsar's broker."""

from __future__ import annotations

import json
import re
from typing import Any

EXCEPTION = "com.fasterxml.jackson.core.JsonParseException"
AT_END = "com.fasterxml.jackson.core.io.JsonEOFException"
VALUES = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
WANTED = {
    "Expecting property name enclosed in double quotes": "was expecting double-quote to start field name",
    "Expecting ':' delimiter": "was expecting a colon to separate field name and value",
    "Expecting value": f"expected a valid value {VALUES}",
}
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
WORD = re.compile(r"[A-Za-z_$][\w$]*")


class JsonParseError(ValueError):
    """The text is not JSON. `str` is the text of Java's exception, with its class."""


def parse(text: str) -> Any:
    """Return the only value of a JSON text.

    Raise `JsonParseError` for bad JSON, ValueError for text behind the value, EOFError for a text without a value.
    """
    stripped = text.lstrip()
    if not stripped:
        raise EOFError
    start = len(text) - len(stripped)
    try:
        value, end = json.JSONDecoder(parse_constant=_constant).raw_decode(text, start)
    except RecursionError:
        raise JsonParseError(f"{EXCEPTION}: Document nesting depth exceeds the maximum allowed") from None
    except json.JSONDecodeError as error:
        raise _refused(_as_before_3_13(error)) from None
    if rest := text[end:].strip():
        raise ValueError(rest)
    if SURROGATE.search(text):  # UTF-8 has no lone surrogates; Java sends question marks
        value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return value


def place(line: int, column: int) -> str:
    """Return the place of an error in Jackson's words."""
    source = "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"
    return f"\n at {source}; line: {line}, column: {column}]"


def _constant(name: str) -> Any:
    wanted = "enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow"
    raise JsonParseError(f"{EXCEPTION}: Non-standard token '{name}': {wanted}")


def _as_before_3_13(error: json.JSONDecodeError) -> json.JSONDecodeError:
    """Return the error of older Pythons for a trailing comma: they name the character behind it, as Jackson does."""
    if not error.msg.startswith("Illegal trailing comma"):
        return error
    rest = error.doc[error.pos + 1 :]
    follows = len(error.doc) - len(rest.lstrip())
    wanted = "Expecting value" if rest.lstrip()[:1] == "]" else "Expecting property name enclosed in double quotes"
    return json.JSONDecodeError(wanted, error.doc, follows)


def _refused(error: json.JSONDecodeError) -> JsonParseError:
    text, at = error.doc, error.pos
    word = WORD.match(text, at)
    if error.msg == "Expecting value" and word is not None:
        what, column = f"Unrecognized token '{word.group()}': was expecting {VALUES}", error.colno + len(word.group())
    elif at >= len(text) or error.msg.startswith("Unterminated string"):
        return JsonParseError(f"{AT_END}: Unexpected end-of-input{place(error.lineno, error.colno)}")
    else:
        found = text[at]
        wanted = WANTED.get(error.msg, error.msg)
        what, column = f"Unexpected character ('{found}' (code {ord(found)})): {wanted}", error.colno
    return JsonParseError(f"{EXCEPTION}: {what}{place(error.lineno, column)}")
