"""`pulsarium capture show` and `export`: print or convert a capture."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.interrupts import closing_at_ctrl_c
from pulsarium.cli.lab.broker import LabOf, of_broker
from pulsarium.cli.lab.capture.file import records_of
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.cli.terminal import styled

if TYPE_CHECKING:
    from pulsarium.capture.file import CaptureRecord
    from pulsarium.capture.lint.checker import RecordFindings

FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class Wanted:
    """Filters of records. An empty filter accepts all."""

    commands: Sequence[str] = ()
    connections: Sequence[int] = ()
    topics: Sequence[str] = ()
    sender: str | None = None

    def has(self, record: CaptureRecord, seen: RecordFindings) -> bool:
        frame = seen.frame
        if self.sender and record.sender.value != self.sender:
            return False
        if self.connections and record.connection not in self.connections:
            return False
        if self.commands and not (frame and any(fnmatchcase(frame.name, each.upper()) for each in self.commands)):
            return False
        return not self.topics or bool(frame and frame.topic and any(_fits(frame.topic, each) for each in self.topics))


def _fits(topic: str, glob: str) -> bool:
    """Return whether `glob` matches the topic's full name or its local name."""
    return fnmatchcase(topic, glob) or fnmatchcase(topic.rpartition("/")[2], glob)


@click.command(cls=GroupedCommand)
@click.argument("file", required=False, type=FILE)
@click.option("--live", is_flag=True, help="Show the frames of a running broker from now on, until Ctrl-C.")
@click.option("--follow", "-f", is_flag=True, help="Wait for more frames at the end, until Ctrl-C.")
@click.option(
    "--command", "commands", multiple=True, metavar="NAME", help="Show only these commands, such as SEND or 'ACK*'."
)
@click.option(
    "--connection", "connections", multiple=True, type=int, metavar="N", help="Show only the connection of this number."
)
@click.option(
    "--topic", "topics", multiple=True, metavar="GLOB", help="Show only these topics: orders, or '*/default/o*'."
)
@click.option("--sender", type=click.Choice(["client", "broker"]), help="Show only the frames that this side sent.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on each line.")
@click.option("--full", is_flag=True, help="Print all fields, metadata and payloads, on lines of their own.")
@of_broker
def show(lab: LabOf, file: Path | None, live: bool, follow: bool, as_json: bool, full: bool, **chosen: Any) -> None:
    """Print the frames of a capture, or of a running broker.

    Each line has the seconds since the first frame, the connection, → for the client's frames or ← for the broker's,
    the command with its fields, the topic and the message. An answer has its latency too.

    \b
      pulsarium capture show run.pulscap
      pulsarium capture show run.pulscap --command SEND --command 'ACK*' --topic orders
      pulsarium capture show run.pulscap --follow --connection 3
      pulsarium capture show --live --admin-url http://localhost:8080
      pulsarium capture show run.pulscap --json --full | jq .fields
    """
    if live == (file is not None):
        raise RequestRefused("capture show: pass a FILE, or --live for a running broker")
    if file is not None:
        source = records_of(file, follow=follow)
    else:
        from pulsarium.cli.lab.capture.file import records_now

        source = records_now(lab)
    with closing_at_ctrl_c(), closing(source), suppress(KeyboardInterrupt):  # type: ignore[type-var]
        _print(source, Wanted(**chosen), as_json, full)


def _print(source: Iterator[tuple[int, CaptureRecord]], wanted: Wanted, as_json: bool, full: bool) -> None:
    from pulsarium.capture.as_json import described
    from pulsarium.capture.lines import CaptureLines
    from pulsarium.capture.lint.checker import Walk

    walk, lines = Walk(), CaptureLines(style=styled, full=full)
    for number, record in source:
        _, seen = walk.feed(record)
        if wanted.has(record, seen):
            if as_json:
                click.echo(json.dumps(described(number, record, seen, full=full)))
            else:
                click.echo(lines.of(number, record, seen))


@click.command()
@click.argument("file", type=FILE)
@click.option(
    "--parquet", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write the tables to DIR."
)
@click.option("--jsonl", is_flag=True, help="Print a JSON object for each frame, with all fields.")
@click.option("--pcapng", type=FILE, metavar="FILE", help="Write packets to FILE, for Wireshark.")
def export(file: Path, parquet: Path | None, jsonl: bool, pcapng: Path | None) -> None:
    """Write a capture for other programs: Parquet, JSON lines, or packets.

    \b
      pulsarium capture export run.pulscap --parquet tables
      pulsarium capture export run.pulscap --jsonl > run.jsonl
      pulsarium capture export run.pulscap --pcapng run.pcapng

    DIR receives frames.parquet, exchanges.parquet and violations.parquet. Needs pip install "pulsarium[spark]", and no
    Java.
    """
    if jsonl + (parquet is not None) + (pcapng is not None) != 1:
        raise RequestRefused("capture export: pass --parquet DIR, --jsonl or --pcapng FILE")
    if pcapng is not None:
        from pulsarium.cli.lab.capture.packets import export_packets

        export_packets(file, pcapng)
        return
    if parquet is None:
        _print(records_of(file), Wanted(), as_json=True, full=True)
        return
    for _ in records_of(file):  # refuse what is no capture before any table is written
        break
    from pulsarium.pipeline.capture.parquet import write

    try:
        counts = write(file, parquet)
    except OSError as error:
        raise RunRefused(f"{parquet}: {error.strerror or error}") from None
    for name, count in counts.items():
        click.echo(f"{parquet / name}: {count} rows")
