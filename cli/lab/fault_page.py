"""docs/faults.md: what faults there are and which frames they can be about, out of the registry of actions."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator

from pulsarium.broker.commands.answers import can_be_refused, has_answer
from pulsarium.broker.lab.faults import ACTIONS, Action
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction

SELECTORS = {
    "command": "a name of the protocol below, or `*`",
    "sender": "`client` or `broker`; without it who sends the command, or either",
    "stage": "`before`: the frame itself; `after`: the client's command is handled, and its answer is meant",
    "topic": "glob: `orders*`, `public/default/*` or `persistent://...`; partitions by their topic's name too",
    "client_version": "glob of what the client calls itself in CONNECT",
    "producer": "glob of a producer's name",
    "consumer": "glob of a consumer's name",
    "subscription": "glob of a subscription's name",
    "broker": "index of one broker of several",
    "predicate": "Python only: a function of the frame (`name`, `body`, `entry`, `topic`, `session` ...)",
    "skip": "so many that are selected are let pass first",
    "every": "of each so many, the first",
    "count": "so many in all; 1 unless said, `None` (JSON: `null`) for ever",
    "probability": "by chance, from 0 to 1",
    "seed": "of chance, and of the byte that is corrupted",
}


def fault_page() -> str:
    """docs/faults.md."""
    return "\n".join(
        (
            "# Faults",
            "",
            "Generated from `broker/lab/faults` and `proto/commands.py`; do not edit.",
            "",
            "The first rule that is meant acts on a frame, alone. Rules that observe see every frame.",
            "",
            "## What happens to a frame",
            "",
            "| Python | JSON, command line | what it does |",
            "|---|---|---|",
            *(f"| `{_call(action)}` | `{kind}` | {_text(action)} |" for kind, action in ACTIONS.items()),
            "",
            "## Which frames",
            "",
            "| argument | what it selects |",
            "|---|---|",
            *(f"| `{name}` | {text} |" for name, text in SELECTORS.items()),
            "",
            "A frame that does not name a topic is known by its producer or consumer. Answers with nothing but a",
            'request id (SUCCESS, ERROR ...) are about no topic: select their command, at stage "after".',
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
