"""The `pulsarium client` command: its own options; a command is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

from pulsarium.cli.admin.asked import says_who_calls
from pulsarium.cli.client.session import DEFAULT_URL, Session, refuse
from pulsarium.cli.grouped import Commands

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "produce": ("produce", "Publish messages."),
    "consume": ("consume", "Receive messages of a subscription and acknowledge them."),
    "read": ("consume", "Show messages, without a subscription."),
}


class _Commands(Commands):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"{__package__}.{_COMMANDS[cmd_name][0]}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in _COMMANDS.items()])


@click.command(cls=_Commands, short_help="Produce, consume and read.")
@click.option(
    "--url",
    metavar="URL",
    envvar=["PULSARIUM_SERVICE_URL", "PULSAR_SERVICE_URL"],
    show_envvar=True,
    help=f"Where the broker is.  [default: {DEFAULT_URL}]",
)
@says_who_calls
@click.option("-ml", "--memory-limit", metavar="SIZE", help="Taken for pulsar-client's sake; no effect.")
@click.option("--listener-name", metavar="NAME", help="Connect to this listener of advertisedListeners.")
@click.option("--proxy-url", metavar="URL", help="Not there yet.")
@click.option("--proxy-protocol", type=click.Choice(["SNI"]), help="Not there yet.")
@click.pass_context
def client(ctx: click.Context, /, memory_limit: str | None, **given: Any) -> None:
    """Produce, consume and read from the command line, in the grammar of pulsar-client.

    Messages go to stdout, what was done to stderr. Exit code 0 is success, 1 a failure, 2 a wrong command line.

    \b
    Two messages, and back again:
      pulsarium client produce orders --messages first,second
      pulsarium client consume orders --subscription-name billing --subscription-position Earliest -n 2
    """
    refuse("--proxy-url", given.pop("proxy_url"), "connecting through an SNI proxy is not there yet")
    refuse("--proxy-protocol", given.pop("proxy_protocol"), "connecting through an SNI proxy is not there yet")
    ctx.obj = Session(**given)
