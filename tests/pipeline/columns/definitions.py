"""Random records: Avro definitions, with values as the client's AvroSchema and JsonSchema take them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import count
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.pipeline.columns.messages import logical

Values = st.SearchStrategy[Any]


class Type(NamedTuple):
    definition: Any
    avro: Values
    json: Values


INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32)
DOUBLES = st.floats()
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001
DECIMALS = st.integers(-(10**10) + 1, 10**10 - 1).map(lambda number: Decimal(number).scaleb(-3))


def _json_float(value: float) -> Any:
    return value if value - value == 0 else "NaN" if value != value else f"{'-' if value < 0 else ''}Infinity"


def _whole_ms(value: Any) -> Any:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def _since(base: datetime, unit: int) -> Callable[[datetime], int]:
    return lambda value: (
        ((value - base).days * 86_400_000_000 + (value - base).seconds * 1_000_000 + (value - base).microseconds)
        // unit
    )


_LOCAL = datetime(1970, 1, 1)  # noqa: DTZ001
_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_AWARE = MOMENTS.map(lambda value: value.replace(tzinfo=UTC))


def _of_day(unit: int) -> Callable[[time], int]:
    return lambda value: _since(_LOCAL, unit)(datetime.combine(_LOCAL.date(), value))


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def scalars(name: Callable[[], str]) -> list[Type]:
    symbols = ["RED", "green", "B_1"]
    return [
        Type("boolean", st.booleans(), st.booleans()),
        Type("int", INTS, INTS),
        Type("long", LONGS, LONGS),
        Type("float", FLOATS, FLOATS.map(_json_float)),
        Type("double", DOUBLES, DOUBLES.map(_json_float)),
        Type("string", st.text(), st.text()),
        Type("bytes", st.binary(), st.binary().map(_base64)),
        Type(logical("int", "date"), st.dates(), st.dates().map(lambda day: (day - date(1970, 1, 1)).days)),
        Type(logical("int", "time-millis"), st.times().map(_whole_ms), st.times().map(_of_day(1000))),
        Type(logical("long", "time-micros"), st.times(), st.times().map(_of_day(1))),
        Type(logical("long", "timestamp-millis"), _AWARE.map(_whole_ms), _AWARE.map(_since(_UTC, 1000))),
        Type(logical("long", "timestamp-micros"), _AWARE, _AWARE.map(_since(_UTC, 1))),
        Type(logical("long", "local-timestamp-millis"), MOMENTS.map(_whole_ms), MOMENTS.map(_since(_LOCAL, 1000))),
        Type(logical("long", "local-timestamp-micros"), MOMENTS, MOMENTS.map(_since(_LOCAL, 1))),
        Type(logical("bytes", "decimal", precision=10, scale=3), DECIMALS, DECIMALS.map(lambda each: f"{each:f}")),
        Type(
            logical("fixed", "decimal", precision=10, scale=3, size=5, name=name()),
            DECIMALS,
            DECIMALS.map(lambda each: f"{each:f}"),
        ),
        Type(logical("string", "uuid"), st.uuids(), st.uuids().map(str)),
        Type(
            {"type": "fixed", "name": name(), "size": 3},
            st.binary(min_size=3, max_size=3),
            st.binary(min_size=3, max_size=3).map(_base64),
        ),
        Type({"type": "enum", "name": name(), "symbols": symbols}, st.sampled_from(symbols), st.sampled_from(symbols)),
    ]


@st.composite
def types(draw: st.DrawFn, name: Callable[[], str], depth: int) -> Type:
    kind = draw(st.integers(0, 5 if depth else 0))
    if kind == 0:
        scalar: Type = draw(st.sampled_from(scalars(name)))
        return scalar
    if kind == 1:
        inner = draw(types(name, depth - 1))
        return Type(
            {"type": "array", "items": inner.definition},
            st.lists(inner.avro, max_size=3),
            st.lists(inner.json, max_size=3),
        )
    if kind == 2:
        inner = draw(types(name, depth - 1))
        return Type(
            {"type": "map", "values": inner.definition},
            st.dictionaries(st.text(), inner.avro, max_size=3),
            st.dictionaries(st.text(), inner.json, max_size=3),
        )
    if kind == 3:
        return draw(records(name, depth - 1))
    if kind == 4:
        return draw(unions(name, depth - 1))
    inner = draw(types(name, depth - 1))
    if isinstance(inner.definition, list):
        return inner
    order = draw(st.booleans())
    definition = ["null", inner.definition] if order else [inner.definition, "null"]
    return Type(definition, st.none() | inner.avro, st.none() | inner.json)


@st.composite
def unions(draw: st.DrawFn, name: Callable[[], str], depth: int) -> Type:
    """Draw a union. The values of its branches can be told apart, even in JSON."""
    texts = [
        Type("string", st.text(), st.text()),
        Type({"type": "enum", "name": name(), "symbols": ["A"]}, st.just("A"), st.just("A")),
    ]
    groups: list[list[Type]] = [
        texts,
        [Type("int", INTS, INTS), Type("long", LONGS, LONGS)],
        # JSON can express an infinity only as a string, which would look like another branch.
        [Type("double", DOUBLES, st.floats(allow_nan=False, allow_infinity=False))],
        [Type("boolean", st.booleans(), st.booleans())],
        [draw(records(name, depth))] if depth > 0 else [],
        [Type({"type": "array", "items": "int"}, st.lists(INTS, max_size=2), st.lists(INTS, max_size=2))],
    ]
    chosen = [draw(st.sampled_from(group)) for group in groups if group if draw(st.booleans())]
    chosen = list(draw(st.permutations(chosen or groups[3])))
    avro, json = st.one_of([each.avro for each in chosen]), st.one_of([each.json for each in chosen])
    definition = [each.definition for each in chosen]
    if draw(st.booleans()):
        return Type([*definition, "null"], st.none() | avro, st.none() | json)
    return Type(definition, avro, json)


@st.composite
def records(draw: st.DrawFn, name: Callable[[], str] | None = None, depth: int = 3) -> Type:
    if name is None:
        numbers = count()

        def name() -> str:
            return f"N{next(numbers)}"

    found = [draw(types(name, depth)) for _ in range(draw(st.integers(1, 4)))]
    fields = {f"f{number}": each for number, each in enumerate(found)}
    definition = {
        "type": "record",
        "name": name(),
        "fields": [{"name": each, "type": kind.definition} for each, kind in fields.items()],
    }
    return Type(
        definition,
        st.fixed_dictionaries({each: kind.avro for each, kind in fields.items()}),
        st.fixed_dictionaries({each: kind.json for each, kind in fields.items()}),
    )
