"""Values of every schema, in the forms of our client, the official Python client and the Java program."""

from __future__ import annotations

import base64
import dataclasses
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from google.protobuf.api_pb2 import Api
from google.protobuf.source_context_pb2 import SourceContext
from pulsar import schema as official

from pulsarium.client import (
    AvroFloat,
    AvroInt,
    AvroSchema,
    BooleanSchema,
    BytesSchema,
    DateSchema,
    DoubleSchema,
    FloatSchema,
    InstantSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    JsonSchema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    ProtobufNativeSchema,
    Schema,
    StringSchema,
    TimeSchema,
    TimestampSchema,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Home:
    street: str | None = None
    number: AvroInt | None = None


@dataclass
class Order:
    name: str | None = None
    count: AvroInt = 0
    total: int = 0
    weight: AvroFloat = 0.0
    price: float = 0.0
    paid: bool = False
    note: str | None = None
    color: Color | None = None
    tags: list[str] | None = None
    counts: dict[str, AvroInt] | None = None
    home: Home | None = None


@dataclass
class More:
    data: bytes | None = None
    at: datetime | None = None
    homes: list[Home] | None = None
    byName: dict[str, Home] | None = None  # noqa: N815  # the field's name in Java
    rows: list[list[int]] | None = None
    none: Home | None = None


@dataclass
class Moment:
    at: datetime | None


@dataclass
class User:
    name: str | None
    age: AvroInt


@dataclass
class NewerUser(User):
    email: str | None = None


NewerUser.__name__ = "User"


class TheirHome(official.Record):  # type: ignore[misc]
    street = official.String()
    number = official.Integer()


TheirHome.__name__ = "Home"


class TheirOrder(official.Record):  # type: ignore[misc]
    name = official.String()
    count = official.Integer(required=True)
    total = official.Long(required=True)
    weight = official.Float(required=True)
    price = official.Double(required=True)
    paid = official.Boolean(required=True)
    note = official.String()
    color = official.CustomEnum(Color)
    tags = official.Array(official.String())
    counts = official.Map(official.Integer())
    home = TheirHome()


TheirOrder.__name__ = "Order"

ORDERS = (
    Order("Ada Ä", 2**31 - 1, -(2**63), 55.5, 0.1, True, "x", Color.BLUE, ["a", ""], {"ключ": -1}, Home("x", 3)),
    Order(home=Home(), tags=[], counts={}),
)
MORES = (
    More(
        bytes(range(256)),
        EPOCH + timedelta(days=20_000, milliseconds=123),
        [Home("a", 1), Home()],
        {"a": Home("b", -2)},
        [[1, 2**40], []],
        Home("there"),
    ),
    More(b"", EPOCH - MILLISECOND),
    More(),
)


def plain(value: Any) -> Any:
    """Return a value of our client in the form that the Java program prints."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime, time)):
        digits = "auto" if value.microsecond % 1000 or not value.microsecond else "milliseconds"
        return value.isoformat(timespec=digits).replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.name
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, KeyValue)) else value


def milliseconds(value: datetime) -> int:
    return (value - EPOCH) // MILLISECOND


def milliseconds_of_day(value: time) -> int:
    return milliseconds(datetime.combine(EPOCH, value, UTC))


def their_order(order: Order) -> Any:
    fields = {field.name: getattr(order, field.name) for field in dataclasses.fields(order)}
    return TheirOrder(**fields | {"home": TheirHome(**vars(order.home))})


def order_of(theirs: Any) -> Order:
    fields = {field.name: getattr(theirs, field.name) for field in dataclasses.fields(Order)}
    return Order(**fields | {"home": Home(theirs.home.street, theirs.home.number)})


def plain_json(value: More) -> Any:
    """Return the value in the Java program's form, but with its time as a number, as the JSON schema defines it."""
    return plain(value) | {"at": None if value.at is None else milliseconds(value.at)}


class Official(NamedTuple):
    """A schema of the official Python client, and conversions between that client's values and ours."""

    schema: Any
    theirs: Callable[[Any], Any] = lambda value: value
    ours: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True)
class Kind:
    """A schema of our client, and some of its values."""

    schema: Schema[Any]
    values: tuple[Any, ...]
    plain: Callable[[Any], Any] = plain
    large: Callable[[str], Any] | None = None
    """Function that returns a value with the given text in it."""
    official: Official | None = None


