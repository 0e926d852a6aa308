"""What passes on a running broker, now."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from pulsarium.cli.lab.broker import LabOf
from pulsarium.cli.refusal import RunRefused

if TYPE_CHECKING:
    from pulsarium.capture.file import Record

_POLL_SECONDS = 0.2


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


def records_now(lab: LabOf) -> "Iterator[tuple[int, Record]]":
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
