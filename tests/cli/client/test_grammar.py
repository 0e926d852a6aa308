"""Commands and options of pulsar-client, as recorded from its own model."""

from __future__ import annotations

import csv
from pathlib import Path

import click
import pytest

from pulsarium.cli.client.main import client
from pulsarium.cli.main import cli

NAMES = ("produce", "consume", "read")
OF_ALL = {"-h", "--help", "-v", "--version"}


def recorded(command: str) -> list[list[str]]:
    with (Path(__file__).parent / "grammar.tsv").open() as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [row for row in rows if row[1] == command]


def options_of(command: click.Command) -> dict[str, click.Option]:
    return {name: param for param in command.params if isinstance(param, click.Option) for name in param.opts}


def test_the_commands_are_there() -> None:
    assert client.list_commands(click.Context(client, parent=click.Context(cli))) == list(NAMES)
    assert all(recorded(name) for name in NAMES)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_a_command_takes_what_pulsar_client_takes(name: str) -> None:
    command = client.get_command(click.Context(client, parent=click.Context(cli)), name) if name else client
    assert command is not None
    options = options_of(command)
    checked = 0
    for row in recorded(name):
        _, _, _, kind, long, _, short, _, required, _, notes, *_ = row
        names = {word for word in f"{long},{short}".split(",") if word}
        if kind != "option" or names <= OF_ALL:
            continue
        checked += 1
        assert names <= set(options), row
        (option,) = {id(options[word]): options[word] for word in names}.values()
        assert option.is_flag == ("arity 0" in notes), row
        assert option.required == (required == "required"), row
    assert checked > 5
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    assert len(arguments) == (1 if name else 0)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_every_option_says_what_it_does(name: str) -> None:
    command = client.get_command(click.Context(client, parent=click.Context(cli)), name) if name else client
    assert command is not None
    assert command.help
    assert "pulsarium client " in command.help
    assert all(option.help for option in options_of(command).values())
