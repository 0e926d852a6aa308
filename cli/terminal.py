"""Write to a terminal: names and messages of clients are escaped there, so that they cannot steer the terminal.

Pipes and files receive every byte unchanged. The commands print as usual: `guard` puts the escaping into stdout and
stderr. Only the colors of `styled` and the lines of `progress` pass it.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import AbstractContextManager
from typing import Any, Final, TextIO

import click

from pulsarium.proto.text import printable

_LAYOUT: Final = "\n\t"  # what a terminal receives unchanged beside printable characters
# Only this process knows the number, so that no client can write a color of its own.
_OWN_ESCAPE: Final = f"\x1b{os.urandom(8).hex()}"


class Terminal(io.TextIOBase):
    """A stream in front of a terminal that escapes unprintable characters."""

    def __init__(self, terminal: TextIO) -> None:
        self.terminal = terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.terminal.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.terminal.errors

    def write(self, text: str) -> int:
        own = text.split(_OWN_ESCAPE)
        self.terminal.write("\x1b".join(printable(part, keep=_LAYOUT) for part in own))
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.terminal.fileno()

    def flush(self) -> None:
        self.terminal.flush()


def answers() -> bool:
    """Return whether a person at a terminal can answer a question."""
    return sys.stdin.isatty()


def guard() -> None:
    """Escape what this process writes to terminals from now on."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def _guarded(stream: TextIO) -> TextIO:
    if isinstance(stream, Terminal) or not stream.isatty():
        return stream
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # for terminals without Unicode
    return Terminal(stream)  # type: ignore[return-value]


def unguarded(stream: TextIO) -> TextIO:
    """Return the stream without the escaping."""
    return stream.terminal if isinstance(stream, Terminal) else stream


def styled(text: str, **style: Any) -> str:
    """Return the text with its unprintable characters escaped, and the colors of `click.style`.

    The text has no colors where the environment has NO_COLOR, and click removes them in front of a pipe or a file.
    """
    if os.environ.get("NO_COLOR"):
        return printable(text)
    colored = click.style(printable(text), **style)
    return colored.replace("\x1b", _OWN_ESCAPE) if isinstance(sys.stdout, Terminal) else colored


def progress(length: int, label: str, stream: TextIO, **settings: Any) -> AbstractContextManager[Any]:
    """Return click's progress bar on the stream."""
    return click.progressbar(length=length, label=printable(label), file=unguarded(stream), **settings)


def replace_screen(text: str) -> None:
    """Write the text over the screen of the terminal at stdout. Elsewhere, write the text behind the former one."""
    if not isinstance(sys.stdout, Terminal):
        click.echo(text)
        return
    lines = f"{text}\n".replace("\n", f"{_OWN_ESCAPE}[K\n")
    click.echo(f"{_OWN_ESCAPE}[H{lines}{_OWN_ESCAPE}[J", nl=False)
