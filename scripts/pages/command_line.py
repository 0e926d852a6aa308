"""docs/command-line.md: the help of each command, as the command prints it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from pulsarium.cli.main import cli

_WIDTH: Final = 86  # characters in a line of the site, and what click writes on a terminal of 88
_TESTED: Final = "<!-- tested: tests/scripts/pages/test_command_line.py -->"
_WHOLE: Final = "admin"  # pulsar-admin's grammar: its commands are many, and only their groups have a section


def command_line_page() -> str:
    """Return docs/command-line.md."""
    root = click.Context(cli, info_name="pulsarium", terminal_width=_WIDTH, **cli.context_settings)
    return "\n".join(
        (
            "# Command line",
            "",
            "Each command of `pulsarium` with its options, as `--help` prints them. The commands of the wire are in",
            "[Commands of the protocol](commands.md). The commands below each group of `pulsarium admin` are those of",
            "pulsar-admin: `pulsarium admin topics create --help` shows the options of one.",
            "",
            "Generated from the commands in `cli`; do not edit.",
            "",
            *_section(root, 2),
        )
    )


def _section(ctx: click.Context, level: int) -> Iterator[str]:
    shown = "\n".join(line.rstrip() for line in ctx.get_help().splitlines())
    yield from (f"{'#' * level} {ctx.command_path}", "", _TESTED, "```text", shown, "```", "")
    command = ctx.command
    if not isinstance(command, click.Group) or (ctx.parent is not None and ctx.parent.info_name == _WHOLE):
        return
    for name in command.list_commands(ctx):
        inner = command.get_command(ctx, name)
        if inner is not None and not inner.hidden:
            below = click.Context(inner, info_name=name, parent=ctx, **inner.context_settings)
            yield from _section(below, level if ctx.parent is None else level + 1)
