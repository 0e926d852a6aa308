"""Generate docs/command-fields.md: where each optional field of a client's command has an effect, with its test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

ROWS = Path(__file__).resolve().parents[2] / "tests" / "command-fields.tsv"
UNREAD = "first_chunk_message_id"  # a message id of its own in each message id, of which no field is read


class Row(NamedTuple):
    """Fields of a command that have the same effect, and the test that shows it: `FILE::FUNCTION` below tests/."""

    command: str
    fields: str
    effect: str
    test: str

    @property
    def names(self) -> list[str]:
        return self.fields.split(", ")


def field_rows() -> list[Row]:
    """Return the rows of tests/command-fields.tsv."""
    lines = (line for line in ROWS.read_text().splitlines() if not line.startswith("#"))
    return [Row(*line.split("\t")) for line in lines]


def optional_fields() -> Iterator[tuple[str, str]]:
    """Yield each command that a client may send, with each field that the command may lack."""
    bodies = BaseCommand.DESCRIPTOR.fields_by_name
    for spec in COMMANDS.values():
        if spec.direction is not Direction.BROKER:
            for name in _optional(bodies[spec.field]):
                yield spec.name, name


def _optional(message: Any, prefix: str = "") -> Iterator[str]:
    if message.message_type is not None and message.name != UNREAD:
        for field in message.message_type.fields:
            if not field.is_required:
                yield prefix + field.name
            yield from _optional(field, f"{prefix}{field.name}.")


def fields_page() -> str:
    """Return the text of docs/command-fields.md."""
    lines = [
        "# Fields of commands",
        "",
        "The optional fields of the commands that clients send: where each has an effect, as on Pulsar 4.2.4, and the",
        "test that shows it. A field has its effect on all types of subscriptions and both kinds of topics, unless the",
        "row names some. Segments of scalable topics are persistent topics.",
        "Generated from `tests/command-fields.tsv`; do not edit.",
    ]
    command = ""
    for row in field_rows():
        if row.command != command:
            command = row.command
            lines += ["", f"## {command}", "", "| field | effect | test |", "|---|---|---|"]
        names = ", ".join(f"`{name}`" for name in row.names)
        lines.append(f"| {names} | {row.effect} | `{row.test.rpartition('::')[2]}` |")
    return "\n".join([*lines, ""])
