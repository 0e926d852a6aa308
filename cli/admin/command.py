"""Tables of commands: what each sends and prints; and how they become click's commands.

A `Command` is one line of a group's table. Most are one request, made by `get`, `put`, `post` and `delete`; the others
bring a function of their own.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import quote

import click

from pulsarium.proto.topic_name import NamespaceName, TopicName

from . import output
from .api import NO_BODY, Api
from .session import Session

Values = SimpleNamespace  # what the command line said, by the names that `option` derives
Show = Callable[[Any, Values], str]
# Of a query parameter: the name of the value, or a function of all of them. None leaves the parameter out.
Query = Mapping[str, str | Callable[[Values], object]]
Body = Callable[[Values], object]
Path = str | Callable[[Values], str]  # a template, or what chooses one

_SAFE: Final = ":@!$&'()*+,;=~"


@dataclass(frozen=True, slots=True)
class Command:
    """`run` makes the requests and returns what they brought; `show` is that in pulsar-admin's words, None: nothing."""

    name: str
    help: str
    run: Callable[[Api, Values], Any]
    params: tuple[click.Parameter, ...] = ()
    show: Show | None = None
    hidden: bool = False
    example: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The commands under one word."""

    name: str
    help: str
    commands: tuple[Command, ...]
    examples: tuple[str, ...] = ()
    hidden: bool = False

    def click(self) -> click.Group:
        group = AdminGroup(self.name, help=_with_examples(self.help, self.examples), hidden=self.hidden)
        for command in self.commands:
            group.add_command(_click_command(self.name, command, command.name))
            if command.alias:
                group.add_command(_click_command(self.name, command, command.alias, hidden=True))
        return group


class AdminGroup(click.Group):
    """Ends with 1 where click says 2: pulsar-admin does not tell a wrong command line from a refusal."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _with_exit_code_1(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise _with_exit_code_1(error) from None


def _with_exit_code_1(error: click.UsageError) -> click.UsageError:
    setattr(error, "exit_code", 1)  # noqa: B010 - click types it as one of the class
    return error


def _with_examples(help: str, examples: tuple[str, ...]) -> str:
    if not examples:
        return help
    return f"{help}\n\n\b\nExamples:\n" + "\n".join(f"  pulsarium admin {example}" for example in examples)


def _click_command(group: str, command: Command, name: str, hidden: bool = False) -> click.Command:
    def callback(**given: Any) -> None:
        session = click.get_current_context().ensure_object(Session)
        output_format = given.pop("output", None) or session.output
        values = Values(**given)
        data = command.run(session.api, values)
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


def argument(dest: str, type: click.ParamType[Any] | None = None) -> click.Argument:
    return click.Argument([dest], type=type)


class _Segment:
    """A value in a path: names of topics and namespaces are several segments, anything else is one."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __format__(self, spec: str) -> str:
        value = self._value
        if isinstance(value, TopicName):
            where = f"{value.tenant}/{value.namespace}/{value.encoded_local_name}"
            return where if spec == "bare" else f"{value.domain}/{where}"
        if isinstance(value, NamespaceName):
            return str(value)
        text = quote(str(value), safe=_SAFE)
        # Subscriptions are encoded once for the path and once for the broker's own decoding.
        return quote(quote(str(value), safe=""), safe=_SAFE) if spec == "twice" else text


def path_of(template: str, values: Values) -> str:
    """`namespaces/{namespace}/x` with the values put in; {topic:bare} without its domain, {subscription:twice}."""
    return template.format_map({name: _Segment(value) for name, value in vars(values).items()})


def query_of(query: Query, values: Values) -> dict[str, object]:
    return {name: source(values) if callable(source) else getattr(values, source) for name, source in query.items()}


def _request(
    method: str,
    name: str,
    path: Path,
    help: str,
    *params: click.Parameter,
    query: Query | None = None,
    body: Body | None = None,
    text: bool = False,
    show: Show | None = None,
    **more: Any,
) -> Command:
    def run(api: Api, values: Values) -> Any:
        return api.call(
            method,
            path_of(path(values) if callable(path) else path, values),
            query=query_of(query or {}, values),
            body=NO_BODY if body is None else body(values),
            text=text,
        )

    return Command(name, help, run, params, show, **more)


def get(name: str, path: Path, help: str, *params: click.Parameter, show: Show = output.value, **more: Any) -> Command:
    """One GET. `query`, `text` (the reply is no JSON), and what Command has."""
    return _request("GET", name, path, help, *params, show=show, **more)


def put(name: str, path: Path, help: str, *params: click.Parameter, **more: Any) -> Command:
    """One PUT, as `get`; `body` makes what is sent as JSON."""
    return _request("PUT", name, path, help, *params, **more)


def post(name: str, path: Path, help: str, *params: click.Parameter, **more: Any) -> Command:
    """One POST, as `put`."""
    return _request("POST", name, path, help, *params, **more)


def delete(name: str, path: Path, help: str, *params: click.Parameter, **more: Any) -> Command:
    """One DELETE, as `get`."""
    return _request("DELETE", name, path, help, *params, **more)


def either(values: Values, this: str, that: str) -> bool:
    """True if the flag `--this` was given, False for `--that`. click.UsageError for both or none."""
    chosen, other = (getattr(values, name.replace("-", "_")) for name in (this, that))
    if chosen == other:
        raise click.UsageError(f"Need to specify either --{this} or --{that}")
    return bool(chosen)
