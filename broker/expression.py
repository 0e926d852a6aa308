"""Parse expressions: conditions on the fields of a frame (`when` of faults), or of a message. Sans-IO.

    condition  = all {"or" all}
    all        = one {"and" one}
    one        = "not" one | "(" condition ")" | "has" name | name [comparison]
    comparison = ("==" | "!=" | "<" | "<=" | ">" | ">=") value
               | ("contains" | "startswith" | "endswith" | "matches") value
               | ["not"] "in" "[" value {"," value} "]"
    name       = word {"." word | "[" string "]"}
    value      = number | string | "b" string | "true" | "false"

The parser reads each character once. A bound on the length and on the depth keeps the parser and its conditions small.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, NoReturn

from pulsarium.proto.text import did_you_mean

LONGEST: Final = 4096
"""The most characters of an expression."""
DEEPEST: Final = 50
"""The most brackets and `not` inside each other."""

Value = str | int | float | bytes
Condition = Callable[[Any], bool]
"""Return whether a frame meets the condition."""


class ExpressionError(ValueError):
    """An expression that is not valid. The text says where, and what is allowed."""


@dataclass(frozen=True, slots=True)
class FrameField:
    """A field of frames that an expression can name. `read` yields no value for a frame without the field.

    The kind `object` is any value: a comparison with a value of another type is false.
    """

    kind: type
    read: Callable[[Any], Iterable[Value]]
    choices: tuple[str, ...] = ()
    """The names that the field can have, or none for any text."""


Names = Callable[[tuple[str, ...]], FrameField]
"""Return the field of a path such as ("metadata", "partition_key"). Raise `ExpressionError` for an unknown one."""


def parse(text: str, names: Names) -> Condition:
    """Return the condition that an expression describes. Raise `ExpressionError`."""
    if len(text) > LONGEST:
        raise ExpressionError(f"it has {len(text)} characters; at most {LONGEST} are allowed")
    return _Parser(text, names).whole()


KINDS: Final[Mapping[type, str]] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    bytes: "bytes",
    object: "a text, a number, true or false",
}
ORDER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
PARTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "contains": operator.contains,
    "startswith": lambda value, part: value.startswith(part),
    "endswith": lambda value, part: value.endswith(part),
    "matches": fnmatchcase,
}
OPERATORS: Final = ("==", "!=", *ORDER, "in", "not in", *PARTS)
MISTAKEN: Final = {"=": "==", "&&": "and", "||": "or", "!": "not", "&": "and", "|": "or"}

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
    | (?P<text>b?"(?:[^"\\]|\\.)*" | b?'(?:[^'\\]|\\.)*')
    | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?![A-Za-z0-9_.]))
    | (?P<word>[A-Za-z_][A-Za-z0-9_-]*)
    | (?P<sign>[=!<>]=|[<>()\[\],.]|&&|\|\||[=!&|])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "'": "'"}


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def _tokens(text: str) -> list[_Token]:
    found, at = list[_Token](), 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            what = "the text has no end" if text[at] in "\"'" else f"{text[at]!r} is not part of an expression"
            raise ExpressionError(f"at character {at + 1}: {what}")
        if match.lastgroup != "space":
            found.append(_Token(match.lastgroup or "", match[0], at))
        at = match.end()
    return [*found, _Token("end", "", at)]


class _Parser:
    def __init__(self, text: str, names: Names) -> None:
        self._tokens = iter(_tokens(text))
        self._names = names
        self._next = next(self._tokens)
        self._depth = 0

    def whole(self) -> Condition:
        found = self._condition()
        if self._next.kind != "end":
            self._fail("and, or or the end of the expression is wanted")
        return found

    def _fail(self, wanted: str) -> NoReturn:
        token = self._next
        there = f"not {token.text}" if token.text else "but the expression ends"
        meant = f"; write {MISTAKEN[token.text]}" if token.text in MISTAKEN else ""
        raise ExpressionError(f"at character {token.at + 1}: {wanted}, {there}{meant}")

    def _take(self) -> _Token:
        token = self._next
        self._next = next(self._tokens, token)
        return token

    def _took(self, *texts: str) -> bool:
        """Take the next token if it is one of these words or signs."""
        if self._next.kind in ("word", "sign") and self._next.text in texts:
            self._take()
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._took(text):
            self._fail(f"{text} is wanted")

    def _condition(self) -> Condition:
        return self._joined("or", any, lambda: self._joined("and", all, self._one))

    def _joined(self, word: str, judge: Callable[[Iterable[bool]], bool], part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self._took(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else lambda frame: judge(each(frame) for each in parts)

    def _one(self) -> Condition:
        at = self._next.at
        if self._took("not"):
            inner = self._deeper(at, self._one)
            return lambda frame: not inner(frame)
        if self._took("("):
            inner = self._deeper(at, self._condition)
            self._expect(")")
            return inner
        if self._took("has"):
            read = self._name().read
            return lambda frame: any(True for _ in read(frame))
        return self._comparison()

    def _deeper(self, at: int, part: Callable[[], Condition]) -> Condition:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(f"at character {at + 1}: more than {DEEPEST} brackets or nots are inside each other")
        inner = part()
        self._depth -= 1
        return inner

    def _name(self) -> FrameField:
        at = self._next.at
        if self._next.kind != "word" or self._next.text in ("and", "or", "in", "true", "false"):
            self._fail("a name such as topic or metadata.partition_key is wanted")
        path = [self._take().text]
        while self._next.text in (".", "["):
            bracket = self._take().text == "["
            if self._next.kind != ("text" if bracket else "word"):
                self._fail("a text is wanted" if bracket else "a name is wanted")
            path.append(str(self._value(str)) if bracket else self._take().text)
            if bracket:
                self._expect("]")
        try:
            return self._names(tuple(path))
        except ExpressionError as error:
            raise ExpressionError(f"at character {at + 1}: {error}") from None

    def _comparison(self) -> Condition:
        field, sign = self._name(), self._next.text
        if sign in ("==", "!="):
            self._take()
            return _equal(field, [self._value(field.kind, field.choices)], sign == "!=")
        if sign in ("in", "not"):
            self._take()
            if sign == "not":
                self._expect("in")
            return _equal(field, self._values(field), sign == "not")
        if sign in ORDER or sign in PARTS:
            return self._compared(field, self._take())
        if field.kind not in (bool, object):
            self._fail(f"{KINDS[field.kind]} needs one of {', '.join(OPERATORS)}")
        return _equal(field, [True], False)

    def _compared(self, field: FrameField, sign: _Token) -> Condition:
        kinds = (int, float) if sign.text in ORDER else (str,) if sign.text == "matches" else (str, bytes)
        if field.kind is object:
            return _holds(field, sign.text, self._value(object))
        if field.kind not in kinds:
            wanted = " or ".join(KINDS[kind] for kind in kinds)
            raise ExpressionError(
                f"at character {sign.at + 1}: {sign.text} needs {wanted}; this field is {KINDS[field.kind]}"
            )
        read, holds, value = field.read, {**ORDER, **PARTS}[sign.text], self._value(field.kind)
        return lambda frame: any(holds(each, value) for each in read(frame))

    def _values(self, field: FrameField) -> list[Value]:
        self._expect("[")
        found = [self._value(field.kind, field.choices)]
        while self._took(","):
            found.append(self._value(field.kind, field.choices))
        self._expect("]")
        return found

    def _value(self, kind: type, choices: tuple[str, ...] = ()) -> Value:
        """Take a value that fits a field of this kind."""
        token = self._next
        value = _literal(token)
        if isinstance(value, str) and kind is bytes:
            value = value.encode()
        fits = isinstance(value, kind) or (isinstance(value, int | float) and kind in (int, float))
        if value is None or not fits or (isinstance(value, bool) and kind not in (bool, object)):
            self._fail(f"{KINDS[kind]} is wanted")
        if choices and value not in choices:
            meant = did_you_mean(str(value), choices) or f"there are {', '.join(choices)}"
            raise ExpressionError(f"at character {token.at + 1}: there is no {value!r}; {meant}")
        self._take()
        return value


def _equal(field: FrameField, wanted: list[Value], negated: bool) -> Condition:
    """Return the condition that a value of the field is one of `wanted`, or with `negated` that none is."""
    read, values = field.read, frozenset(wanted)
    if field.kind is object:
        return lambda frame: any(_is_scalar(each) and each in values for each in read(frame)) is not negated
    return lambda frame: any(each in values for each in read(frame)) is not negated


def _is_scalar(value: object) -> bool:
    return isinstance(value, Value)


def _holds(field: FrameField, sign: str, wanted: Value) -> Condition:
    """Return the condition that a comparison holds for a value of the field, of whatever type it is."""
    read, holds = field.read, {**ORDER, **PARTS}[sign]

    def met(value: Any) -> bool:
        try:
            return holds(value, wanted)
        except (TypeError, AttributeError):
            return False

    return lambda frame: any(met(each) for each in read(frame))


def _literal(token: _Token) -> Value | None:
    """Return the value that a token writes, or None for another token."""
    if token.kind == "number":
        return float(token.text) if "." in token.text else int(token.text)
    if token.kind == "text":
        return _bytes(token) if token.text[0] == "b" else _text(token)
    return {"true": True, "false": False}.get(token.text) if token.kind == "word" else None


def _text(token: _Token) -> str:
    text = _ESCAPE.sub(lambda match: _unescaped(token, match), token.text[1:-1])
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ExpressionError(f"at character {token.at + 1}: UTF-8 cannot encode this text") from None
    return text


def _bytes(token: _Token) -> bytes:
    """Return the bytes of a literal: `\\xNN` is one byte, and other characters are UTF-8."""
    found, at = bytearray(), 0
    inner = token.text[2:-1]
    for match in _ESCAPE.finditer(inner):
        found += inner[at : match.start()].encode("utf-8", "replace")
        found += bytes.fromhex(match[1]) if match[1] else _unescaped(token, match).encode("utf-8", "replace")
        at = match.end()
    return bytes(found + inner[at:].encode("utf-8", "replace"))


def _unescaped(token: _Token, match: re.Match[str]) -> str:
    code, letter = match[1] or match[2], match[3]
    if code:
        return chr(int(code, 16))
    if letter not in _ESCAPED:
        raise ExpressionError(
            f"at character {token.at + 1}: a text has no escape \\{letter}; write \\\\ for a backslash"
        )
    return _ESCAPED[letter]
