"""The tools of an assistant. Each tool is a command of the command line.

A command declares its arguments, their types and its help once, for people. A tool has the same: the JSON schema of its
input and its description follow from the command, and a call of the tool is a command line. So an assistant can do what
a person can do, and both read the same answers. `TOOLS` selects the commands, and leaves out the options without a
meaning for an assistant: what runs without end, and the formats that are for people.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import click

from pulsarium.cli.main import cli

ARGUMENTS: Final = "arguments"
"""The input of a tool for a group of commands: the words behind the name of the group."""
_HELP: Final = ("help", "version")
_BROKER: Final = "Broker"  # the heading of the options that the server was started with
_CLIENT_URL: Final = "--url"  # of `pulsarium client`
_NUMBERS: Final = ((click.types.IntParamType, "integer"), (click.types.FloatParamType, "number"))

Json = dict[str, Any]


class WrongCall(Exception):
    """An assistant called a tool with an input that the tool does not take."""


class Tool:
    """A command as a tool.

    `acts`: it changes the broker, or a file. `fixed`: options of every call. `without`: options that are not offered.
    `acting`: options that are offered only where acts are allowed.
    """

    def __init__(
        self, path: str, *fixed: str, acts: bool = False, without: Sequence[str] = (), acting: Sequence[str] = ()
    ) -> None:
        self.words = path.split()
        self.name = path.replace(" ", "_").replace("-", "_")
        self.acts = acts
        self.fixed = fixed
        self.without = set(without)
        self.acting = set(acting)

    @cached_property
    def chain(self) -> Sequence[click.Command]:
        """Return the commands from below `pulsarium` to the tool's own."""
        found: list[click.Command] = [cli]
        for word in self.words:
            group = found[-1]
            assert isinstance(group, click.Group)
            command = group.get_command(click.Context(group), word)
            assert command is not None, f"no command {word}"
            found.append(command)
        return found[1:]

    @property
    def _is_group(self) -> bool:
        return isinstance(self.chain[-1], click.Group)

    def _inputs(self, command: click.Command, *, acts: bool) -> Iterator[tuple[str, click.Parameter]]:
        if command is not self.chain[-1] and getattr(command, "invoke_without_command", False):
            return  # its options are those of the group without a command
        for param in command.params:
            name = _name(param)
            hidden = getattr(param, "hidden", False) or getattr(param, "heading", "") == _BROKER or name in _HELP
            hidden |= any(input_name(each) == name for each in self.fixed)
            if not hidden and name not in self.without and (acts or name not in self.acting):
                yield name, param

    def description(self) -> str:
        """Return what the command's --help says."""
        command = self.chain[-1]
        texts = (inspect.cleandoc(text).replace("\b\n", "") for text in (command.help, command.epilog) if text)
        called = f"Runs `pulsarium {' '.join(self.words)}`."
        return "\n\n".join([*texts, called])

    def schema(self, *, acts: bool) -> Json:
        """Return the JSON schema of the input."""
        properties, required = {}, []
        for command in self.chain:
            for name, param in self._inputs(command, acts=acts):
                properties[name] = _schema(param)
                if param.required:
                    required.append(name)
        if self._is_group:
            words = 'The words behind the name, such as ["GROUP", "COMMAND", "--help"].'
            properties[ARGUMENTS] = {"type": "array", "items": {"type": "string"}, "description": words}
            required.append(ARGUMENTS)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def command_line(self, given: Mapping[str, Any], broker: Sequence[str], *, acts: bool) -> list[str]:
        """Return the words behind `pulsarium`. `broker` has the options of the server. Raise `WrongCall`."""
        missing = [name for name in self.schema(acts=acts)["required"] if name not in given]
        if missing:
            raise WrongCall(f"{self.name} needs {', '.join(missing)}")
        left = dict(given)
        words: list[str] = []
        behind: list[str] = []
        for word, command in zip(self.words, self.chain, strict=True):
            words.append(word)
            words += _of_the_broker(command, broker)
            for name, param in self._inputs(command, acts=acts):
                if name in left:
                    (words if isinstance(param, click.Option) else behind).extend(_words(param, left.pop(name)))
        words += self.fixed
        if self._is_group:
            words += self._behind_the_name(left.pop(ARGUMENTS, []))
        if left:
            known = ", ".join(self.schema(acts=acts)["properties"]) or "nothing"
            raise WrongCall(f"{self.name} does not take {', '.join(left)}; it takes {known}")
        return [*words, "--", *behind] if behind else words

    def _behind_the_name(self, given: Any) -> list[str]:
        """Return the words behind the name of a group. An option of the group could lead the credentials elsewhere."""
        words = _strings(given)
        if words and words[0].startswith("-") and input_name(words[0]) not in _HELP:
            raise WrongCall(f"{ARGUMENTS} of {self.name} begin with a command, such as topics, and not with {words[0]}")
        return words


