"""`pulsarium explore`: its options, and its report."""

from __future__ import annotations

import random
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarium.cli.exec import look_for
from pulsarium.cli.explore.brokers import WITHOUT_EFFECT, RunBrokers, behind_a_proxy, new_brokers
from pulsarium.cli.grouped import GroupedCommand, options_of
from pulsarium.cli.lab.proxy import in_front_of
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.cli.serve import FILE, broker_options, network, pairs
from pulsarium.cli.terminal import progress

if TYPE_CHECKING:
    from pulsarium.broker.lab.explore.script import Script
    from pulsarium.broker.lab.explore.search import ExploredFailure, ExploreSettings

FAILURES: Final = Path(".pulsarium/explore-failures")
FOUND: Final = 1
search = options_of("Exploration")


def _left_out() -> str:
    from pulsarium.broker.lab.explore.report import left_out

    return left_out()


@click.command(
    cls=GroupedCommand,
    context_settings={"allow_interspersed_args": False},
    short_help="Run a command again and again, with a broker that does what Pulsar is allowed to do.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND [ARG]...")
@search("--runs", type=click.IntRange(min=1), default=200, show_default=True, metavar="N", help="Run COMMAND N times.")
@search("--seed", "number", type=int, metavar="N", help="Choose as this seed decides.  [default: a random one]")
@search("--only", multiple=True, metavar="KIND", help="Use only this kind of choice. May be repeated. See --list.")
@search("--without", multiple=True, metavar="KIND", help="Do not use this kind of choice. May be repeated.")
@search(
    "--rate",
    "rates",
    multiple=True,
    metavar="KIND=P",
    help="Choose this kind with probability P at each of its moments. May be repeated.",
)
@search(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="S",
    help="A run that takes longer than S seconds has failed.",
)
@search("--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Run N at a time.")
@search(
    "--persistent",
    is_flag=True,
    help="Start COMMAND once. For each run, COMMAND reads a line of JSON with URLs, and answers ok or failed REASON.",
)
@search(
    "--keep-going",
    is_flag=True,
    help="Go on after a failure, and report each distinct failure: another kind of choice, or another command.",
)
@search("--decide", multiple=True, metavar="TEXT", help="Make only this decision, in one run. May be repeated.")
@search("--script", type=FILE, metavar="FILE", help="Make only the decisions of FILE, one a line, in one run.")
@search(
    "--failures",
    type=FILE,
    default=FAILURES,
    show_default=True,
    metavar="FILE",
    help="Run the failed scripts of FILE first, and add new ones.",
)
@search("--list", "listing", is_flag=True, help="List the kinds of choices, and why each is legal.")
@in_front_of(_left_out)
@network(
    "--delete-topics",
    "deletes",
    is_flag=True,
    help="Delete all topics that a run opened, with all messages, behind the run. Needs --proxy-admin-url, and sends "
    "the token of PULSARIUM_TOKEN.",
)
@broker_options(free_ports=True, log_level="error", seed="--create")
def explore(
    command: tuple[str, ...],
    runs: int,
    number: int | None,
    only: tuple[str, ...],
    without: tuple[str, ...],
    rates: tuple[str, ...],
    timeout: float,
    jobs: int,
    persistent: bool,
    keep_going: bool,
    decide: tuple[str, ...],
    script: Path | None,
    failures: Path,
    listing: bool,
    proxy: str | None,
    proxy_admin_url: str | None,
    sure: bool,
    deletes: bool,
    log_level: str,
    log_format: str,
    **asked: Any,
) -> None:
    """Run COMMAND again and again, each time with a broker that does what Pulsar is allowed to do.

    Each run has a new broker in memory. A seed decides what the broker does, and when: lose a receipt with its
    connection, redeliver, unload a topic, crash and come back, and more (--list). A run fails when COMMAND ends with
    another exit code than 0, takes longer than --timeout, or when the history of the run breaks a promise of Pulsar.
    The failing run is repeated, and reduced to the least script that still fails.

    COMMAND finds the broker's URLs in PULSAR_SERVICE_URL and PULSAR_ADMIN_URL. It has to check its own result: that
    each order was handled, or handled once, and so on. The exit code is 0 when no run failed, 1 when one did, and 2
    when the command line is wrong.

    \b
    Run a program 200 times, the same way each time:
      pulsarium explore --runs 200 --seed 7 -- python orders.py
    Run one found script again:
      pulsarium explore --decide "receipt-lost SEND 3" -- python orders.py
    Only lose receipts and acknowledgements, often:
      pulsarium explore --only receipt-lost --only ack-lost --rate ack-lost=0.3 -- ./orders
    Report every distinct failure of 500 runs:
      pulsarium explore --runs 500 --keep-going -- python orders.py
    Start a Java program once for all runs:
      pulsarium explore --persistent --runs 2000 -- java -jar orders.jar
    List the kinds of choices:
      pulsarium explore --list
    Run a program through a proxy in front of a test cluster, with the choices that a network can make:
      pulsarium explore --proxy pulsar://staging:6650 -- python orders.py

    Runs through a proxy share the cluster. A program that uses the same topics in each run needs --delete-topics.

    The other options are those of pulsarium serve. --create FILE is its --seed FILE.
    """
    from pulsarium.broker.lab.explore import report

    if listing:
        click.echo("\n".join(report.listed()))
        return
    if not command:
        raise RequestRefused("explore: pass the COMMAND to run, behind --")
    look_for(command[0], "explore")
    given = _script(decide, script)
    if keep_going and given is not None:
        raise RequestRefused("explore: --keep-going has no effect on a given script, which is run once: leave one out")
    chances = dict(pairs(rates, "--rate"))
    if proxy is None:
        brokers = new_brokers(asked)
    else:
        named = {*only, *chances, *(each.kind for each in given or ())}
        brokers = behind_a_proxy(proxy, proxy_admin_url, asked, named, sure=sure, deletes=deletes)
    settings = _settings(runs if given is None else 0, number, only, (*without, *brokers.left_out), chances)

    from pulsarium.broker.lab.explore.failures import Failures
    from pulsarium.broker.lab.explore.script import ScriptError
    from pulsarium.broker.lab.explore.search import Search
    from pulsarium.cli.explore.application import EachTime, Persistent
    from pulsarium.cli.explore.run import Exploration
    from pulsarium.cli.logs import configure

    configure(log_level, log_format)
    kept = Failures(failures, shlex.join(command))
    try:
        known = [given] if given is not None else [*brokers.possible(kept.scripts())]
    except ScriptError as error:
        raise RequestRefused(f"--failures: {error}") from None
    kind = Persistent if persistent else EachTime
    with _progress(len(known) + settings.runs) as advanced:
        made = Search(settings, known, keep_going=keep_going, advanced=advanced)
        exploration = Exploration(
            brokers.begin, made, lambda: kind(command), timeout=timeout, jobs=jobs, clean=brokers.clean
        )
        brokers.run(exploration.run)
    if proxy is not None:
        click.echo(report.left_out())
    if given is None:
        click.echo("\n".join([f"seed {settings.seed}", *report.summary(made)]))
    if not made.findings:
        click.echo("nothing found")
        return
    for finding in made.findings:
        click.echo("\n".join(_found(finding, command, brokers)))
        if given is None:
            try:
                kept.add(finding.script)
            except OSError as error:
                raise RunRefused(f"--failures {failures}: {error.strerror}") from None
    if keep_going:
        click.echo("\n".join(report.totals(made)))
    sys.exit(FOUND)


