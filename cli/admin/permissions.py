"""Who may do what: the options and bodies of granting."""

from __future__ import annotations

from typing import Any, Final

import click

from pulsarium.cli.admin.command import Values, option
from pulsarium.cli.admin.values import split

_ACTIONS: Final = ("produce", "consume", "functions", "sources", "sinks", "packages")

ROLE: Final = option("--role", "-r", required=True, help="Who.")
ACTIONS: Final[dict[str, Any]] = {
    "many": True,
    "required": True,
    "metavar": "ACTION,...",
    "help": f"Of {', '.join(_ACTIONS)}.",
}


def actions(values: Values) -> list[str]:
    found = split(values.actions)
    for action in found:
        if action not in _ACTIONS:
            raise click.UsageError(f"Illegal auth action '{action}'. Possible values: [{', '.join(_ACTIONS)}]")
    return found
