"""A capture of each cell, by the broker's lab."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pulsarium.capture.file import CaptureError, CaptureReader, Kind
from pulsarium.capture.lint.frames import Conversation
from pulsarium.matrix.rest import call
from pulsarium.proto.entry import visible_metadata
from pulsarium.proto.generated.PulsarApi_pb2 import CompressionType

KEPT = 256
"""Bytes of each entry that a capture keeps."""


@contextmanager
def capturing(admin_url: str, path: Path, token: str) -> Iterator[None]:
    """Records what the broker hears and says meanwhile in `path`; nothing where it has no lab."""
    try:
        started = call(admin_url, "POST", "/lab/captures", {"path": str(path), "keepEntry": KEPT}, token=token)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            call(admin_url, "DELETE", f"/lab/captures/{started['id']}", token=token)


def compressions(path: Path) -> set[str]:
    """With what a capture's messages were compressed when they were sent: "lz4", or "none"."""
    found = set()
    reader, conversation = CaptureReader(), Conversation()
    with suppress(CaptureError):
        for record in reader.feed(path.read_bytes()):
            if record.kind is Kind.FRAME and (frame := conversation.feed(record)).name == "SEND":
                metadata = visible_metadata(frame.entry)
                found.add("" if metadata is None else CompressionType.Name(metadata.compression).lower())
    return found - {""}
