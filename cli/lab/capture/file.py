"""Name new captures, and read captures from a file or from a running broker."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulsarium.cli.refusal import RequestRefused, RunRefused

if TYPE_CHECKING:
    from pulsarium.capture.file import CaptureRecord, Header
    from pulsarium.cli.lab.broker import LabOf

_PIECE = 1 << 20
_POLL_SECONDS = 0.2


def capture_file(given: str, option: str) -> Path:
    """Return the file that `given` means: the file itself, or a new one in a folder.

    Raise `Refusal` without a folder.
    """
    path = Path(given)
    if given.endswith(os.sep) or path.is_dir():
        path = path / new_name()
    if not path.parent.is_dir():
        raise RequestRefused(f"{option}: {path.parent} is not a directory")
    return path.absolute()


def new_name() -> str:
    """Return a file name that no other process uses."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.pulscap"


def records_of(path: Path, *, follow: bool = False) -> Iterator[tuple[int, CaptureRecord]]:
    """Yield the records of a file, numbered from 1. With `follow`, wait for more records without end.

    Raise `Refusal` when the file cannot be read, or cannot be read to its end.
    """
    from pulsarium.capture.file import CaptureError, CaptureReader

    number = 0
    try:
        with path.open("rb") as file:
            reader = CaptureReader()
            while True:
                piece = file.read(_PIECE)
                for record in reader.feed(piece):
                    number += 1
                    yield number, record
                if not piece and not follow:
                    break
                if not piece:
                    time.sleep(_POLL_SECONDS)
                    there = path.stat()
                    if there.st_size < file.tell() or not os.path.samestat(there, os.fstat(file.fileno())):
                        raise RunRefused(f"{path}: another capture has replaced the file")
        if reader.header is None:
            raise RunRefused(f"{path}: the file is not a Pulsarium capture")
    except CaptureError as error:
        raise RunRefused(f"{path}: cannot read beyond record {number}: {error}") from None
    except OSError as error:
        raise RunRefused(f"{path}: {error.strerror or error}") from None


def header_of(path: Path) -> Header:
    """Return the header of a capture file. Raise `Refusal` when the file cannot be read."""
    from pulsarium.capture.file import CaptureError, CaptureReader

    reader = CaptureReader()
    try:
        with path.open("rb") as file:
            while reader.header is None and (piece := file.read(_PIECE)):
                next(reader.feed(piece), None)
    except CaptureError as error:
        raise RunRefused(f"{path}: {error}") from None
    except OSError as error:
        raise RunRefused(f"{path}: {error.strerror or error}") from None
    if reader.header is None:
        raise RunRefused(f"{path}: the file is not a Pulsarium capture")
    return reader.header


def pieces_of(lab: LabOf, capture: int, *, follow: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yield a capture of the broker in pieces: first the head, then records.

    Each piece comes with the number of its first record. With `follow`, wait for more records without end.
    """
    from pulsarium.capture.file import MAGIC, CaptureReader

    after, begun = 0, False
    while True:
        reply = lab.reply("GET", f"captures/{capture}/records", after=after)
        first = int(reply.headers["x-pulsarium-first"])
        start = len(MAGIC) + 8 + int.from_bytes(reply.body[len(MAGIC) : len(MAGIC) + 4], "big")
        if not begun:
            yield 0, reply.body[:start]
            begun = True
        count = sum(1 for _ in CaptureReader().feed(reply.body))
        if count:
            if first > after + 1:
                click.echo(f"{first - after - 1} records are lost: they came faster than they were read", err=True)
            yield first, reply.body[start:]
            after = first + count - 1
        elif follow:
            time.sleep(_POLL_SECONDS)
        else:
            return


def records_now(lab: LabOf) -> Iterator[tuple[int, CaptureRecord]]:
    """Yield the records of a new capture, which ends with the generator."""
    from pulsarium.capture.file import CaptureError, CaptureReader

    capture = lab.call("POST", "captures", {})["id"]
    reader = CaptureReader()
    try:
        for first, piece in pieces_of(lab, capture, follow=True):
            yield from enumerate(reader.feed(piece), first)
    except CaptureError as error:
        raise RunRefused(f"capture {capture} cannot be read: {error}") from None
    finally:
        lab.call("DELETE", f"captures/{capture}")
