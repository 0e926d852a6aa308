"""The `pulsarium client` group: its own options. Each command is loaded when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

from pulsarium.cli.admin.asked import says_who_calls
from pulsarium.cli.client.session import DEFAULT_URL, ClientRun, refuse
from pulsarium.cli.grouped import Commands

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "produce": ("produce", "Publish messages."),
    "consume": ("consume", "Receive messages of a subscription and acknowledge them."),
    "read": ("consume", "Show messages without a subscription."),
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


@click.command(cls=_Commands, short_help="Produce, consume and read messages.")
@click.option(
    "--url",
    metavar="URL",
    envvar=["PULSARIUM_SERVICE_URL", "PULSAR_SERVICE_URL"],
    show_envvar=True,
    help=f"Connect to this broker.  [default: {DEFAULT_URL}]",
)
@says_who_calls
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
