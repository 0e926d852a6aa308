"""`pulsarium completion`: print what makes a shell complete commands, options and names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.refusal import RequestRefused

SHELLS: Final = ("bash", "zsh", "fish")
PROGRAM: Final = "pulsarium"


@click.command(cls=GroupedCommand)
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the script that makes SHELL complete `pulsarium`: bash, zsh or fish. The default is the shell of $SHELL.

    The shell then completes commands and options, and asks the running broker for topics, subscriptions and faults. It
    completes keys of broker.conf behind --set. Without a broker, it completes the rest.

    \b
    In ~/.bashrc:
      eval "$(pulsarium completion bash)"
    In ~/.zshrc, behind compinit:
      eval "$(pulsarium completion zsh)"
    For fish, once:
      pulsarium completion fish > ~/.config/fish/completions/pulsarium.fish
    """
    if shell is None:
        shell = Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise RequestRefused(f"$SHELL names none of {', '.join(SHELLS)}; pass the name of your shell")
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    # click's own function for bash runs bash, to look at its version.
    click.echo(ShellComplete.source(kind(root, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE")))
