"""`pulsarium mask`: change how a running broker presents itself to some clients."""

from __future__ import annotations

import json
from typing import Any

import click

from pulsarium.broker.lab.arguments import Whose, json_name
from pulsarium.cli.grouped import GroupedCommands
from pulsarium.cli.lab.broker import LabOf, as_json, listed, of_broker, taking
from pulsarium.cli.refusal import RequestRefused


@click.group(cls=GroupedCommands)
def mask() -> None:
    """Present a broker as an older or smaller one to some of its clients.

    \b
    Speak protocol version 17 with the C++ core from now on:
      pulsarium mask add --client-version 'Pulsar-CPP*' --max-protocol-version 17
    Look like Pulsar 2.11 to all clients (version, feature flags and commands; behavior stays the same):
      pulsarium mask add --profile pulsar-2.11 --disconnect

    A mask applies to connections that are opened after it was added, for their whole life. When several masks match a
    connection, the newest one applies.
    """


@mask.command()
@click.option("--profile", metavar="NAME", help="Use a whole profile, with a name of `serve --profile`.")
@click.option("--max-protocol-version", type=click.IntRange(0, 22), metavar="N", help="Speak no higher version.")
@click.option("--flag", "flags", multiple=True, metavar="NAME=BOOL", help="Set a feature flag of the broker.")
@click.option(
    "--client-flag",
    "client_flags",
    multiple=True,
    metavar="NAME=BOOL",
    help="Override a feature flag that the client sends.",
)
@click.option("--allow", "allowed", multiple=True, metavar="COMMAND", help="Accept only these commands (SEND, ...).")
@click.option(
    "--unknown-error", metavar="ERROR", help="Answer other commands with this error, instead of closing the connection."
)
@taking(Whose)
@click.option("--disconnect", is_flag=True, help="Close the open connections that match.")
@of_broker
def add(
    lab: LabOf, flags: tuple[str, ...], client_flags: tuple[str, ...], allowed: tuple[str, ...], **given: Any
) -> None:
    """Add a mask, and print its id."""
    given["flags"], given["client_flags"] = _switches("--flag", flags), _switches("--client-flag", client_flags)
    given["allowed"], given["disconnect"] = list(allowed) or None, given["disconnect"] or None
    body = {json_name(name): value for name, value in given.items() if value not in (None, {})}
    click.echo(lab.call("POST", "masks", body)["id"])


@mask.command(name="list")
@as_json
@of_broker
def list_masks(lab: LabOf, as_json: bool) -> None:
    """List all masks, and how many connections have received each."""
    found = lab.call("GET", "masks")
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    listed(map(_line, found), "masks")


@mask.command()
@click.argument("ids", nargs=-1, type=int, metavar="ID...")
@click.option("--all", "everything", is_flag=True, help="Remove every mask.")
@of_broker
def remove(lab: LabOf, ids: tuple[int, ...], everything: bool) -> None:
    """Remove masks. Open connections keep theirs."""
    if bool(ids) is everything:
        raise RequestRefused("pass the IDs of the masks to remove, or --all")
    if everything:
        lab.call("DELETE", "masks")
    for each in ids:
        lab.call("DELETE", f"masks/{each}")


def _switches(option: str, given: tuple[str, ...]) -> dict[str, bool]:
    found = {}
    for each in given:
        name, _, value = each.partition("=")
        if value not in ("true", "false"):
            raise RequestRefused(f"{option} {each}: write NAME=true or NAME=false")
        found[name] = value == "true"
    return found


def _line(mask: dict[str, Any]) -> str:
    number, hits = mask.pop("id"), mask.pop("hits")
    said = ", ".join(f"{name} {_text(value)}" for name, value in mask.items())
    return f"{number}  {hits} connection{'' if hits == 1 else 's'}  {said}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
