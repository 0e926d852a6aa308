"""Refuse a command in one line on stderr: `pulsarium: <what happened, and what to do next>`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from pulsarium.cli.interrupts import INTERRUPTED
from pulsarium.proto.errors import MissingExtra


class CommandRefusal(click.ClickException):
    """End the command with `pulsarium: <message>`, without usage or traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"pulsarium: {self.message}", file=file or sys.stderr)


class RequestRefused(CommandRefusal):
    """The command line or the configuration is wrong."""

    exit_code = 2


class RunRefused(CommandRefusal):
    """The command line is right, but a port, a directory or the disk cannot be used."""

    exit_code = 1


@contextmanager
def one_line(wrong_command_line: type[CommandRefusal] = RequestRefused) -> Iterator[None]:
    """Turn click's own errors into a `CommandRefusal`, and Ctrl-C into exit code 130.

    `wrong_command_line` gives the exit code of click's complaints about the command line.
    """
    try:
        yield
    except CommandRefusal:
        raise
    except click.UsageError as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            click.echo(error.format_message(), err=True)
            raise click.exceptions.Exit(wrong_command_line.exit_code) from None
        raise wrong_command_line(_with_help(error)) from None
    except click.ClickException as error:
        raise RunRefused(error.format_message()) from None
    except MissingExtra as error:
        raise RunRefused(str(error)) from None
    except (KeyboardInterrupt, click.Abort):
        raise click.exceptions.Exit(INTERRUPTED) from None


def _with_help(error: click.UsageError) -> str:
    said = error.format_message().strip().rstrip(".") + _where_it_stands(error)
    return said if error.ctx is None else f"{said} (see {error.ctx.command_path} --help)"


def _where_it_stands(error: click.UsageError) -> str:
    """Return a hint at the parent command that takes the misplaced option, or "" when none does."""
    if error.ctx is None or not isinstance(error, click.NoSuchOption):
        return ""
    context = error.ctx.parent
    while context is not None:
        if any(error.option_name in param.opts for param in context.command.params):
            return f"; put it directly after `{context.command_path}`"
        context = context.parent
    return ""
