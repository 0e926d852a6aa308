"""Command groups, and help that lists options under headings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import click

from pulsarium.cli.refusal import CommandRefusal, RequestRefused, one_line
from pulsarium.cli.terminal import guard
from pulsarium.proto.text import did_you_mean

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_WHOLE = 10_000  # more characters than any summary: long ones are wrapped, where click would cut them


class GroupedOption(click.Option):
    """An option with the heading under which the help lists it."""

    def __init__(
        self, *args: Any, heading: str = "Other", late_help: Callable[[], str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading
        self._late_help = late_help  # its imports would slow down the other commands

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if self._late_help is not None:
            self.help = self._late_help()
        return super().get_help_record(ctx)


class GroupedCommand(click.Command):
    """A command whose --help lists options by heading, in the order in which headings first appear."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                # Options without a heading belong to the command itself when they come first.
                own = "Options" if "Options" in groups or not groups else "Other"
                groups.setdefault(getattr(param, "heading", own), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class Commands(click.Group):
    """A command group that prints each refusal in one line, and suggests a command for a misspelled one."""

    wrong_command_line: type[CommandRefusal] = RequestRefused  # its exit code is that of a wrong command line

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [self.get_command(ctx, name) for name in self.list_commands(ctx)]
        rows = [(each.name or "", each.get_short_help_str(_WHOLE)) for each in commands if each and not each.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def main(self, *args: Any, **settings: Any) -> Any:
        guard()
        return super().main(*args, **settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with one_line(self.wrong_command_line):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with one_line(self.wrong_command_line):
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            meant = did_you_mean(name, self.list_commands(ctx))
            ctx.fail(f"No such command '{name}'" + (f"; {meant}" if meant else ""))
        return super().resolve_command(ctx, args)


class LazyGroup(Commands):
    """A group that imports the module of a command when the command runs or its help is shown.

    `places` has MODULE:NAME for each command.
    """

    def __init__(self, *args: Any, places: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._places:
            return None
        module, _, name = self._places[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command


class GroupedCommands(Commands):
    """A group of commands whose help lists options under headings."""

    command_class = GroupedCommand


def options_of(heading: str) -> Callable[..., Decorator]:
    """Return a function that declares options under one heading of the help.

    It takes what `click.option` takes: `network = options_of("Network")`, then `@network("--port", ...)`.
    """

    def option(*names: str, **settings: Any) -> Decorator:
        return click.option(*names, cls=GroupedOption, heading=heading, **settings)

    return option


def together(*options: Decorator) -> Decorator:
    """Return one decorator for options that several commands share, listed in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
