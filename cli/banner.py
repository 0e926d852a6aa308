"""Print what a person needs to know of a broker that has started. Scripts get the ready line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.durations import about
from pulsarium.cli.run import print_ready
from pulsarium.cli.terminal import styled

if TYPE_CHECKING:
    from pulsarium.broker.config import ServeOptions

_EVERY_ADDRESS: Final = ("//127.0.0.1:", "//0.0.0.0:", "//[::]:", "//[::1]:")
DEFAULT_URL: Final = "pulsar://localhost:6650"


def announce(options: ServeOptions, ready_line: str) -> None:
    """Print the banner on a terminal, and the ready line elsewhere."""
    print_ready(banner(options, ready_line) if sys.stdout.isatty() else ready_line)


def banner(options: ServeOptions, ready_line: str) -> str:
    """Return the banner of a broker with this ready line."""
    client, console, *over_tls = [_from_here(url) for url in ready_line.split()[2:]]
    data = "in memory, gone when the broker stops; --data DIR keeps them"
    if options.data is not None:
        data = f"in {options.data.absolute()}"
    rows = [("clients", client), ("console", console), ("messages", data)]
    if over_tls:
        rows.insert(2, ("TLS", " ".join(over_tls)))
    if options.brokers > 1:
        rows.append(("brokers", f"{options.brokers}, each with the next higher ports"))
    if options.config.brokerDeleteInactiveTopicsEnabled:
        age = about(options.config.max_inactive_seconds)
        keeps = "--set brokerDeleteInactiveTopicsEnabled=false keeps them"
        rows.append(("topics", f"vanish when nobody uses them for {age}; {keeps}"))
    where = "" if client == DEFAULT_URL else f"--url {client} "
    return "\n".join(
        [
            "",
            styled(f"Pulsarium {VERSION} is ready", bold=True),
            *(f"  {name:9} {text}" for name, text in rows),
            f"Try in another terminal: {styled(f'pulsarium client {where}produce orders -m first', bold=True)}",
            "Ctrl-C stops the broker.",
            "",
        ]
    )


def _from_here(url: str) -> str:
    """Return a URL as a browser on this machine takes it."""
    for address in _EVERY_ADDRESS:
        url = url.replace(address, "//localhost:")
    return url
