"""Generate docs/faults.md, the page of all faults and commands, from the registry of actions."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator

from pulsarium.broker.commands.answers import can_be_refused, has_answer
from pulsarium.broker.lab.arguments import Which, arguments_of
from pulsarium.broker.lab.faults import ACTIONS, Action
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction


def fault_page() -> str:
    """Return the text of docs/faults.md."""
    return "\n".join(
        (
            "# Faults",
            "",
            "Generated from `broker/lab/faults` and `proto/commands.py`; do not edit.",
            "",
            "Only the first matching rule acts on a frame. Rules that observe see every frame.",
            "",
            "## Actions",
            "",
            "| Python | JSON, command line | what it does |",
            "|---|---|---|",
            *(f"| `{_call(action)}` | `{kind}` | {_text(action)} |" for kind, action in ACTIONS.items()),
            "",
            "## Selecting frames",
            "",
            "| argument | what it selects |",
            "|---|---|",
            "| `command` | A name of the protocol below, or `*`. |",
            *(f"| `{argument.name}` | {argument.text} |" for argument in arguments_of(Which).values()),
            "",
            "A frame that does not name a topic has the topic of its producer or consumer. Answers with nothing but a",
            'request id (SUCCESS, ERROR ...) have no topic: select their command, at stage "after".',
            "",
            "## Commands",
            "",
            '| command | sent by | `Answer` | stage "after" | checksum | request id |',
            "|---|---|---|---|---|---|",
            *_rows(),
            "",
        )
    )


def _call(action: type[Action]) -> str:
    fields = (f"{field.name}={field.default!r}" for field in dataclasses.fields(action))
    return f"{action.__name__}({', '.join(fields)})"


def _text(action: type[Action]) -> str:
    return inspect.cleandoc(action.__doc__ or "").replace("\n", " ")


def _rows() -> Iterator[str]:
    for spec in COMMANDS.values():
        client = spec.direction is not Direction.BROKER
        marks = (
            client and can_be_refused(spec),
            client and has_answer(spec),
            _can(spec, "corrupt"),
            _can(spec, "wrong-request-id"),
        )
        cells = " | ".join("yes" if mark else "" for mark in marks)
        yield f"| {spec.name} | {spec.direction.value} | {cells} |"


def _can(spec: CommandSpec, kind: str) -> bool:
    return not ACTIONS[kind]().misfit(spec)
