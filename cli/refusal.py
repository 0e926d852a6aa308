"""How a command says no: one line on stderr that names what to change."""

import sys
from typing import IO, Any

import click


class Refusal(click.ClickException):
    """Ends the command with `pulsarium: <message>`, without usage or traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"pulsarium: {self.message}", file=file or sys.stderr)


class RequestRefused(Refusal):
    """The command line or the configuration asks for what cannot be."""

    exit_code = 2


class RunRefused(Refusal):
    """The request is fine, but a port, a directory or the disk is not."""

    exit_code = 1