for _option in explore.params:
    if isinstance(_option, click.Option) and _option.name in WITHOUT_EFFECT:
        _option.hidden = True


def _settings(
    runs: int, seed: int | None, only: Sequence[str], without: Sequence[str], rates: Mapping[str, str]
) -> ExploreSettings:
    from pulsarium.broker.lab.explore.search import ExploreSettings

    seed = random.randrange(2**32) if seed is None else seed
    try:
        given = {kind: float(rate) for kind, rate in rates.items()}
        return ExploreSettings(runs, seed, only, without, given)
    except ValueError as error:
        raise RequestRefused(f"explore: {error}") from None


def _script(decide: Sequence[str], path: Path | None) -> Script | None:
    """Return the given script, or None."""
    from pulsarium.broker.lab.explore.kinds import check
    from pulsarium.broker.lab.explore.script import ScriptError, read

    if path is None and not decide:
        return None
    try:
        lines = [] if path is None else path.read_text().splitlines()
        return check(read([*lines, *decide]))
    except (ScriptError, UnicodeDecodeError) as error:
        raise RequestRefused(f"explore: {error}") from None
    except OSError as error:
        raise RequestRefused(f"--script {path}: {error.strerror}") from None


@contextmanager
def _progress(length: int) -> Iterator[Any]:
    """Show a progress bar on a terminal, and yield the function that advances it."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    with progress(length, "exploring", sys.stderr) as bar:
        yield lambda: bar.update(1)


def _found(finding: ExploredFailure, command: Sequence[str], brokers: RunBrokers) -> Iterator[str]:
    from pulsarium.broker.lab.explore import report

    yield ""
    yield from report.about(finding)
    if finding.script:
        yield ""
        yield "Repeat:"
        yield f"  {report.explore_command(finding.script, command, brokers.options)}"
        if not brokers.options:
            yield f"  {report.pytest_mark(finding.script)}"
        yield from (f"  {line}" for line in report.fault_commands(finding.script))
    yield ""
    yield "Frames around the last decision:"
    yield from (f"  {line}" for line in report.frames(finding))
    output = finding.outcome.output.rstrip()
    if output:
        yield ""
        yield "The end of the output of COMMAND:"
        yield from (f"  {line}" for line in output.splitlines())
