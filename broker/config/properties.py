"""Java properties, the format of broker.conf: text -> (key, value, line), as java.util.Properties reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Setting(NamedTuple):
    """One logical line. `line` counts from 1 and is where the key stands; the value may go on below it."""

    key: str
    value: str
    line: int


class PropertiesError(ValueError):
    """A backslash-u that is not followed by four hexadecimal digits: all that can be wrong with a properties file."""

    def __init__(self, line: int) -> None:
        super().__init__("a \\u wants four hexadecimal digits after it")
        self.line = line


def parse(text: str) -> list[Setting]:
    """Every setting in the order of the file, duplicates included. Raises PropertiesError."""
    return [_setting(logical, line) for logical, line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Joins lines that end in an odd number of backslashes; drops blank lines, comments and leading blanks."""
    parts: list[str] = []
    first = 0
    continued = False  # the line before ended in a backslash, even if it held nothing else
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = natural.lstrip(_BLANK)
        if not any(parts):
            # Nothing collected yet: a comment or a blank line here is none of the setting, also after a lone backslash.
            if line.startswith(("#", "!")) or not (line or continued):
                continued = False
                continue
            parts, first = [], number
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        parts.append(line[:-1] if continued else line)
        if not continued:
            if any(parts):
                yield "".join(parts), first
            parts = []
    if any(parts):
        yield "".join(parts), first


def _setting(logical: str, line: int) -> Setting:
    end = 0
    while end < len(logical) and logical[end] not in "=:" + _BLANK:
        end += 2 if logical[end] == "\\" else 1
    end = min(end, len(logical))
    rest = logical[end:].lstrip(_BLANK)
    if rest.startswith(("=", ":")):
        rest = rest[1:].lstrip(_BLANK)
    return Setting(_unescape(logical[:end], line), _unescape(rest, line), line)


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\":
            out.append(text[at])
            at += 1
            continue
        escaped = text[at + 1 : at + 2]
        if escaped == "u":
            digits = text[at + 2 : at + 6]
            if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise PropertiesError(line)
            out.append(chr(int(digits, 16)))
            at += 6
        else:
            out.append(_ESCAPES.get(escaped, escaped))
            at += 2
    return "".join(out)
