"""Recorded frames that the tests of this folder share."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

VECTORS = Path(__file__).parent / "vectors"


class Golden(NamedTuple):
    """A recorded frame. `kind` is the frame's type and, for an entry, its properties (see frames.txt)."""

    kind: str
    transcript: str
    frame: bytes

    @property
    def type_name(self) -> str:
        return self.kind.split("/")[0]

    @property
    def traits(self) -> set[str]:
        return set(self.kind.split("/")[1:])


def golden_frames() -> list[Golden]:
    lines = (VECTORS / "frames.txt").read_text().splitlines()
    columns = (line.split() for line in lines if not line.startswith("#"))
    return [Golden(kind, transcript, bytes.fromhex(frame)) for kind, transcript, frame in columns]


def golden_entries() -> list[Golden]:
    """Return the recorded SENDs and MESSAGEs, each with only its entry as `frame`."""
    return [
        golden._replace(frame=golden.frame[8 + int.from_bytes(golden.frame[4:8], "big") :])
        for golden in golden_frames()
        if golden.type_name in ("SEND", "MESSAGE")
    ]
