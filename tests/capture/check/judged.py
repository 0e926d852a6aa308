"""Judge histories and capture files by the promises of Pulsar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pulsarium.capture.check.checker import tally_of
from pulsarium.capture.check.judges import Assumptions
from pulsarium.capture.check.verdict import Tally
from pulsarium.capture.file import CaptureReader, CaptureRecord
from pulsarium.capture.lint.checker import all_opened


def judged(some: Iterable[CaptureRecord], *, nothing_unseen: bool = False, whole: bool = True) -> Tally:
    return tally_of(enumerate(some, 1), Assumptions(whole=whole, nothing_unseen=nothing_unseen))


def judged_file(path: Path) -> Tally:
    """Return the tally of a capture file."""
    return judged(_records(path), whole=all_opened(_records(path)))


def _records(path: Path) -> Iterator[CaptureRecord]:
    reader = CaptureReader()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield from reader.feed(piece)
