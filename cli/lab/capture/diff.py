"""`pulsarium capture diff`: compare two captures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulsarium.cli.lab.capture.file import records_of
from pulsarium.cli.terminal import styled
from pulsarium.proto.text import printable

if TYPE_CHECKING:
    from pulsarium.capture.diff import Change, Difference, Step, Talk
    from pulsarium.capture.file import CaptureRecord

FILE = click.Path(dir_okay=False, path_type=Path)
_MOST_STEPS = 20  # shown for one change


@click.command()
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@click.option(
    "--ignore", multiple=True, metavar="NAME", help="Ignore a command such as FLOW; PING and PONG are always ignored."
)
@click.option("--texts", is_flag=True, help="Compare the texts of errors too, not only their codes.")
def diff(old: Path, new: Path, ignore: Sequence[str], texts: bool) -> None:
    """Show the differences between two captures. The exit code is 1 when there are any.

    The command pairs connections by their frames. On each connection it compares the client's requests with their
    answers, and the broker's own commands, in order for each producer and consumer. It ignores times, sizes, request
    ids, versions of clients and brokers, URLs, credentials and message contents. Ledger ids, and names that only one
    capture has, such as those of random topics, are numbered in order of appearance.

    \b
      pulsarium capture diff real.pulscap ours.pulscap
      pulsarium capture diff before.pulscap after.pulscap --ignore FLOW --ignore ACK
    """
    report(old, new, ignore, texts)


def report(old: Path, new: Path, ignore: Sequence[str], texts: bool) -> None:
    """Print the differences between two captures. The exit code is 1 when there are any."""
    from pulsarium.capture.diff import KEEP_ALIVE, differences

    ignored = KEEP_ALIVE | {each.upper() for each in ignore}
    found = differences(lambda: _all(old), lambda: _all(new), ignore=ignored, texts=texts)
    for each in found:
        click.echo("\n".join(_shown(each)))
    count = sum(max(len(each.changes), 1) for each in found)
    click.echo("no difference" if not count else f"{count} difference{'s' if count > 1 else ''}")
    if found:
        raise click.exceptions.Exit(1)


def _all(path: Path) -> Iterator[CaptureRecord]:
    return (record for _, record in records_of(path))


def _shown(found: Difference) -> Iterator[str]:
    if found.old is None or found.new is None:
        talk = found.old or found.new
        assert talk is not None
        sign, steps = ("-", "first") if found.new is None else ("+", "second")
        yield styled(f"only in the {steps}: {_of(talk)}", bold=True)
        for (side, _), said in talk.steps.items():
            yield from _steps(sign, side.value, said)
        return
    yield styled(f"{_of(found.old)} | {_of(found.new)}", bold=True)
    for change in found.changes:
        yield from _change(change)


def _of(talk: Talk) -> str:
    return f"connection {talk.connection} ({printable(talk.client) or 'no CONNECT'})"


def _change(change: Change) -> Iterator[str]:
    yield from _steps(" ", change.side.value, change.before)
    yield from _steps("-", change.side.value, change.old)
    yield from _steps("+", change.side.value, change.new)


def _steps(sign: str, side: str, steps: Iterable[Step]) -> Iterator[str]:
    colour = {"-": "red", "+": "green"}.get(sign)
    told = list(steps)
    for step in told[:_MOST_STEPS]:
        yield styled(f"  {sign} {side:<6} {printable(step.words)}", fg=colour)
    if len(told) > _MOST_STEPS:
        yield styled(f"  {sign} {side:<6} ... and {len(told) - _MOST_STEPS} more", fg=colour)
