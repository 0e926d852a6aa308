"""The captures of scripts/bench analyze."""

from __future__ import annotations

from pathlib import Path

from bench.analyze import write
from pulsarium.capture.file import CaptureReader, Kind, Record
from pulsarium.proto.commands import Direction


def test_a_capture_repeats_the_events_on_new_connections_until_it_has_enough_frames(tmp_path: Path) -> None:
    kinds = [(Kind.OPENED, 0), (Kind.OPENED, 2), (Kind.FRAME, 0), (Kind.FRAME, 2), (Kind.CLOSED, 0)]
    events = [Record(kind, connection, Direction.CLIENT, 1, 1) for kind, connection in kinds]
    path = tmp_path / "repeated.pulscap"
    write(path, events, 5)
    found = [*CaptureReader().feed(path.read_bytes())]
    frames = [record.connection for record in found if record.kind is Kind.FRAME]
    assert frames == [0, 2, 3, 5, 6, 8]
    assert len(found) == 3 * len(events)
