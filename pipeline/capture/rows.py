"""Convert one capture file to rows. Spark's workers run this module, which imports no Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from pulsarium.capture.file import CaptureError, CaptureReader, Record
from pulsarium.capture.lint.checker import Checker, Seen, Walk, all_opened
from pulsarium.capture.lint.exchanges import Exchange
from pulsarium.capture.lint.frames import Conversation, Frame
from pulsarium.capture.lint.rule import Violation
from pulsarium.proto.commands import Direction

_WHO = "client string, client_version string, protocol_version int"
_WHERE = f"capture string, connection bigint, number bigint, {_WHO}, time timestamp"
_IDS = "request_id bigint, producer_id bigint, consumer_id bigint, sequence_id bigint, topic string"

FRAMES = (
    f"{_WHERE}, direction string, monotonic_ns bigint, command string, {_IDS}, size bigint, entry_size bigint, "
    "error string, error_message string, broken string, note string"
)
EXCHANGES = (
    f"{_WHERE}, direction string, command string, {_IDS}, answer string, outcome string, error_message string, "
    "latency_us double"
)
VIOLATIONS = (
    f"{_WHERE}, side string, rule string, command string, topic string, detail string, demands string, reference string"
)

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_ROWS = 10_000


def batches(schema: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Yield Arrow batches of rows whose times are microseconds since the epoch."""
    arrow = arrow_schema(schema)
    left = iter(rows)
    while chunk := list(islice(left, _ROWS)):
        columns = [pa.array(values, each.type) for values, each in zip(zip(*chunk, strict=True), arrow, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow)


def arrow_schema(schema: str) -> pa.Schema:
    """Return one of the schemas above as an Arrow schema."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in (column.split() for column in schema.split(", "))])


Row = tuple[Any, ...]
_PIECE = 1 << 20
_DIRECTIONS = {Direction.CLIENT: "client->broker", Direction.BROKER: "broker->client"}
UNKNOWN = "unknown"
"""Client name of a connection whose CONNECT is not in the capture."""


def frames(path: str, capture: str | None = None) -> Iterator[Row]:
    """Yield a row for each frame of a file.

    In a damaged file the last row describes the damage. `capture` is the capture's name in the rows; the default is the
    file's name.
    """
    name = capture or PurePath(path).stem
    try:
        for checker, seen in _walk(path):
            if seen.frame is not None:
                yield _frame(_where(name, seen.frame, checker.conversation), seen.frame)
    except CaptureError as error:
        where = (name, None, None, UNKNOWN, None, None, None)
        yield (*where, *(None,) * 12, f"the rest of the file cannot be read: {error}", None)


def exchanges(path: str, capture: str | None = None) -> Iterator[Row]:
    """Yield a row for each request."""
    yield from _each(path, capture, lambda seen: seen.exchanges, lambda exchange: exchange.request, _exchange)


def violations(path: str, capture: str | None = None) -> Iterator[Row]:
    """Yield a row for each broken rule."""
    yield from _each(path, capture, lambda seen: seen.violations, lambda violation: violation.frame, _violation)


def _each(
    path: str,
    capture: str | None,
    pick: Callable[[Seen], list[Any]],
    frame_of: Callable[[Any], Frame],
    read: Callable[[Row, Any], Row],
) -> Iterator[Row]:
    name = capture or PurePath(path).stem
    try:
        for checker, seen in _walk(path, judging=read is _violation):
            for each in pick(seen):
                yield read(_where(name, frame_of(each), checker.conversation), each)
    except CaptureError:
        return  # a row of `frames` reports the damage


def _walk(path: str, *, judging: bool = False) -> Iterator[tuple[Checker, Seen]]:
    """Yield the findings of each record of a file, and at last those of the requests that stayed unanswered.

    In a damaged file all findings before the damage come first. Then `CaptureError` is raised.
    """
    damage: CaptureError | None = None
    walk = Walk(judging=judging)
    try:
        if judging:
            walk = Walk(judging=True, whole=all_opened(_records(path)))
        for record in _records(path):
            yield walk.feed(record)
    except CaptureError as error:
        damage = error
    yield from walk.end()
    if damage is not None:
        raise damage


def _records(path: str) -> Iterator[Record]:
    reader = CaptureReader()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            yield from reader.feed(piece)


def _where(capture: str, frame: Frame, talk: Conversation) -> Row:
    record = frame.record
    who = (talk.client or UNKNOWN, talk.client_version, talk.protocol_version)
    return (capture, _signed(record.connection), frame.number, *who, record.wall_ns // 1000)


def _ids(frame: Frame) -> Row:
    numbers = (frame.request_id, frame.producer_id, frame.consumer_id, frame.sequence_id)
    return (*(_signed(number) for number in numbers), frame.topic)


def _frame(where: Row, frame: Frame) -> Row:
    record = frame.record
    return (
        *where,
        _DIRECTIONS[frame.sender],
        record.monotonic_ns,
        frame.name or None,
        *_ids(frame),
        record.size,
        frame.entry_size,
        frame.error,
        frame.error_message,
        frame.broken,
        json.dumps(dict(record.note)) if record.note else None,
    )


def _exchange(where: Row, exchange: Exchange) -> Row:
    request, answer = exchange.request, exchange.answer
    return (
        *where,
        _DIRECTIONS[request.sender],
        request.name,
        *_ids(request),
        answer.name if answer else None,
        exchange.outcome,
        answer.error_message if answer else None,
        exchange.latency_us,
    )


def _violation(where: Row, violation: Violation) -> Row:
    frame, rule = violation.frame, violation.rule
    side = violation.side.value
    return (*where, side, rule.name, frame.name or None, frame.topic, violation.detail, rule.demands, rule.reference)


def _signed(number: int | None) -> int | None:
    """Return the number as signed, as Java shows it, because Spark has no unsigned numbers."""
    return number if number is None or number < 2**63 else number - 2**64
