"""Tables of commands: what each calls and prints; and how they become click's commands.

A `Command` is one line of a group's table. Most are one call of the REST API, which `CommandsOf` takes as it is: the
names of its parameters say which options and arguments it is given. The others bring a function of their own.
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
from pulsarium.cli.admin.asked import Session
from pulsarium.cli.grouped import Commands
from pulsarium.cli.refusal import RunRefused
from pulsarium.rest import group as rest

G = TypeVar("G", bound=rest.Group)

OUTPUT = "pulsarium.output"  # what --output before the group says, in the context's meta

Values = SimpleNamespace  # what the command line said, by the names that `option` derives
Show = Callable[[Any, Values], str]
# Makes the calls; what it returns is to be printed.
Run = Callable[[Api, Values], Coroutine[Any, Any, Any]]
# Makes an argument of a call.
Body = Callable[[Values], Any]


@dataclass(frozen=True, slots=True)
class Command:
    """`show` is what `run` brought in pulsar-admin's words, None: nothing."""

    name: str
    help: str
    run: Run
    params: tuple[click.Parameter, ...] = ()
    show: Show | None = None
    hidden: bool = False
    example: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The commands under one word."""

    commands: tuple[Command, ...]
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
    """Ends with 1 where click says 2: pulsar-admin does not tell a wrong command line from a refusal."""

    wrong_command_line = RunRefused


def _with_examples(help: str, examples: tuple[str, ...]) -> str:
    if not examples:
        return help
    return f"{help}\n\n\b\nExamples:\n" + "\n".join(f"  pulsarium admin {example}" for example in examples)


def _click_command(group: str, command: Command, name: str, hidden: bool = False) -> click.Command:
    def callback(**given: Any) -> None:
        context = click.get_current_context()
        session = context.ensure_object(Session)
        output_format = given.pop("output", None) or context.meta.get(OUTPUT, "auto")
        values = Values(**given)
        data = done(command.run(session.api, values))
        show = command.show
        if show is None:
            return
        said = output.rendered(output_format, data, lambda: show(data, values))
        # An empty text is a line; an empty list is none.
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
    """An option, kept under its first name in snake case (`dest` to say otherwise).

    `flag`: takes no value. `many`: may be repeated, and comes as a tuple.
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
    """Make commands that are one call each, of this group of the REST API.

    All of them begin with `params`. A call is given the values that have its parameters' names, and what `made` makes
    for the others.
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
    ) -> Command:
        """Return a command that prints what the call brings."""
        return Command(name, help, self._run(call, made), (*self._params, *params), show, hidden, example, alias)

    def does(
        self,
        name: str,
        call: Callable[Concatenate[G, ...], Coroutine[Any, Any, object]],
        help: str,
        *params: click.Parameter,
        hidden: bool = False,
        example: str = "",
        **made: Body,
    ) -> Command:
        """Return a command that prints nothing."""
        return Command(name, help, self._run(call, made), (*self._params, *params), None, hidden, example)

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
    """True if the flag `--this` was given, False for `--that`. click.UsageError for both or none."""
    chosen, other = (getattr(values, name.replace("-", "_")) for name in (this, that))
    if chosen == other:
        raise click.UsageError(f"Need to specify either --{this} or --{that}")
    return bool(chosen)
