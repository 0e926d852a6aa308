"""Convert one capture file to rows of tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from pulsarium.capture.file import CaptureError, CaptureReader, CaptureRecord
from pulsarium.capture.lint.checker import Checker, RecordFindings, Walk, all_opened
from pulsarium.capture.lint.exchanges import LintedExchange
from pulsarium.capture.lint.frames import Conversation, Frame
from pulsarium.capture.lint.rule import Violation
from pulsarium.proto.commands import Direction
from pulsarium.proto.numbers import signed

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

TABLES = {"frames": FRAMES, "exchanges": EXCHANGES, "violations": VIOLATIONS}
"""Columns of each table."""

Row = tuple[Any, ...]
_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_ROWS = 10_000


def batches(found: Iterable[tuple[str, Row]]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield Arrow batches of each table's rows, with the table's name. Times are microseconds since the epoch."""
    waiting: dict[str, list[Row]] = {name: [] for name in TABLES}
    for name, row in found:
        mine = waiting[name]
        mine.append(row)
        if len(mine) >= _ROWS:
            yield name, _batch(name, mine)
            mine.clear()
    for name, rest in waiting.items():
        if rest:
            yield name, _batch(name, rest)


def _batch(name: str, rows: list[Row]) -> pa.RecordBatch:
    schema = arrow_schema(TABLES[name])
    columns = [pa.array(values, each.type) for values, each in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def arrow_schema(schema: str) -> pa.Schema:
    """Return one of the schemas above as an Arrow schema."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in (column.split() for column in schema.split(", "))])


_PIECE = 1 << 20
_DIRECTIONS = {Direction.CLIENT: "client->broker", Direction.BROKER: "broker->client"}
UNKNOWN = "unknown"
"""Client name of a connection whose CONNECT is not in the capture."""


def everything(path: str) -> Iterator[tuple[str, Row]]:
    """Yield the rows of all tables of a file, with the name of the table.

    There is a row for each frame, each request and each broken rule, and at last for the requests that stayed
    unanswered. In a damaged file, the last row of `frames` describes the damage.
    """
    name = PurePath(path).stem
    walk, damage = Walk(judging=True, whole=all_opened(_records(path))), ""
    try:
        for record in _records(path):
            yield from _rows(name, *walk.feed(record))
    except CaptureError as error:
        damage = f"the rest of the file cannot be read: {error}"
    for checker, seen in walk.end():
        yield from _rows(name, checker, seen)
    if damage:
        yield "frames", (name, None, None, UNKNOWN, *(None,) * 15, damage, None)


def _rows(name: str, checker: Checker, seen: RecordFindings) -> Iterator[tuple[str, Row]]:
    talk = checker.conversation
    if seen.frame is not None:
        yield "frames", _frame(_where(name, seen.frame, talk), seen.frame)
    for exchange in seen.exchanges:
        yield "exchanges", _exchange(_where(name, exchange.request, talk), exchange)
    for violation in seen.violations:
        yield "violations", _violation(_where(name, violation.frame, talk), violation)


def _records(path: str) -> Iterator[CaptureRecord]:
    reader = CaptureReader()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            yield from reader.feed(piece)


def _where(capture: str, frame: Frame, talk: Conversation) -> Row:
    record = frame.record
    who = (talk.client or UNKNOWN, talk.client_version, talk.protocol_version)
    return (capture, _signed(record.connection), frame.number, *who, record.wall_ns // 1000)


def _ids(frame: Frame) -> Row:
    producer, consumer = _signed(frame.producer_id), _signed(frame.consumer_id)
    return _signed(frame.request_id), producer, consumer, _signed(frame.sequence_id), frame.topic


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


def _exchange(where: Row, exchange: LintedExchange) -> Row:
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
    """Return the number as signed, as Java shows it."""
    return number if number is None else signed(number)
