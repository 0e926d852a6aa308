"""Tables of commands, and click commands made from them.

An `AdminCommand` is one row of a group's table. Most rows are one call of the REST API, which `CommandsOf` takes as
it is: the names of the call's parameters select the options and arguments to pass. Other rows have a function of
their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from inspect import signature
from keyword import iskeyword
from types import SimpleNamespace
from typing import Any, Concatenate, Generic, TypeVar

import click

from pulsarium.cli.admin import output
from pulsarium.cli.admin.api import Api, done
from pulsarium.cli.admin.asked import AdminRun
from pulsarium.cli.grouped import Commands
from pulsarium.cli.refusal import RunRefused
from pulsarium.rest import group as rest

G = TypeVar("G", bound=rest.CallGroup)

OUTPUT = "pulsarium.output"  # key of the group's --output in the context's meta

Values = SimpleNamespace  # values of the command line, by the names that `option` derives
Show = Callable[[Any, Values], str]
# Makes the calls and returns the data to print.
Run = Callable[[Api, Values], Coroutine[Any, Any, Any]]
# Makes an argument of a call from the command line.
Body = Callable[[Values], Any]


@dataclass(frozen=True, slots=True)
class AdminCommand:
    """A command of a group: `run` makes the calls, `show` formats the result as pulsar-admin does."""

    name: str
    help: str
    run: Run
    params: tuple[click.Parameter, ...] = ()
    show: Show | None = None
    hidden: bool = False
    example: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """The commands under one name."""

    commands: tuple[AdminCommand, ...]
    examples: tuple[str, ...] = ()
    hidden: bool = False

    def click(self, name: str, help: str) -> click.Group:
        group = AdminGroup(name, help=_with_examples(help, self.examples), hidden=self.hidden)
        for command in self.commands:
            group.add_command(_click_command(name, command, command.name))
            if command.alias:
                group.add_command(_click_command(name, command, command.alias, hidden=True))
        return group


class AdminGroup(Commands):
    """A group that exits with 1 for a wrong command line too, as pulsar-admin does, where click exits with 2."""

    wrong_command_line = RunRefused


def _with_examples(help: str, examples: tuple[str, ...]) -> str:
    if not examples:
        return help
    return f"{help}\n\n\b\nExamples:\n" + "\n".join(f"  pulsarium admin {example}" for example in examples)


def _click_command(group: str, command: AdminCommand, name: str, hidden: bool = False) -> click.Command:
    def callback(**given: Any) -> None:
        context = click.get_current_context()
        session = context.ensure_object(AdminRun)
        output_format = given.pop("output", None) or context.meta.get(OUTPUT, "auto")
        values = Values(**given)
        data = done(command.run(session.api, values))
        show = command.show
        if show is None:
            return
        said = output.rendered(output_format, data, lambda: show(data, values))
        # An empty text prints a line; an empty list prints nothing.
        if said or data == "":
            click.echo(said)

    example = (f"{group} {name} {command.example}",) if command.example else ()
    return click.Command(
        name,
        callback=callback,
        params=[*command.params, _output_option()],
        help=_with_examples(command.help, example),
        hidden=hidden or command.hidden,
    )


def _output_option() -> click.Option:
    return click.Option(["--output"], type=click.Choice(output.FORMATS), hidden=True)


def option(*names: str, dest: str = "", flag: bool = False, many: bool = False, **settings: Any) -> click.Option:
    """Return an option whose value is kept under its first name in snake case, or under `dest`.

    With `flag`, the option takes no value. With `many`, it may be repeated, and its value is a tuple.
    """
    word = re.sub(r"([a-z])([A-Z])", r"\1_\2", names[0].lstrip("-")).replace("-", "_").lower()
    dest = dest or (f"{word}_" if iskeyword(word) else word)
    if flag:
        settings.update(is_flag=True)
    else:
        settings.update(show_default=settings.get("default") is not None)
    return click.Option([dest, *names], multiple=many, **settings)


def argument(dest: str, type: click.ParamType[Any] | None = None, **settings: Any) -> click.Argument:
    return click.Argument([dest], type=type, **settings)


class CommandsOf(Generic[G]):
    """Make commands of single calls of one REST group.

    All commands begin with `params`. A call gets the values that have its parameters' names, and for the others the
    results of the functions in `made`.
    """

    def __init__(self, group: type[G], *params: click.Parameter) -> None:
        self._group = group
        self._params = params

    def shows(
        self,
        name: str,
        call: Callable[Concatenate[G, ...], Coroutine[Any, Any, object]],
        help: str,
        *params: click.Parameter,
        show: Show = output.value,
        hidden: bool = False,
        example: str = "",
        alias: str = "",
        **made: Body,
    ) -> AdminCommand:
        """Return a command that prints the result of the call."""
        return AdminCommand(name, help, self._run(call, made), (*self._params, *params), show, hidden, example, alias)

    def does(
        self,
        name: str,
        call: Callable[Concatenate[G, ...], Coroutine[Any, Any, object]],
        help: str,
        *params: click.Parameter,
        hidden: bool = False,
        example: str = "",
        **made: Body,
    ) -> AdminCommand:
        """Return a command that prints nothing."""
        return AdminCommand(name, help, self._run(call, made), (*self._params, *params), None, hidden, example)

    def _run(self, call: Callable[Concatenate[G, ...], Coroutine[Any, Any, object]], made: Mapping[str, Body]) -> Run:
        def run(api: Api, values: Values) -> Coroutine[Any, Any, object]:
            given = vars(values)
            named = {name: given[name] for name in signature(call).parameters if name in given}
            return call(self._group(api), **(named | {name: make(values) for name, make in made.items()}))

        return run


def of(name: str) -> Callable[[Values], Any]:
    """Make an argument of one value."""
    return lambda values: getattr(values, name)


def either(values: Values, this: str, that: str) -> bool:
    """Return True for the flag `--this`, False for `--that`. Raise click.UsageError for both or none."""
    chosen, other = (getattr(values, name.replace("-", "_")) for name in (this, that))
    if chosen == other:
        raise click.UsageError(f"Need to specify either --{this} or --{that}")
    return bool(chosen)