def _of_the_broker(command: click.Command, broker: Sequence[str]) -> list[str]:
    """Return the options of the server that a command has. A client looks topics up at the URL of the admin API."""
    known = {option for param in command.params if getattr(param, "heading", "") == _BROKER for option in param.opts}
    if _CLIENT_URL in {option for param in command.params for option in param.opts}:
        known.add(_CLIENT_URL)
        broker = [word.replace("--admin-url=", f"{_CLIENT_URL}=", 1) for word in broker]
    return [word for word in broker if word.partition("=")[0] in known]


def input_name(option: str) -> str:
    """Return the name of an option, such as --no-follow or --last=3, as an input."""
    return option.lstrip("-").partition("=")[0].replace("-", "_")


def _name(param: click.Parameter) -> str:
    """Return the longest name that a person types, with underscores."""
    return input_name(max(param.opts, key=len)) if isinstance(param, click.Option) else str(param.name)


def _schema(param: click.Parameter) -> Json:
    kind: Json = {"type": "string"}
    if getattr(param, "is_flag", False):
        kind = {"type": "boolean"}
    elif isinstance(param.type, click.Choice):
        kind = {"type": "string", "enum": [str(each) for each in param.type.choices]}
    else:
        for type_, name in _NUMBERS:
            if isinstance(param.type, type_):
                kind = {"type": name}
    if _is_several(param):
        kind = {"type": "array", "items": kind}
    if isinstance(param, click.Option):
        record = param.get_help_record(click.Context(cli))
        return kind if record is None else kind | {"description": record[1]}
    return kind


def _is_several(param: click.Parameter) -> bool:
    return param.nargs == -1 or bool(getattr(param, "multiple", False))


def _words(param: click.Parameter, value: Any) -> list[str]:
    values = _strings(value) if _is_several(param) else [_string(param, value)]
    if not isinstance(param, click.Option):
        return values
    longest = max(param.opts, key=len)
    if param.is_flag:
        if value is True:
            return [longest]
        return [max(param.secondary_opts, key=len)] if param.secondary_opts else []
    return [f"{longest}={each}" for each in values]


def _string(param: click.Parameter, value: Any) -> str:
    if isinstance(value, list | dict) or value is None:
        raise WrongCall(f"{_name(param)} takes one value")
    return str(value)


def _strings(value: Any) -> list[str]:
    if not isinstance(value, list) or any(isinstance(each, list | dict) for each in value):
        raise WrongCall(f"write a list of texts in place of {value!r}")
    return [str(each) for each in value]


_ENDLESS: Final = ("follow", "live")
_CHANGES: Final = ("start", "stop", "clear", "out")
_ELSEWHERE: Final = ("url", "memory_limit", "listener_name", "proxy_url", "proxy_protocol")
"""A message goes to the server's broker only: the credentials are for no other one."""
_REPORT: Final = ("--format=json", "--exit-zero")

TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool("status", "--json", without=("watch", "interval")),
        Tool("topics", "--json"),
        Tool("tail", "--no-follow", "--output=json", without=("follow",)),
        Tool("why", "--json"),
        Tool("wait"),
        Tool("fault list", "--json"),
        Tool("fault wait", "--json"),
        Tool("mask list", "--json"),
        Tool("clock show", "--json"),
        Tool("capture list", "--json"),
        Tool("capture show", "--json", without=_ENDLESS),
        Tool("capture diff"),
        Tool("lint", *_REPORT, acting=_CHANGES),
        Tool("check", *_REPORT, without=("live",), acting=("out",)),
        Tool("admin"),
        Tool("fault add", "--json", acts=True),
        Tool("fault observe", "--json", acts=True),
        Tool("fault remove", acts=True),
        Tool("mask add", acts=True),
        Tool("mask remove", acts=True),
        *(Tool(f"clock {act}", "--json", acts=True) for act in ("freeze", "resume", "run-next", "reset")),
        Tool("clock advance", "--json", "--yes", acts=True),
        Tool("capture start", acts=True),
        Tool("capture stop", acts=True),
        Tool("state snapshot", acts=True),
        Tool("state seed", acts=True),
        Tool("state restore", "--yes", acts=True),
        Tool("state reset", "--yes", acts=True),
        Tool("client produce", acts=True, without=_ELSEWHERE),
        Tool("explore", acts=True),
    )
}
"""The tools by name. Those that act come last, and are there only with --allow-acts."""
