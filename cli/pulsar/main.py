"""`bin/pulsar`: a broker, the services of a cluster form, and tools; other subcommands are refused in one line.

`bin/pulsar-admin` and `bin/pulsar-client` are `pulsarium admin` and `pulsarium client`, with conf/client.conf.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.garbage import collect_seldom
from pulsarium.cli.refusal import CommandRefusal, RequestRefused
from pulsarium.cli.terminal import guard

# The module of each command, and its summary in the help, which loads no module.
_COMMANDS: Final = {
    "standalone": ("standalone", "Run a broker."),
    "tokens": ("tokens", "Create and inspect authentication tokens."),
    "broker": ("standalone", "Run the broker of a cluster form."),
    "initialize-cluster-metadata": ("initialize", "Tell the metadata store the URLs of a cluster."),
    "zookeeper": ("services", "Keep the metadata of a cluster form."),
    "configuration-store": ("services", "Do what zookeeper does, on another port."),
    "bookie": ("services", "Open the port of a bookie, which stores nothing."),
    "autorecovery": ("services", "Wait, because no ledger needs recovery."),
    "proxy": ("services", "Forward both ports to the broker."),
}


class _Pulsar(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            module = import_module(f"{__package__}.{_COMMANDS[cmd_name][0]}")
            command: click.Command = getattr(module, cmd_name.replace("-", "_"))
            return command
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            raise RequestRefused(f"bin/pulsar {args[0]} does not exist; use {', '.join(self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [(name, command.help or "") for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl([*((name, says) for name, (_, says) in _COMMANDS.items()), *own])


@click.group(cls=_Pulsar, context_settings={"help_option_names": ["-h", "--help"]})
def pulsar() -> None:
    """Run Pulsarium in place of Apache Pulsar's bin/pulsar."""


@pulsar.command("version", help="Print the version.")
def _version() -> None:
    click.echo(f"Current version of pulsarium is: {VERSION}")


@pulsar.command("help", help="Show this message.")
@click.pass_context
def _help(ctx: click.Context) -> None:
    assert ctx.parent is not None
    click.echo(ctx.parent.get_help())


def main(home: Path, arguments: Sequence[str]) -> None:
    """Run bin/pulsar of the folder `home`, and print a refusal in one line."""
    collect_seldom()
    guard()
    try:
        sys.exit(pulsar.main(arguments or ["help"], prog_name="pulsar", obj=home, standalone_mode=False))
    except click.ClickException as error:
        asked = getattr(error, "ctx", None)
        see = f" See bin/{asked.command_path} --help." if asked else ""
        refusal = error if isinstance(error, CommandRefusal) else RequestRefused(f"{error.format_message()}{see}")
        refusal.show()
        sys.exit(refusal.exit_code)


def admin(home: Path, arguments: Sequence[str]) -> None:
    """Run bin/pulsar-admin of the folder `home`."""
    from pulsarium.cli.admin.main import admin

    take_client_conf(home)
    admin.main(arguments, prog_name="pulsar-admin")


def client(home: Path, arguments: Sequence[str]) -> None:
    """Run bin/pulsar-client of the folder `home`."""
    from pulsarium.cli.client.main import client

    take_client_conf(home)
    client.main(arguments, prog_name="pulsar-client")


def take_client_conf(home: Path) -> None:
    """Name conf/client.conf of the folder, unless a variable names another."""
    os.environ.setdefault("PULSAR_CLIENT_CONF", str(home / "conf/client.conf"))
