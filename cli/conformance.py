"""`pulsarium conformance`: test clients for conformance with what Pulsar's documents demand."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulsarium.cli.grouped import Commands
from pulsarium.cli.interrupts import closing_at_ctrl_c
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.cli.terminal import progress, styled

if TYPE_CHECKING:
    from pulsarium.conformance.protocol import Client
    from pulsarium.conformance.run import Result
    from pulsarium.conformance.scenario import Scenario


@click.group(cls=Commands)
def conformance() -> None:
    """Test clients for conformance with what Pulsar's documents demand."""


@conformance.command()
@click.option("--command", metavar="COMMAND", help="Start the adapter with this command.")
@click.option(
    "--scenario", metavar="NAMES", help="Run these scenarios: names, or globs such as routing-*. [default: all]"
)
@click.option(
    "--spec",
    type=click.Choice(["5.0", "5.0-m1"]),
    default="5.0",
    show_default=True,
    help="Follow this release where texts of the specification contradict each other.",
)
@click.option(
    "--report", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write the report to DIR."
)
@click.option("--broker", metavar="URL", help="Use this running broker, behind a proxy. Needs --admin-url.")
@click.option("--admin-url", metavar="URL", help="Find the broker's REST API here.")
@click.option("--list", "show", is_flag=True, help="List the scenarios and exit.")
def client(
    command: str | None,
    scenario: str | None,
    spec: str,
    report: Path | None,
    broker: str | None,
    admin_url: str | None,
    show: bool,
) -> None:
    """Run scenarios with a client, by way of its adapter, and judge the client.

    An adapter is a program that reads requests from its standard input and writes answers to its standard output, one
    JSON object a line. docs/scalable-topics.md describes the protocol. The brokers run in this process.

    \b
    Test a client:
      pulsarium conformance client --command './adapter --verbose' --report build/conformance
    \b
    Test the client of this package, as Pulsar 5.0.0-M1 behaves:
      pulsarium conformance client --command 'python -m pulsarium.conformance.adapters.ours' --spec 5.0-m1

    DIR receives conformance.html, conformance.xml (JUnit) and the adapter's log of each scenario. The exit code is 1
    when a scenario failed or had an error. A scenario that the client cannot do is reported as unsupported, and never
    as passed.
    """
    from pulsarium.conformance.run import matching
    from pulsarium.conformance.scenarios import SCENARIOS

    try:
        chosen = matching(SCENARIOS.values(), [name for name in (scenario or "").replace(",", " ").split() if name])
    except ValueError as error:
        raise RequestRefused(str(error)) from None
    if show:
        for each in chosen:
            click.echo(f"{each.name:40} {each.requirement:12} {each.sentence}")
        return
    if not command:
        raise RequestRefused("--command is missing: pass the command that starts the client's adapter")
    folder = report or Path(tempfile.mkdtemp(prefix="pulsarium-conformance-"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunRefused(f"--report {folder}: {error.strerror}") from None
    if (broker is None) != (admin_url is None):
        raise RequestRefused("--broker and --admin-url belong together: pass both")
    results, about = _run(shlex.split(command), chosen, spec, folder, broker, admin_url)
    _tell(results, about, spec, folder)
    if any(each.is_bad for each in results):
        raise SystemExit(1)


def _run(
    command: Sequence[str],
    scenarios: Sequence[Scenario],
    spec: str,
    folder: Path,
    broker: str | None,
    admin_url: str | None,
) -> tuple[list[Result], Client | None]:
    from pulsarium.conformance.run import Runner
    from pulsarium.conformance.side import given_broker, our_brokers

    try:
        brokers = given_broker(broker, admin_url, folder) if broker and admin_url else our_brokers(spec)
    except ValueError as error:
        raise RequestRefused(f"--broker {error}") from None
    with (
        closing_at_ctrl_c(),
        brokers as side,
        progress(len(scenarios), "scenarios", sys.stdout, show_pos=True) as bar,
    ):
        runner = Runner(command, side, spec, folder)
        results = runner.run(scenarios, lambda result: bar.update(1))
        return results, runner.client


def _tell(results: Sequence[Result], about: Client | None, spec: str, folder: Path) -> None:
    from pulsarium.conformance import report

    for each in results:
        if each.is_bad:
            click.echo(f"{styled(str(each.verdict), fg='red')} {each.scenario.name}: {each.reason}")
    for note in report.contradictions(results):
        click.echo(f"contradiction, run as {spec}: {note}")
    for name, text in (
        ("conformance.html", report.html(results, about, spec)),
        ("conformance.xml", report.junit(results, about, spec)),
    ):
        (folder / name).write_text(text, "utf-8")
        click.echo(folder / name)
    click.echo(report.summary(results))
