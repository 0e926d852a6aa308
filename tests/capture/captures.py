"""Write small captures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pulsarium.capture.file import CaptureWriter, Header
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
