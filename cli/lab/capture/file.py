"""Where a new capture goes, and what an old one holds."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pulsarium.cli.refusal import RequestRefused, RunRefused

if TYPE_CHECKING:
    from pulsarium.capture.file import Record

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


def records_of(path: Path, *, follow: bool = False) -> "Iterator[tuple[int, Record]]":
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
