"""Types of Java, and how Jackson reads JSON values into them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pulsarium.broker.jackson.errors import JsonError, JsonParseError, OutOfRange, place
from pulsarium.broker.jackson.parsing import BLANK, parse_behind, parse_first
from pulsarium.proto.numbers import parse_number

INDEX: Final = re.compile(r"0|[1-9][0-9]{,8}")
FRACTION: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[fFdD]?", re.ASCII)
SPACE: Final = "".join(map(chr, range(33)))  # what Java's String.trim removes
NOT_FINITE: Final = {"NaN": "nan", "Infinity": "inf", "INF": "inf", "-Infinity": "-inf", "-INF": "-inf"}


def wrong_type(java_type: str, value: Any, found: str = "") -> JsonError:
    """Return the error for a JSON value of the wrong kind, in Jackson's words."""
    if not found and isinstance(value, str):
        found = f'String "{value}": not a valid `{java_type}` value'
    elif not found:
        word, token = _token(value)
        found = f"{word} value (token `JsonToken.{token}`)"
    return JsonError(f"Cannot deserialize value of type `{java_type}` from {found}{place(1, 1)}")


def _token(value: Any) -> tuple[str, str]:
    """Return Jackson's words for a JSON value: its kind, and its first token."""
    if isinstance(value, dict):
        return "Object", "START_OBJECT"
    if isinstance(value, list):
        return "Array", "START_ARRAY"
    if isinstance(value, str):
        return "String", "VALUE_STRING"
    if value is None or isinstance(value, bool):
        return "Null" if value is None else "Boolean", f"VALUE_{json.dumps(value).upper()}"
    return ("Integer", "VALUE_NUMBER_INT") if isinstance(value, int) else ("Floating-point", "VALUE_NUMBER_FLOAT")


@dataclass(frozen=True, slots=True)
class JavaType:
    """A Java type. `of` reads a JSON value that is not null; `null` is the value for null.

    `choices` are the names of an enum, and `fields` the types of an object's fields, for forms.
    """

    java_type: str
    of: Callable[[Any], Any]
    null: Any = None
    is_primitive: bool = False  # a body is required
    choices: tuple[str, ...] = ()
    fields: Mapping[str, JavaType] = field(default_factory=dict, compare=False)

    def value_of(self, value: Any) -> Any:
        """Return the value to store for a JSON value. Raise `JsonError` for one of another kind."""
        return self.null if value is None else self.of(value)


def read(kind: JavaType, data: str | bytes, *, whole: bool = False) -> Any:
    """Return the first value of a JSON text as a value of a type. With `whole`, no other value may follow."""
    try:
        value, text, end = parse_first(data)
    except (JsonParseError, OutOfRange):  # a first token of the wrong kind comes before any other error
        first = data.lstrip()[:1]
        if first in ("{", b"{"):
            kind.of({})
        elif first in ("[", b"["):
            kind.of([])
        raise
    found = kind.value_of(value)
    if whole and text[end:].strip(BLANK):
        token = f"Trailing token (of type {_token(parse_behind(text, end))[1]}) found after value"
        what = f"{token} (bound as `{kind.java_type}`): not allowed as per"
        raise JsonError(f"{what} `DeserializationFeature.FAIL_ON_TRAILING_TOKENS`{place(1, 1)}")
    return found


