"""Captures of a real broker, made from the transcripts that hold each frame byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pulsarium.capture.file import CaptureRecord, CaptureWriter, EventKind, Header
from pulsarium.conformance.recordings.releases import PULSAR_4
from pulsarium.proto.commands import Direction

FOLDER = PULSAR_4.folder
_SENDERS = {"c2b": Direction.CLIENT, "b2c": Direction.BROKER}
_CLOSED = {"closed_by_broker": Direction.BROKER, "closed_by_client": Direction.CLIENT}


def complete() -> list[Path]:
    """Return the transcripts that hold all frames, so that captures can be made from them."""
    return [path for path in sorted(FOLDER.glob("*.jsonl")) if '"raw_bytes"' not in path.read_text()]


def records(path: Path) -> Iterator[CaptureRecord]:
    """Yield the frames and events of a transcript. A transcript counts milliseconds from its start."""
    numbers: dict[str, int] = {}
    for line in path.read_text().splitlines():
        said = json.loads(line)
        time = int(said.get("t", 0)) * 1_000_000
        event = said.get("event")
        if event == "tcp_open":
            numbers[said["conn"]] = max(numbers.values(), default=-1) + 1
            yield CaptureRecord(EventKind.OPENED, numbers[said["conn"]], Direction.CLIENT, time, time)
        elif event in _CLOSED:
            yield CaptureRecord(EventKind.CLOSED, numbers[said["conn"]], _CLOSED[event], time, time)
        elif "raw" in said and "dir" in said:
            for data in _frames(bytes.fromhex(said["raw"])):
                yield CaptureRecord(
                    EventKind.FRAME, numbers[said["conn"]], _SENDERS[said["dir"]], time, time, data, len(data)
                )


def _frames(data: bytes) -> Iterator[bytes]:
    """Split a line of a transcript into frames, because a TCP segment may hold several. Keep an incomplete frame."""
    while len(data) > 4 and len(data) > (stop := 4 + int.from_bytes(data[:4], "big")):
        yield data[:stop]
        data = data[stop:]
    yield data


def write(path: Path, out: Path) -> Path:
    """Write the capture of a transcript to `out`, and return `out`."""
    with out.open("wb") as file:
        writer = CaptureWriter(file.write, Header(0, "Apache Pulsar 4.2.4", metadata={"transcript": path.stem}))
        for record in records(path):
            writer.record(record)
    return out
