"""Single values, byte for byte as Java clients write them."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.client.errors import InvalidMessage
from pulsarium.client.schema.primitives import (
    BooleanSchema,
    DateSchema,
    DoubleSchema,
    FloatSchema,
    InstantSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    StringSchema,
    TimeSchema,
    TimestampSchema,
)
from pulsarium.client.schema.schema import Schema
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.schema.kept import there_and_back

MOMENT = datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
MILLIS = 1577934245678

FORMS: list[tuple[Schema[Any], str, Any, str]] = [
    (StringSchema(), "String", "Grüße", "4772c3bcc39f65"),
    (StringSchema(), "String", "", ""),
    (BooleanSchema(), "Bool", True, "01"),
    (BooleanSchema(), "Bool", False, "00"),
    (Int8Schema(), "Int8", -2, "fe"),
    (Int16Schema(), "Int16", 258, "0102"),
    (Int32Schema(), "Int32", -2, "fffffffe"),
    (Int64Schema(), "Int64", 2**40 + 1, "0000010000000001"),
    (FloatSchema(), "Float", 1.5, "3fc00000"),
    (DoubleSchema(), "Double", -1.5, "bff8000000000000"),
    (DateSchema(), "Date", MOMENT.replace(microsecond=678000), f"{MILLIS:016x}"),
    (TimestampSchema(), "Timestamp", MOMENT.replace(microsecond=678000), f"{MILLIS:016x}"),
    (TimeSchema(), "Time", time(1, 0, 0, 5000), f"{3600005:016x}"),
    (InstantSchema(), "Instant", MOMENT, f"{1577934245:016x}{678901000:08x}"),
    (LocalDateSchema(), "LocalDate", date(1970, 1, 3), f"{2:016x}"),
    (LocalDateSchema(), "LocalDate", date(1969, 12, 31), "f" * 16),
    (LocalTimeSchema(), "LocalTime", time(0, 0, 1, 2), f"{1_000_002_000:016x}"),
    (LocalDateTimeSchema(), "LocalDateTime", datetime(1970, 1, 2, 0, 0, 1), f"{1:016x}{10**9:016x}"),  # noqa: DTZ001
]
SCHEMAS = [*{type(schema): schema for schema, *_ in FORMS}.values()]


@pytest.mark.parametrize(("schema", "kind", "value", "form"), FORMS, ids=[f"{form[1]} {form[2]}" for form in FORMS])
def test_values_are_byte_for_byte_as_java_writes_them(schema: Schema[Any], kind: str, value: Any, form: str) -> None:
    assert schema.encode(value).hex() == form
    assert schema.decode(bytes.fromhex(form)) == value
    assert schema.info is not None
    assert (schema.info.type, schema.info.data) == (pb.Schema.Type.Value(kind), b"")
    assert not schema.reads_by_writer


@pytest.mark.parametrize("schema", SCHEMAS, ids=[type(schema).__name__ for schema in SCHEMAS])
@given(data=st.binary(max_size=20))
def test_any_bytes_are_a_value_or_an_invalid_message(schema: Schema[Any], data: bytes) -> None:
    with suppress(InvalidMessage):
        value = schema.decode(data)
        if value == value:  # false for NaN
            assert schema.decode(schema.encode(value)) == value


WHOLE = {Int8Schema: 8, Int16Schema: 16, Int32Schema: 32, Int64Schema: 64}


@pytest.mark.parametrize(("kind", "bits"), WHOLE.items())
def test_the_ends_of_whole_numbers(kind: type[Schema[int]], bits: int) -> None:
    schema, end = kind(), 2 ** (bits - 1)
    for value in (end - 1, -end):
        assert schema.decode(schema.encode(value)) == value
    for value in (end, -end - 1):
        with pytest.raises(InvalidMessage, match=f"{kind.__name__}: {value} does not fit"):
            schema.encode(value)


def test_numbers_that_do_not_fit_are_refused() -> None:
    assert DoubleSchema().decode(DoubleSchema().encode(3)) == 3.0
    assert math.isnan(DoubleSchema().decode(DoubleSchema().encode(math.nan)))
    with pytest.raises(InvalidMessage, match=r"FloatSchema: 1e.39 does not fit"):
        FloatSchema().encode(1e39)
    with pytest.raises(InvalidMessage, match="does not fit"):
        DoubleSchema().encode(10**400)


def test_moments_of_other_zones() -> None:
    east = MOMENT.astimezone(timezone(timedelta(hours=5)))
    for schema in (InstantSchema(), TimestampSchema()):
        assert schema.encode(east) == schema.encode(MOMENT)
    assert TimestampSchema().decode(TimestampSchema().encode(MOMENT)) == MOMENT.replace(microsecond=678000)


def test_javas_times_have_a_day() -> None:
    assert TimeSchema().decode((MILLIS).to_bytes(8, "big")) == time(3, 4, 5, 678000)
    assert TimeSchema().decode((-1).to_bytes(8, "big", signed=True)) == time(23, 59, 59, 999000)


WRONG: dict[type[Schema[Any]], list[Any]] = {
    StringSchema: [b"x", 3, "\ud800"],
    BooleanSchema: [1, "x"],
    Int32Schema: [True, 1.0, "1"],
    DoubleSchema: [True, "1"],
    TimestampSchema: [datetime(2020, 1, 1), 5, date(2020, 1, 1)],  # noqa: DTZ001
    InstantSchema: [datetime(2020, 1, 1), 5],  # noqa: DTZ001
    TimeSchema: [time(1, tzinfo=UTC), 5],
    LocalDateSchema: [MOMENT, 5],
    LocalTimeSchema: [time(1, tzinfo=UTC), MOMENT],
    LocalDateTimeSchema: [MOMENT, date(2020, 1, 1)],
}


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in WRONG.items() for value in values])
def test_values_of_other_types(kind: type[Schema[Any]], value: Any) -> None:
    with pytest.raises(InvalidMessage, match=kind.__name__):
        kind().encode(value)


@pytest.mark.parametrize("schema", SCHEMAS, ids=[type(schema).__name__ for schema in SCHEMAS])
def test_no_value_is_none_of_theirs(schema: Schema[Any]) -> None:
    with pytest.raises(InvalidMessage, match="not NoneType"):
        schema.encode(None)


@pytest.mark.parametrize(("schema", "kind", "value", "form"), FORMS)
async def test_values_come_back_from_a_broker_that_knows_their_type(
    autojump_clock: MockClock, schema: Schema[Any], kind: str, value: Any, form: str
) -> None:
    (message,), info = await there_and_back(schema, value)
    assert (message.value(), message.data().hex(), pb.Schema.Type.Name(info.type)) == (value, form, kind)