def _scalar(java_type: str, of: Callable[[Any], Any], null: Any, **more: Any) -> JavaType:
    """Make the kind of a number or a boolean, which may be a string. A blank one and "null" are null."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return of(value)
        text = value.strip(SPACE)
        return null if text in ("", "null") else of(text)

    return JavaType(java_type, read, null, **more)


def _in_range(value: float, bits: int) -> int:
    limit = 1 << (bits - 1)
    if not -limit <= value < limit:
        name = "int" if bits == 32 else "long"
        text = getattr(value, "text", value)
        raise OutOfRange(f"Numeric value ({text}) out of range of {name} ({-limit} - {limit - 1}){place(1, 1)}")
    return int(value)


def integer(java_type: str, bits: int = 32, null: int | None = None, **more: Any) -> JavaType:
    """Make the kind of a whole number. Fractions are cut off."""

    def of(value: Any) -> int:
        if isinstance(value, str):
            number = parse_number(value, bits)
            if number is None and bits == 32 and parse_number(value) is not None:
                name = "int" if java_type == "int" else f"`{java_type}`"
                what = f"Overflow: numeric value ({value}) out of range of {name} (-2147483648 -2147483647)"
                raise wrong_type(java_type, value, f'String "{value}": {what}')
            if number is not None:
                return number
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong_type(java_type, value)
        return _in_range(value, bits)

    return _scalar(java_type, of, null, **more)


def boolean(java_type: str, recognized: str, null: bool | None = None, **more: Any) -> JavaType:
    """Make the kind of a boolean. The number 0 is false, and other whole numbers are true."""

    def of(value: Any) -> bool:
        if isinstance(value, int):
            return bool(value)
        if not isinstance(value, str):
            raise wrong_type(java_type, value)
        if value not in ("true", "True", "TRUE", "false", "False", "FALSE"):
            raise wrong_type(java_type, value, f'String "{value}": only {recognized} recognized')
        return value.lower() == "true"

    return _scalar(java_type, of, null, **more)


def double(java_type: str, null: float | None = None) -> JavaType:
    """Make the kind of a number with a fraction."""

    def of(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise wrong_type(java_type, value)
        if not isinstance(value, str):
            return float(value) if abs(value) < 1 << 1023 else math.copysign(math.inf, value)
        if value not in NOT_FINITE and not FRACTION.fullmatch(value):
            raise wrong_type(
                java_type, value, f'String "{value}": not a valid `{java_type}` value (as String to convert)'
            )
        return float(NOT_FINITE.get(value, value.rstrip("fFdD")))

    return _scalar(java_type, of, null)


def choice(java_type: str, names: tuple[str, ...], null: Any = None) -> JavaType:
    """Make the kind of an enum, by name or index. A name that Pulsar does not know counts as null."""

    def of(value: Any) -> Any:
        if isinstance(value, str):
            value = value.strip(SPACE)
            if value in names or not INDEX.fullmatch(value):
                return value if value in names else null
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type(java_type, value)
        return names[value] if 0 <= _in_range(value, 32) < len(names) else null

    return JavaType(java_type, of, null, choices=names)


def _no_creator(java_type: str, value: Any, what: str = "", end: str = " value ") -> JsonError:
    """Return the error for a value that no constructor of a Java class takes."""
    if isinstance(value, str):
        value = value.strip(SPACE)
        if not value:
            text = (
                f'Cannot coerce empty String ("") to {what}`{java_type}`{end}(but could if coercion was enabled using '
            )
            return JsonError(f"{text}`CoercionConfig`){place(1, 1)}")
        word, found = "String", f"String value ('{value}')"
    elif isinstance(value, bool):
        word, found = "boolean/Boolean", f"boolean value ({json.dumps(value)})"
    elif isinstance(value, int):
        words = (word for bits, word in ((32, "int/Int"), (64, "long/Long")) if value.bit_length() < bits)
        word, found = next(words, "BigInteger"), f"Number value ({value})"
    elif isinstance(value, float):
        word, found = "double/Double", f"Number value ({value})"
    else:
        return wrong_type(java_type, value)
    text = f"no {word}-argument constructor/factory method to deserialize from {found}{place(1, 1)}"
    return JsonError(f"Cannot construct instance of `{java_type}` (although at least one Creator exists): {text}")


def _text(value: Any) -> str:
    if isinstance(value, (dict, list)):
        raise wrong_type("java.lang.String", value)
    return value if isinstance(value, str) else getattr(value, "text", None) or json.dumps(value)


TEXT: Final = JavaType("java.lang.String", _text)


def collection(java_type: str, kind: JavaType = TEXT) -> JavaType:
    """Make the kind of a list or a set."""
    whole = f"{java_type}<{kind.java_type}>"

    def of(value: Any) -> list[Any]:
        if isinstance(value, str):
            if kind is not TEXT:
                raise wrong_type(whole, value, "String value (token `JsonToken.VALUE_STRING`)")
            raise _no_creator(java_type, value, "element of ", " ")
        if not isinstance(value, list):
            raise wrong_type(whole, value)
        found, index = [], 0
        try:
            for each in value:
                if each is not None or kind is not TEXT:
                    found.append(kind.value_of(each))
                index += 1
        except JsonError as error:
            raise error.inside(f"{java_type}[{index}]") from None
        return list(dict.fromkeys(found)) if java_type.endswith("Set") else found

    return JavaType(whole, of)


def whole_object(java_type: str) -> JavaType:
    """Make the kind of an object with all its fields as they are."""

    def of(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _no_creator(java_type, value)
        return value

    return JavaType(java_type, of)


def record(
    java_type: str, fields: Mapping[str, JavaType], missing: Mapping[str, Any] = MappingProxyType({})
) -> JavaType:
    """Make the kind of an object with known fields. `missing` has values for absent fields."""
    absent = {name: missing.get(name, kind.null) for name, kind in fields.items()}
    of_object = whole_object(java_type).of

    def of(value: Any) -> dict[str, Any]:
        sent, found, name = of_object(value), {**absent}, ""
        try:
            for name, each in sent.items():
                if name in fields:
                    found[name] = fields[name].value_of(each)
        except JsonError as error:
            raise error.inside(f'{java_type}["{name}"]') from None
        return {name: field for name, field in found.items() if field is not None}

    return JavaType(java_type, of, fields=fields)


def mapping(kind: JavaType) -> JavaType:
    """Make the kind of an object with any fields, all of one kind."""
    java_type = "java.util.LinkedHashMap"
    whole = f"{java_type}<java.lang.String,{kind.java_type}>"

    def of(value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            raise _no_creator(java_type, value, "element of ", " ")
        if not isinstance(value, dict):
            raise wrong_type(whole, value)
        found, name = {}, ""
        try:
            for name, each in value.items():
                if each is not None:
                    found[name] = kind.of(each)
        except JsonError as error:
            raise error.inside(f'{java_type}["{name}"]') from None
        return found

    return JavaType(whole, of)


ANY: Final = JavaType("java.lang.Object", lambda value: value)
INT: Final = integer("int", null=0, is_primitive=True)
INTEGER: Final = integer("java.lang.Integer")
LONG: Final = integer("long", 64, null=0, is_primitive=True)
BOOL: Final = boolean("boolean", '"true"/"True"/"TRUE" or "false"/"False"/"FALSE"', null=False, is_primitive=True)
BOOLEAN: Final = boolean("java.lang.Boolean", '"true" or "false"')
DOUBLE: Final = double("double", null=0.0)
TEXTS: Final = collection("java.util.HashSet")
TEXT_LIST: Final = collection("java.util.ArrayList")
STRINGS: Final = mapping(TEXT)
