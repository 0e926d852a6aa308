"""The `pulsarium client` group: its own options. Each command is loaded when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from pulsarium.cli.client.session import ClientRun, asks_which_url, refuse
from pulsarium.cli.grouped import LazyGroup

_COMMANDS: Final[Mapping[str, str]] = {
    "produce": "pulsarium.cli.client.produce:produce",
    "consume": "pulsarium.cli.client.consume:consume",
    "read": "pulsarium.cli.client.consume:read",
}


@click.command(cls=LazyGroup, places=_COMMANDS, short_help="Produce, consume and read messages.")
@asks_which_url
@click.option("-ml", "--memory-limit", metavar="SIZE", help="Ignored: accepted for pulsar-client's sake.")
@click.option("--listener-name", metavar="NAME", help="Connect to this listener of advertisedListeners.")
@click.option("--proxy-url", metavar="URL", help="Refused: not supported yet.")
@click.option("--proxy-protocol", type=click.Choice(["SNI"]), help="Refused: not supported yet.")
@click.pass_context
def client(ctx: click.Context, /, memory_limit: str | None, **given: Any) -> None:
    """Produce, consume and read messages from the command line, with the options of pulsar-client.

    Messages go to stdout, everything else to stderr. Exit code 0 is success, 1 a failure, 2 a wrong command line.

    \b
    Send two messages, and receive them:
      pulsarium client produce orders --messages first,second
      pulsarium client consume orders --subscription-name billing --subscription-position Earliest -n 2
    """
    refuse("--proxy-url", given.pop("proxy_url"), "connections through an SNI proxy are not supported yet")
    refuse("--proxy-protocol", given.pop("proxy_protocol"), "connections through an SNI proxy are not supported yet")
    ctx.obj = ClientRun(**given)
