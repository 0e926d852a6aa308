"""Where a new capture goes, what an old one holds, and what passes on a running broker now."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulsarium.cli.refusal import RequestRefused, RunRefused

if TYPE_CHECKING:
    from pulsarium.capture.file import Record
    from pulsarium.cli.lab.broker import LabOf

_PIECE = 1 << 20
_POLL_SECONDS = 0.2


def capture_file(given: str, option: str) -> Path:
    """Return the file that `given` means: itself, or a new one in the folder that it names. Raises Refusal."""
    path = Path(given)
    if given.endswith(os.sep) or path.is_dir():
        path = path / new_name()
    if not path.parent.is_dir():
        raise RequestRefused(f"{option}: {path.parent} is not a directory")
    return path.absolute()


def new_name() -> str:
    """Return the name of a file that nobody else writes."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.pulscap"


def records_of(path: Path, *, follow: bool = False) -> Iterator[tuple[int, Record]]:
    """The records of a file, numbered from 1 on; with `follow` also those that are still to come, for ever.

    Refusal: the file cannot be read, or not on.
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
                        raise RunRefused(f"{path}: another capture was begun there")
        if reader.header is None:
            raise RunRefused(f"{path}: not a capture of Pulsarium")
    except CaptureError as error:
        raise RunRefused(f"{path}: cannot be read on after record {number}: {error}") from None
    except OSError as error:
        raise RunRefused(f"{path}: {error.strerror or error}") from None


def pieces_of(lab: LabOf, capture: int, *, follow: bool = False) -> Iterator[tuple[int, bytes]]:
    """What a capture of the broker holds, as a capture file has it: the head first, then some records at a time, each
    time with the number of the first; with `follow` also those that are still to come."""
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


def records_now(lab: LabOf) -> Iterator[tuple[int, Record]]:
    """The records of a capture that runs as long as somebody wants more of them."""
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
