"""`pulsarium state`: all that a running broker keeps, at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pulsarium.cli.admin.errors import AdminError, ServerError
from pulsarium.cli.grouped import GroupedCommands
from pulsarium.cli.lab.broker import LabOf, of_broker
from pulsarium.cli.refusal import RequestRefused

FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(cls=GroupedCommands)
def state() -> None:
    """Forget everything, keep it in a file, bring it back, or begin with what a file describes.

    \b
    Between two tests:
      pulsarium state reset
    The same beginning for each:
      pulsarium state snapshot begin.snapshot
      pulsarium state restore begin.snapshot
    Tenants, topics, messages from a TOML or JSON file:
      pulsarium state seed orders.toml

    A snapshot has messages, subscriptions, schemas, policies: what `serve --data` keeps, without --data too. The
    pulsarium.db of a broker that has stopped can be restored as well. Clients stay connected; their producers and
    consumers are closed, and come back as after an unload.
    """


@state.command()
@click.option("--keep-lab", is_flag=True, help="Leave faults, masks and the clock as they are.")
@of_broker
def reset(lab: LabOf, keep_lab: bool) -> None:
    """Be as if freshly started."""
    lab.call("POST", "reset", **({"lab": "false"} if keep_lab else {}))


@state.command()
@click.argument("file", type=FILE)
@of_broker
def snapshot(lab: LabOf, file: Path) -> None:
    """Write everything to FILE."""
    body = lab.reply("POST", "snapshot").body
    try:
        file.write_bytes(body)
    except OSError as error:
        raise RequestRefused(f"{file}: {error.strerror}") from None


@state.command()
@click.argument("file", type=FILE)
@of_broker
def restore(lab: LabOf, file: Path) -> None:
    """Go on with what FILE holds."""
    _send(lab, "restore", file)


@state.command()
@click.argument("file", type=FILE)
@of_broker
def seed(lab: LabOf, file: Path) -> None:
    """Make what FILE describes, where it is not there yet."""
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
