"""Read captures and write reports, for the linter and for the history checker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from pulsarium.cli.refusal import RequestRefused, RunRefused

BROKEN = 1
"""Exit code when a rule or a promise was broken."""


@contextmanager
def judging() -> Iterator[None]:
    """Raise `RequestRefused` (exit code 2) for every error, because exit code 1 means that a rule was broken."""
    try:
        yield
    except click.ClickException as refusal:
        raise RequestRefused(refusal.message) from None


def files_of(captures: Sequence[Path]) -> Iterator[Path]:
    """Yield the capture files that are named, or that are in the folders that are named."""
    from pulsarium.capture.file import SUFFIX

    for path in captures:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(path.rglob(f"*{SUFFIX}"))
        if not inside:
            raise RequestRefused(f"{path}: the folder has no file that ends with {SUFFIX}")
        yield from inside


def write_report(text: str, out: Path | None) -> None:
    """Print a report, or write it to a file."""
    if out is None:
        click.echo(text)
        return
    try:
        out.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise RunRefused(f"{out}: {error.strerror or error}") from None
