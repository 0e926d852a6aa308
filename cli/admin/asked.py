"""Options that say which broker a command talks to, and who calls."""

from collections.abc import Callable
from typing import TypeVar

import click

from .session import DEFAULT_URL

Command = TypeVar("Command", bound=Callable[..., object])


def asks_which_broker(command: Command) -> Command:
    """Adds them: the command takes `admin_url` and `token`."""
    token = click.option(
        "--token",
        metavar="TOKEN",
        envvar="PULSARIUM_TOKEN",
        show_envvar=True,
        help="A token of who calls, or file:///... with one.",
    )
    url = click.option(
        "--admin-url",
        metavar="URL",
        envvar=["PULSARIUM_ADMIN_URL", "PULSAR_ADMIN_URL"],
        show_envvar=True,
        help=f"Where the broker answers HTTP.  [default: {DEFAULT_URL}]",
    )
    return url(token(command))
