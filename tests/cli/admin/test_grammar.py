"""Commands and options of pulsar-admin, as recorded from its own model, for each group that exists here."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from pulsarium.cli.admin.main import admin
from pulsarium.cli.main import cli

# Options that only `pulsarium admin` has, on every command.
EVERYWHERE = {"output", "help"}
# Commands that the PIPs add to the released pulsar-admin.
OF_THE_PIPS = {("topics", "skip-messages"), ("topics", "get-message-id-by-index")}
# `schemas get --version N` exists, but the --version of all commands hides it in pulsar-admin's model.
COVERED = {("schemas", "get"): {"--version", "-v"}, ("topics", "delete"): {"--fail", "--regex"}}
# By mistake, an option of pulsar-admin is the bare word `regex`. Our option has dashes.
BARE_WORD = "regex"


class Row(NamedTuple):
    group: str
    command: str
    kind: str
    long: str
    label: str
    short: str
    type: str
    required: bool
    default: str
    notes: str
    hidden: bool

    @property
    def names(self) -> set[str]:
        found = {name for name in f"{self.long},{self.short}".split(",") if name}
        return {"--regex" if name == BARE_WORD else name for name in found}

    @property
    def takes_value(self) -> bool:
        return "arity 1" in self.notes


def recorded() -> list[Row]:
    with (Path(__file__).parent / "grammar.tsv").open() as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [row_of([*words[1:], *[""] * (12 - len(words))]) for words in rows]


def row_of(words: list[str]) -> Row:
    group, command, kind, long, label, short, of_type, required, default, notes, hidden = words
    names = (group, command, kind, long, label, short, of_type)
    return Row(*names, required == "required", default, notes, hidden == "hidden")


ROWS = recorded()
COMMANDS = sorted({(row.group, row.command) for row in ROWS if row.command})


def command_of(group: str, name: str) -> click.Command:
    context = click.Context(admin, parent=click.Context(cli))
    found = admin.get_command(context, group)
    assert isinstance(found, click.Group), group
    command = found.get_command(context, name)
    assert command is not None, f"{group} {name}"
    return command


def test_every_group_is_there() -> None:
    groups = {row.group for row in ROWS if row.group}
    assert groups == set(admin.list_commands(click.Context(admin, parent=click.Context(cli))))


@pytest.mark.parametrize("group", dict.fromkeys(group for group, _ in COMMANDS))
def test_the_commands_of_a_group_take_what_pulsar_admin_takes(group: str) -> None:
    for of, name in COMMANDS:
        if of == group:
            check(group, name)


def check(group: str, name: str) -> None:
    command = command_of(group, name)
    rows = [row for row in ROWS if (row.group, row.command) == (group, name)]
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    assert len(arguments) == len({row.long for row in rows if row.kind == "positional"})
    assert all(argument.required and argument.nargs == 1 for argument in arguments)
    options = {name: param for param in command.params if isinstance(param, click.Option) for name in param.opts}
    expected = [row for row in rows if row.kind == "option"]
    for row in expected:
        assert row.names <= set(options), row
        (option,) = {id(options[name]): options[name] for name in row.names}.values()
        assert option.is_flag != row.takes_value, row
        assert option.required == row.required, row
        assert option.multiple == ("<" in row.type), row
    named = {name for row in expected for name in row.names}
    extra = {name for name, option in options.items() if option.name not in EVERYWHERE} - named
    assert extra <= COVERED.get((group, name), set()), f"{group} {name}"


def test_no_command_is_ours_alone_but_the_two_of_the_pips() -> None:
    context = click.Context(admin, parent=click.Context(cli))
    aliases = {("broker-stats", "destinations")}
    ours = set()
    for group in admin.list_commands(context):
        found = admin.get_command(context, group)
        assert isinstance(found, click.Group)
        ours |= {(group, name) for name in found.commands}
    assert ours - set(COMMANDS) == OF_THE_PIPS | aliases


def test_commands_hidden_in_pulsar_admin_are_hidden() -> None:
    hidden = {(row.group, row.command) for row in ROWS if row.kind == "command" and row.command and row.hidden}
    ours = {key for key in COMMANDS if command_of(*key).hidden}
    assert ours == hidden | {("schemas", "extract")}


def test_the_options_of_the_tool_itself() -> None:
    rows = [row for row in ROWS if not row.group and row.kind == "option"]
    options = {name for param in admin.params if isinstance(param, click.Option) for name in param.opts}
    options |= {"-h", "--help"}
    assert set().union(*(row.names for row in rows)) <= options


def test_every_command_says_what_it_does() -> None:
    context = click.Context(cli)
    for group in admin.list_commands(context):
        found = admin.get_command(context, group)
        assert isinstance(found, click.Group)
        assert found.help
        for name, command in found.commands.items():
            assert (command.help or "").partition("\n")[0].endswith((".", ".}")), f"{group} {name}: {command.help}"
            for param in command.params:
                assert (
                    isinstance(param, click.Argument) or param.name == "output" or bool(getattr(param, "help", ""))
                ), f"{group} {name} {param.opts}"
