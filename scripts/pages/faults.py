"""Generate docs/faults.md, the page of all faults and commands, from the registry of actions."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any, Final

from pulsarium.broker.commands.answers import can_be_refused, has_answer
from pulsarium.broker.expression import DEEPEST, KINDS, LONGEST, OPERATORS
from pulsarium.broker.lab.arguments import Which, arguments_of
from pulsarium.broker.lab.faults import ACTIONS, Action
from pulsarium.broker.lab.faults.names import FACTS, ROOTS, VALUE
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from pulsarium.proto.generated import PulsarApi_pb2 as pb


def fault_page() -> str:
    """Return the text of docs/faults.md."""
    return "\n".join(
        (
            "# Actions and selectors of faults",
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
            "## Expressions of `when`",
            "",
            *_EXPRESSIONS,
            "",
            "| name | type | meaning |",
            "|---|---|---|",
            *_named(),
            "",
            "Fields of `metadata`: " + _listed(pb.MessageMetadata.DESCRIPTOR),
            "",
            "Fields of `message`: " + _listed(pb.SingleMessageMetadata.DESCRIPTOR),
            "",
            "## Commands",
            "",
            '| command | sent by | `Answer` | stage "after" | checksum | request id |',
            "|---|---|---|---|---|---|",
            *_rows(),
            "",
        )
    )


_EXPRESSIONS: Final = f"""\
An expression compares fields: `metadata.partition_key == "a" and (payload_size > 100 or body.sequence_id in [1, 2])`.
On the command line it is `--when`, in JSON and in Python `when`. A misspelled field is an error that names the nearest
one. Frames select by their command first, so the fields of `body` are those of the command. For `*` they are those of
all commands.

- Operators: {", ".join(f"`{each}`" for each in OPERATORS)}.
  `matches` takes a glob. `and`, `or`, `not` and brackets join conditions. A field of true or false is a condition by
  itself, and `has NAME` asks whether a field is set.
- Values: `5`, `1.5`, `"text"`, `'text'`, `b"\\x00\\xff"`, `true`, `false`. An enum is a text, such as `"Failover"`. For
  bytes, a text means its UTF-8.
- A field with several values, or inside a repeated field, matches when one value does. `!=` and `not in` hold when no
  value is equal. Other comparisons with an absent field are false.
- Properties: `metadata.properties.color == "red"`, or `metadata.properties["my color"]`. Each comparison stands alone:
  two of them may hold for two messages of a batch.
- An expression has at most {LONGEST} characters, and {DEEPEST} brackets or `not` inside each other.
""".splitlines()


def _named() -> Iterator[str]:
    for name, fact in FACTS.items():
        yield f"| `{name}` | {KINDS[fact.kind]} | {fact.text} |"
    for root, text in ROOTS.items():
        shown, kind = (root, KINDS[bytes]) if root.endswith(VALUE) else (f"{root}.NAME", "the field's")
        yield f"| `{shown}` | {kind} | {text} |"


def _listed(described: Any) -> str:
    return ", ".join(f"`{name}`" for name in described.fields_by_name) + "."


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
