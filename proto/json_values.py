"""Encode values of JSON by the schema of a topic, and read JSON so that an error names its place."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from pulsarium.proto.avro import AvroCodec, expected, utf8
from pulsarium.proto.errors import Misfit

WHOLE: Final[Mapping[str, str]] = {
    "INT8": ">b",
    "INT16": ">h",
    "INT32": ">i",
    **dict.fromkeys(("INT64", "DATE", "TIME", "TIMESTAMP", "LOCAL_DATE", "LOCAL_TIME"), ">q"),
}
"""The types of whole numbers. Times are numbers, as in Java: of milliseconds, of days or of nanoseconds."""
FRACTIONS: Final[Mapping[str, str]] = {"FLOAT": ">f", "DOUBLE": ">d"}
INSTANT: Final = struct.Struct(">qi")
LOCAL_DATE_TIME: Final = struct.Struct(">qq")
MOST_SCHEMA: Final = 1 << 18  # bytes of a schema, which is parsed at once
SCHEMAS: Final = 8  # that are remembered after they were parsed

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # of local times, which have no zone
_DAY_NS: Final = 86_400 * 10**9
_BETWEEN: Final = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')


def read_json(text: str) -> Any:
    """Return the value of a text. Raise json.JSONDecodeError, which names line and column."""
    try:
        return json.loads(text)
    except RecursionError:
        raise Misfit("it is nested too deeply") from None


def compact(text: str) -> str:
    """Return JSON without the white space between its values. Numbers stay as they are written."""
    return _BETWEEN.sub(lambda found: found[1] or "", text)


def encode_json(kind: str, definition: bytes, value: Any) -> bytes:
    """Return the payload of a value, for any type of schema except KEY_VALUE.

    Raise `Misfit`, which names the place in the value, or ValueError for a schema that cannot be used.
    """
    if len(definition) > MOST_SCHEMA:
        raise ValueError(f"the schema has {len(definition)} bytes, more than {MOST_SCHEMA}")
    match kind:
        case "AVRO":
            return avro_codec(definition).encode(value)
        case "JSON":
            avro_codec(definition).check_json(value)
            return _dumped(value)
        case "PROTOBUF_NATIVE":
            from pulsarium.proto.protobuf_native import from_json

            return from_json(protobuf_class(definition), value)
        case "STRING":
            return _text(value)
        case "BOOLEAN":
            if not isinstance(value, bool):
                raise expected("true or false", value)
            return bytes([value])
        case "INSTANT":
            return _instant(value)
        case "LOCAL_DATE_TIME":
            return _local(value)
        case "BYTES" | "NONE":
            return _text(value) if isinstance(value, str) else _dumped(value)
    if kind in WHOLE:
        return _whole(kind, value)
    if kind in FRACTIONS:
        return _fraction(kind, value)
    raise ValueError(f"Pulsarium cannot write a value of type {kind} from JSON; publish its bytes")


def joined_pair(key: bytes | None, value: bytes | None) -> bytes:
    """Return the payload of a pair of INLINE encoding: each half behind its length, which is -1 for no half."""
    return b"".join(struct.pack(">i", -1 if half is None else len(half)) + (half or b"") for half in (key, value))


@lru_cache(maxsize=SCHEMAS)
def avro_codec(definition: bytes) -> AvroCodec:
    """Return the codec of a definition. Raise ValueError for bytes that are no Avro definition."""
    try:
        return AvroCodec(json.loads(definition))
    except RecursionError:
        raise ValueError("the schema is nested too deeply") from None


@lru_cache(maxsize=SCHEMAS)
def protobuf_class(definition: bytes) -> Any:
    """Return the class of the messages of a definition. Raise ValueError for bytes that are no definition."""
    from pulsarium.proto.protobuf_native import message_class

    return message_class(definition)


def _dumped(value: Any) -> bytes:
    return utf8(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise expected("a string", value)
    return utf8(value)


def _whole(kind: str, value: Any) -> bytes:
    form = struct.Struct(WHOLE[kind])
    most = 2 ** (8 * form.size - 1)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -most <= value < most:
        raise expected(f"a whole number from {-most} to {most - 1}", value)
    return form.pack(value)


def _fraction(kind: str, value: Any) -> bytes:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise expected("a number", value)
    try:
        return struct.pack(FRACTIONS[kind], value)
    except (OverflowError, struct.error):
        raise Misfit(f"{value} is too large for {kind}") from None


def _moment(value: Any, example: str) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise expected(f"a time such as {example}", value) from None


def _instant(value: Any) -> bytes:
    moment = _moment(value, "2026-01-31T12:00:00Z")
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH.replace(tzinfo=UTC)
    seconds, rest = divmod(since, timedelta(seconds=1))
    return INSTANT.pack(seconds, rest.microseconds * 1000)


def _local(value: Any) -> bytes:
    days, rest = divmod(_moment(value, "2026-01-31T12:00:00").replace(tzinfo=None) - _EPOCH, timedelta(days=1))
    return LOCAL_DATE_TIME.pack(days, rest // timedelta(microseconds=1) * 1000)


def instant_of(data: bytes) -> str:
    """Return an INSTANT as text. Raise ValueError for other bytes."""
    seconds, nanoseconds = _unpacked(INSTANT, data)
    return _shown(seconds * 10**9 + nanoseconds) + "Z"


def local_date_time_of(data: bytes) -> str:
    """Return a LOCAL_DATE_TIME as text. Raise ValueError for other bytes."""
    days, nanoseconds = _unpacked(LOCAL_DATE_TIME, data)
    return _shown(days * _DAY_NS + nanoseconds)


def _unpacked(form: struct.Struct, data: bytes) -> tuple[int, int]:
    try:
        first, second = form.unpack(data)
    except struct.error as error:
        raise ValueError(str(error)) from None
    return first, second


def _shown(nanoseconds: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=nanoseconds // 1000)).isoformat()
    except OverflowError:
        raise ValueError(f"{nanoseconds} ns since 1970 are outside the years that Python supports") from None
