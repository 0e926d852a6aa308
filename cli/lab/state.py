"""`pulsarium state`: reset, save, restore and seed the whole state of a running broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pulsarium.cli.admin.errors import AdminError, ServerError
from pulsarium.cli.grouped import GroupedCommands
from pulsarium.cli.lab.broker import LabOf, of_broker, sure
from pulsarium.cli.refusal import RequestRefused

FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(cls=GroupedCommands)
def state() -> None:
    """Reset the broker, save its state to a file, restore the state, or create what a file describes.

    \b
    Clean up between two tests:
      pulsarium state reset
    Begin each test with the same state:
      pulsarium state snapshot begin.snapshot
      pulsarium state restore begin.snapshot
    Create tenants, topics and messages from a TOML or JSON file:
      pulsarium state seed orders.toml

    A snapshot has messages, subscriptions, schemas and policies: all that `serve --data` stores, also without --data.
    The pulsarium.db of a stopped broker can be restored too. Clients stay connected. The broker closes their producers
    and consumers, which reconnect as after an unload.
    """


@state.command()
@click.option("--keep-lab", is_flag=True, help="Keep faults, masks and the clock.")
@sure
@of_broker
def reset(lab: LabOf, keep_lab: bool, sure: bool) -> None:
    """Delete all topics, subscriptions, policies and tenants. The broker is then as if it had just started.

    The command names the broker on stderr. It asks first on a terminal where no option names the broker.
    """
    lab.warn(sure=sure)
    lab.call("POST", "reset", **({"lab": "false"} if keep_lab else {}))


@state.command()
@click.argument("file", type=FILE)
@of_broker
def snapshot(lab: LabOf, file: Path) -> None:
    """Write the whole state to FILE."""
    body = lab.reply("POST", "snapshot").body
    try:
        file.write_bytes(body)
    except OSError as error:
        raise RequestRefused(f"{file}: {error.strerror}") from None


@state.command()
@click.argument("file", type=FILE)
@sure
@of_broker
def restore(lab: LabOf, file: Path, sure: bool) -> None:
    """Replace the whole state by the snapshot in FILE.

    The command names the broker on stderr. It asks first on a terminal where no option names the broker.
    """
    lab.warn(sure=sure)
    _send(lab, "restore", file)


@state.command()
@click.argument("file", type=FILE)
@of_broker
def seed(lab: LabOf, file: Path) -> None:
    """Create what FILE describes, in TOML or JSON. Existing topics stay as they are; policies of namespaces are set."""
    made = _send(lab, "seed", file)
    click.echo(", ".join(f"{count} {name}" for name, count in made.items() if count) or "nothing new")


def _send(lab: LabOf, what: str, file: Path) -> Any:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise RequestRefused(f"{file}: {error.strerror}") from None
    try:
        return lab.call("POST", what, content)
    except ServerError as error:
        said = error.message.replace("the body", str(file))
        raise AdminError(said if str(file) in said else f"{file}: {said}") from None
