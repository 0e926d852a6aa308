"""Write small captures, and pick columns from their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pulsarium.capture.file import CaptureWriter, Header
from pulsarium.pipeline.capture.rows import Row, everything
from tests.capture.lint.planted import conforming, plant
from tests.capture.lint.talk import CLIENT, TOPIC, Talk


def write(path: Path, talks: Iterable[Talk]) -> Path:
    """Write a capture of the connections, one after the other, and return its path."""
    with path.open("wb") as file:
        writer = CaptureWriter(file.write, Header(0))
        for talk in talks:
            for record in talk.records:
                writer.record(record)
    return path


def small() -> Talk:
    """Return a connection with a refused SEND, an unanswered LOOKUP and an unreadable frame."""
    talk = Talk()
    talk.greet()
    talk.produce()
    talk.send(0)
    talk.send(1, receipt=False)
    talk.broker("SEND_ERROR", producer_id=1, sequence_id=1, error=9, message="does not fit")
    talk.client("LOOKUP", topic=TOPIC, request_id=2**64 - 2)
    talk.raw(CLIENT, b"\x00\x00\x00\x01\x00")
    return talk


def with_a_fault(name: str) -> list[Talk]:
    """Return a legal connection, and a connection that breaks the rule `name`."""
    good = Talk(1)
    conforming(good)
    good.close()
    return [good, plant(name, Talk(2))]


def columns(schema: str) -> list[str]:
    """Return the names of the columns in the schema of a table."""
    return [column.split()[0] for column in schema.split(", ")]


def picked(schema: str, found: Iterable[tuple[Any, ...]], names: str) -> list[tuple[Any, ...]]:
    """Return the columns `names` of each row, in the order of `names`."""
    at = [columns(schema).index(name) for name in names.split()]
    return [tuple(row[each] for each in at) for row in found]


def _rows(name: str, path: str) -> Iterator[Row]:
    return (row for table, row in everything(path) if table == name)


frames = partial(_rows, "frames")
exchanges = partial(_rows, "exchanges")
violations = partial(_rows, "violations")
"""Return the rows of one table of a capture. The functions above do the same for their tables."""
