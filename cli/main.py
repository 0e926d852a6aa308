"""The `pulsarium` command.

It imports as little as possible, because the broker's start-up time begins here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.grouped import LazyGroup

_COMMANDS: Final[Mapping[str, str]] = {
    "serve": "pulsarium.cli.serve:serve",
    "exec": "pulsarium.cli.exec:exec_",
    "explore": "pulsarium.cli.explore.main:explore",
    "admin": "pulsarium.cli.admin.main:admin",
    "client": "pulsarium.cli.client.main:client",
    "status": "pulsarium.cli.look.status:status",
    "top": "pulsarium.cli.look.status:top",
    "topics": "pulsarium.cli.look.topics:topics",
    "tail": "pulsarium.cli.look.tail:tail",
    "compact": "pulsarium.cli.compact:compact",
    "storage": "pulsarium.cli.storage:storage",
    "abandon": "pulsarium.cli.abandon:abandon",
    "fault": "pulsarium.cli.lab.fault:fault",
    "proxy": "pulsarium.cli.lab.proxy:proxy",
    "clock": "pulsarium.cli.lab.clock:clock",
    "capture": "pulsarium.cli.lab.capture.main:capture",
    "wait": "pulsarium.cli.lab.wait:wait",
    "why": "pulsarium.cli.lab.why:why",
    "explain": "pulsarium.cli.explain:explain",
    "lint": "pulsarium.cli.lab.lint.main:lint",
    "check": "pulsarium.cli.lab.check:check",
    "mask": "pulsarium.cli.lab.mask:mask",
    "state": "pulsarium.cli.lab.state:state",
    "conformance": "pulsarium.cli.conformance:conformance",
    "mcp": "pulsarium.cli.mcp.main:mcp",
    "completion": "pulsarium.cli.completion:completion",
}


@click.group(
    cls=LazyGroup,
    places=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(VERSION, message="pulsarium %(version)s")
def cli() -> None:
    """Run an Apache Pulsar broker on this machine and in tests, without a JVM or a container.

    \b
    Start the broker, and connect any Pulsar client to pulsar://localhost:6650:
      pulsarium serve

    \b
    In a test, take free ports. The ready line and the ready file name them:
      pulsarium serve --port 0 --http-port 0 --ready-file broker.json

    \b
    Run a broker for as long as a test suite runs:
      pulsarium exec -- pytest tests

    \b
    Configure and inspect the broker, as with pulsar-admin, and exchange messages:
      pulsarium admin topics stats orders
      pulsarium client produce orders --messages first,second

    \b
    Look at a running broker, and at the messages of a topic:
      pulsarium status
      pulsarium tail orders

    \b
    Explain an error of a client, a log or a command:
      pulsarium explain ProducerBusy

    \b
    Show the options of a command:
      pulsarium serve --help
      pulsarium admin --help
    """


def main() -> None:
    """Run the command line of this process."""
    cli.main(prog_name="pulsarium")  # with the variable of `pulsarium completion`, click completes a line