def api(name: str) -> Api:
    """Return a Protobuf message whose .proto file imports others."""
    return Api(name=name, source_context=SourceContext(file_name="of it"))


MOMENTS = (
    datetime(2024, 2, 29, 23, 59, 58, 987_000, UTC),
    EPOCH - MILLISECOND,
    EPOCH,
)
TIMES = (time(), time(10, 11, 12, 345_000), time(23, 59, 59, 999_000))
EXACT_TIMES = (time(10, 11, 12, 345_678), time(23, 59, 59, 999_999))

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "bytes": Kind(
            BytesSchema(), (bytes(range(256)), b""), large=str.encode, official=Official(official.BytesSchema())
        ),
        "string": Kind(StringSchema(), ("grüße", "", "🐢"), large=str, official=Official(official.StringSchema())),
        "int8": Kind(Int8Schema(), (-(2**7), 0, 2**7 - 1)),
        "int16": Kind(Int16Schema(), (-(2**15), 0, 2**15 - 1)),
        "int32": Kind(Int32Schema(), (-(2**31), 0, 2**31 - 1)),
        "int64": Kind(Int64Schema(), (-(2**63), 0, 2**63 - 1)),
        "float": Kind(FloatSchema(), (1.5, -0.25, 16_777_216.0)),
        "double": Kind(DoubleSchema(), (0.1, 5e-324, -1.7976931348623157e308)),
        "boolean": Kind(BooleanSchema(), (True, False)),
        "date": Kind(DateSchema(), MOMENTS, milliseconds),
        "time": Kind(TimeSchema(), TIMES, milliseconds_of_day),
        "timestamp": Kind(TimestampSchema(), MOMENTS, milliseconds),
        "instant": Kind(InstantSchema(), (*MOMENTS[:2], EPOCH - timedelta(microseconds=1))),
        "local-date": Kind(LocalDateSchema(), (date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31))),
        "local-time": Kind(LocalTimeSchema(), EXACT_TIMES),
        "local-date-time": Kind(
            LocalDateTimeSchema(), tuple(datetime.combine(date(1969, 12, 31), one) for one in EXACT_TIMES)
        ),
        "avro-order": Kind(
            AvroSchema(Order),
            ORDERS,
            large=lambda text: dataclasses.replace(ORDERS[0], note=text),
            official=Official(official.AvroSchema(TheirOrder), their_order, order_of),
        ),
        "json-order": Kind(
            JsonSchema(Order),
            ORDERS,
            large=lambda text: dataclasses.replace(ORDERS[0], note=text),
            official=Official(official.JsonSchema(TheirOrder), their_order, order_of),
        ),
        "avro-more": Kind(AvroSchema(More), MORES),
        "json-more": Kind(JsonSchema(More), MORES, plain_json),
        "json-moment": Kind(JsonSchema(Moment), tuple(map(Moment, MOMENTS))),
        **{
            f"{kind}-{encoding.value.lower()}": Kind(KeyValueSchema(key, value, encoding), values)
            for encoding in KeyValueEncodingType
            for kind, key, value, values in (
                ("pairs", StringSchema(), Int32Schema(), (KeyValue("ключ", -1), KeyValue("", 2**31 - 1))),
                (
                    "record-pairs",
                    AvroSchema(Home),
                    JsonSchema(Home),
                    (KeyValue(Home("a", 1), Home("b", -2)), KeyValue(Home(), Home())),
                ),
            )
        },
        "protobuf-native": Kind(
            ProtobufNativeSchema(Api), tuple(map(api, ("grüße", "🐢"))), plain=lambda value: value.name
        ),
        "avro-user-1": Kind(AvroSchema(User), (User("Ada", 36), User(None, -1))),
        "json-user-1": Kind(JsonSchema(User), (User("Ada", 36), User(None, -1))),
        "avro-user-2": Kind(AvroSchema(NewerUser), (NewerUser("Ada", 36, "a@x"), NewerUser(None, -1))),
        "json-user-2": Kind(JsonSchema(NewerUser), (NewerUser("Ada", 36, "a@x"), NewerUser(None, -1))),
    }
)
MIXED = ("bytes", "string", "avro-order", "json-order")
"""Kinds that the official Python client has too, and whose values may be large."""
VERSIONED = tuple(name for name in KINDS if "-user-" in name)
