"""`bin/pulsar-shell`: a loop over `admin` and `client`, with the commands of bin/pulsar-admin and bin/pulsar-client."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from pulsarium.cli.refusal import RequestRefused
from pulsarium.cli.terminal import guard

_HELP: Final = "admin ARGS, client ARGS: do what bin/pulsar-admin and bin/pulsar-client do. exit, quit: end the shell."


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-e", "--execute-command", metavar="LINE", help="Execute this line and end.")
@click.option("-f", "--filename", metavar="FILE", help="Execute the lines of this file, or of standard input (-).")
@click.option("--fail-on-error", is_flag=True, help="End at the first line that fails.")
@click.option("-np", "--no-progress", is_flag=True, expose_value=False, help="Ignored: lines are executed silently.")
@click.option(
    "-c", "--config", metavar="FILE", envvar="PULSAR_CLIENT_CONF", expose_value=False, help="The client.conf."
)
@click.pass_context
def shell(ctx: click.Context, execute_command: str | None, filename: str | None, fail_on_error: bool) -> None:
    """Execute lines of admin and client commands, until exit or the end of the input."""
    lines = [execute_command] if execute_command is not None else _lines(filename)
    status = 0
    for line in lines:
        words = _words(line)
        if words[:1] in (["exit"], ["quit"]):
            break
        failed = execute(words)
        status = failed or status
        if failed and fail_on_error:
            break
    ctx.exit(status if fail_on_error or execute_command is not None else 0)


def execute(words: Sequence[str]) -> int:
    """Execute one line, and return its exit code."""
    from pulsarium.cli.admin.main import admin
    from pulsarium.cli.client.main import client

    if not words:
        return 0
    command = {"admin": admin, "client": client}.get(words[0])
    if command is None:
        click.echo(_HELP, err=words[0] != "help")
        return 0 if words[0] == "help" else 2
    try:
        command.main(list(words[1:]), prog_name=words[0])
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        click.echo(f"{line.strip()}: {error}; close the quotation mark", err=True)
        return ["error"]


def _lines(filename: str | None) -> Iterable[str]:
    if filename in (None, "-"):
        return _typed()
    try:
        return Path(filename or "").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestRefused(f"--filename {filename}: {error}; name a text file") from None


def _typed() -> Iterator[str]:
    is_a_person = sys.stdin.isatty()
    if is_a_person:
        click.echo(_HELP)
    while True:
        if is_a_person:
            click.echo("pulsarium> ", nl=False)
        line = sys.stdin.readline()
        if not line:
            return
        yield line


def main(home: Path, arguments: Sequence[str]) -> None:
    """Run bin/pulsar-shell of the folder `home`."""
    from pulsarium.cli.pulsar.main import take_client_conf

    guard()
    take_client_conf(home)
    shell.main(arguments, prog_name="pulsar-shell")
