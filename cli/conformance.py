"""`pulsarium conformance`: test clients for conformance with Pulsar's documents, and brokers with a real Pulsar."""

from __future__ import annotations

import random
import shlex
import signal
import tempfile
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from pulsarium.cli.grouped import Commands
from pulsarium.cli.interrupts import closing_at_ctrl_c
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.cli.terminal import styled
from pulsarium.conformance.recordings.releases import RELEASES
from pulsarium.conformance.skeletons import LANGUAGES, skeleton
from pulsarium.proto.errors import look_for

if TYPE_CHECKING:
    from pulsarium.conformance.clients import Release
    from pulsarium.conformance.columns import Cell, Run
    from pulsarium.conformance.recordings.replay import Verdict
    from pulsarium.conformance.scenario import Scenario

_LOG_LINES: Final = 30
_COLORS: Final = {"pass": "green", "fail": "red", "error": "red", "unsupported": "bright_black"}


@click.group(cls=Commands)
def conformance() -> None:
    """Test clients against what Pulsar's documents demand, and brokers against recordings of a real Pulsar.

    A scenario is one sentence of a document. An adapter is a small program that lets the scenarios drive a client.
    """


@conformance.command()
@click.option("--client", "names", metavar="NAMES", help="Run these clients, such as go,java@2.11.4.  [default: all]")
@click.option("--command", metavar="COMMAND", help="Run the adapter of this command instead.")
@click.option(
    "--scenario", metavar="NAMES", help="Run these scenarios: names, or globs such as routing-*.  [default: all]"
)
@click.option(
    "--profile",
    default="pulsar-5.0",
    show_default=True,
    metavar="NAMES",
    help="Use brokers with these profiles. Where texts of the specification contradict each other, a profile's release"
    " is followed.",
)
@click.option(
    "--mask",
    default="none",
    show_default=True,
    metavar="NAMES",
    help="Limit the brokers' protocol version: none, or a version such as v19.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=2, show_default=True, metavar="N", help="Run N columns at a time."
)
@click.option(
    "--brokers",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    metavar="N",
    help="Start N brokers for each cluster. With 2, a client must follow redirects of lookups.",
)
@click.option("--through-proxy", is_flag=True, help="Let clients reach the brokers through pulsarium proxy.")
@click.option("--shard", metavar="I/N", help="Run each N-th scenario, from the I-th on.")
@click.option("--seed", type=int, metavar="N", help="Run the scenarios in a random order, the same for the same N.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the report to DIR.  [default: a new folder]",
)
@click.option("--broker", metavar="URL", help="Use this running broker, behind a proxy. Needs --admin-url.")
@click.option("--admin-url", metavar="URL", help="Find the broker's REST API here.")
@click.option("--list", "show", is_flag=True, help="List the scenarios and exit.")
def client(
    names: str | None,
    command: str | None,
    scenario: str | None,
    profile: str,
    mask: str,
    jobs: int,
    brokers: int,
    through_proxy: bool,
    shard: str | None,
    seed: int | None,
    report: Path | None,
    broker: str | None,
    admin_url: str | None,
    show: bool,
) -> None:
    """Run scenarios with clients, by way of their adapters, and judge the clients.

    A column is a client on a profile behind a mask. Separate names with commas. The package has adapters for many
    clients: a name stands for the release that the package is tested with, and go@0.18.0 for another one, which is
    fetched and built at its first use. A client whose build tool is missing (go, cargo, mvn, a JDK, npm) is left out.
    For another client, write an adapter: see `pulsarium conformance new`.

    \b
    Run every scenario with every client:
      pulsarium conformance client

    \b
    Compare releases, as Pulsar 4.2 and 5.0 behave:
      pulsarium conformance client --client java@2.11.4,java --profile pulsar-4.2,pulsar-5.0

    \b
    Test a client of your own, against a running broker:
      pulsarium conformance client --command './adapter --verbose' \\
        --broker pulsar://localhost:6650 --admin-url http://localhost:8080

    \b
    Show that the proxy changes no verdict: the results are those without it:
      pulsarium conformance client --client python --through-proxy

    DIR receives conformance.jsonl, a line for each result as it comes; conformance.html, whose cells link to logs and
    frames; conformance.md, conformance.xml (JUnit), and badge.txt. The exit code is 1 when a scenario failed or had an
    error. A scenario that the client cannot do is reported as unsupported, and never as passed.

    Needs pip install "pulsarium[conformance]" for the clients of the package.
    """
    look_for("pulsarium conformance", "conformance", "cryptography")
    chosen = _scenarios(scenario, shard, seed)
    if show:
        for each in chosen:
            click.echo(f"{each.name:40} {each.requirement:12} {each.sentence}")
        return
    if (broker is None) != (admin_url is None):
        raise RequestRefused("--broker and --admin-url belong together: pass both")
    if command and names:
        raise RequestRefused("--client and --command exclude each other: pass one of them")
    from pulsarium.conformance.columns import Given, Run, limit_of

    profiles, masks = _profiles(profile, given=broker is not None), _split(mask)
    try:
        for name in masks:
            limit_of(name)
    except ValueError as error:
        raise RequestRefused(f"--mask: {error}") from None
    try:
        given = Given(broker, admin_url) if broker and admin_url else None
    except ValueError as error:
        raise RequestRefused(f"--broker {error}") from None
    if broker:
        for option in ("mask", "jobs", "brokers", "through_proxy"):
            if click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT:
                name = option.replace("_", "-")
                raise RequestRefused(f"--{name} is for the brokers of this process: leave it away with --broker")
    folder = _folder(report)
    clients = [] if command else _prepared(_split(names))
    what = Run(
        chosen, folder, clients, shlex.split(command or ""), profiles, masks, jobs, brokers, through_proxy, given
    )
    cells = _run(what)
    if any(each.is_bad for each in cells):
        raise SystemExit(1)


def _scenarios(names: str | None, shard: str | None, seed: int | None) -> list[Scenario]:
    from pulsarium.conformance.run import matching
    from pulsarium.conformance.scenarios import SCENARIOS

    try:
        chosen = matching(SCENARIOS.values(), (names or "").replace(",", " ").split())
    except ValueError as error:
        raise RequestRefused(str(error)) from None
    if seed is not None:
        random.Random(seed).shuffle(chosen)
    if shard is None:
        return chosen
    first, _, count = shard.partition("/")
    if not (first.isdigit() and count.isdigit() and 1 <= int(first) <= int(count)):
        raise RequestRefused(f"--shard {shard}: pass two numbers such as 1/4")
    return chosen[int(first) - 1 :: int(count)]


def _profiles(names: str, *, given: bool) -> list[str]:
    from pulsarium.broker.config import PROFILES

    profiles = _split(names)
    _check(profiles, PROFILES, "profile")
    if given and len(profiles) > 1:
        raise RequestRefused("--broker has one profile: pass the one of its release")
    return profiles


def _prepared(names: Sequence[str]) -> list[Release]:
    """Fetch and build clients. A client that was named must be there, and of all clients those that can be."""
    from pulsarium.conformance.clients import CLIENTS, NotBuilt, Release

    clients = []
    for name in names or CLIENTS:
        try:
            release = Release(name)
        except ValueError as error:
            raise RequestRefused(f"--client: {error}") from None
        if not release.is_built:
            click.echo(f"building {release.title}")
        try:
            release.prepare()
        except NotBuilt as error:
            if names:
                raise RunRefused(str(error)) from None
            click.echo(f"left out {release.title}: {error}")
        else:
            clients.append(release)
    if not clients:
        raise RunRefused("no client of the kit can run here, for the reasons above; --command runs an adapter of yours")
    return clients


def _run(what: Run) -> list[Cell]:
    """Run columns with a line for each result. After Ctrl-C, too, write reports of the results so far."""
    from pulsarium.conformance import report
    from pulsarium.conformance.columns import run

    # SIGTERM must unwind the run: the run stops its brokers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    count = len(what.scenarios) * len(what.columns())
    cells: list[Cell] = []

    def arrived(cell: Cell) -> None:
        cells.append(cell)
        column = f" {cell.column}" if cell.column.client else ""
        reason = f": {cell.reason}" if cell.reason else ""
        verdict = styled(str(cell.verdict), fg=_COLORS[cell.verdict])
        click.echo(f"{len(cells)}/{count}{column} {cell.scenario} {verdict}{reason}")

    try:
        with closing_at_ctrl_c():
            run(what, arrived)
    finally:
        if cells:
            for note in report.contradictions(cells):
                click.echo(f"contradiction, {note}")
            for path in report.write(cells, what.folder):
                click.echo(path)
            click.echo(report.summary(cells))
    return cells


@conformance.command()
@click.option("--command", required=True, metavar="COMMAND", help="Start the adapter with this command.")
def adapter(command: str) -> None:
    """Test an adapter itself: say which operations answer as they must.

    Each operation that the adapter names is tried once, against a broker of this process. Begin here, before the
    scenarios: a scenario judges the client, and takes its adapter for right.

    \b
    Test an adapter:
      pulsarium conformance adapter --command ./adapter

    The exit code is 1 when an operation does not answer as it must.
    """
    look_for("pulsarium conformance", "conformance", "cryptography")
    from pulsarium.conformance.selftest import check

    bad = 0
    with tempfile.TemporaryDirectory(prefix="pulsarium-adapter-") as name, closing_at_ctrl_c():
        folder = Path(name)
        for each in check(shlex.split(command), folder):
            color = "red" if each.is_bad else "green" if not each.reason else "bright_black"
            reason = f": {each.reason}" if each.reason else ""
            click.echo(f"{each.operation:24} {styled(str(each.verdict), fg=color)}{reason}")
            bad += each.is_bad
        if bad:
            click.echo(f"{bad} operations do not answer as they must. The end of the adapter's standard error:")
            log = (folder / "adapter.log").read_text("utf-8", "replace").splitlines()
            click.echo("\n".join(log[-_LOG_LINES:]) or "(empty)")
    if bad:
        raise SystemExit(1)


@conformance.command()
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...")
@click.option("--url", metavar="URL", help="The broker's service URL, pulsar://HOST:PORT.")
@click.option("--admin-url", metavar="URL", help="The broker's REST API.")
@click.option(
    "--release",
    type=click.Choice(list(RELEASES)),
    default="4.2.4",
    show_default=True,
    help="Compare with recordings of this release. Those of 5.0.0-M1 are of scalable topics.",
)
@click.option(
    "--conf",
    default="lab",
    show_default=True,
    metavar="NAME",
    help="Compare with the recorded broker that had this broker.conf: lab, stock (stock switches, a keep-alive of"
    " 3 s) or auth (tokens); of scalable topics lab, slow or off.",
)
@click.option("--show-conf", is_flag=True, help="Print that broker.conf, for the broker to test, and exit.")
@click.option("--texts", is_flag=True, help="Compare the wording of errors too.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the report to DIR.  [default: a new folder]",
)
@click.option("--list", "show", is_flag=True, help="List the scenarios and exit.")
def broker(
    scenarios: Sequence[str],
    url: str | None,
    admin_url: str | None,
    release: str,
    conf: str,
    show_conf: bool,
    texts: bool,
    report: Path | None,
    show: bool,
) -> None:
    """Compare a broker with a real Pulsar, frame by frame: for authors of brokers and proxies.

    The frames that a raw client exchanged with a real Pulsar were recorded. The same client plays them against your
    broker, and each answer is compared: fields of frames, their order on a connection, closings, REST answers. Times,
    ids of ledgers, ports, generated names and what Pulsar does not repeat itself are not compared. SCENARIO is a
    number, a range such as 025-033 or a part of a name; without one, all are played.

    Give the broker the settings of the recorded one, and begin with an empty broker: scenarios create the tenant tr,
    and delete and create namespaces in it. What differs is played once again, because a busy machine may not grant a
    broker the time that a scenario gives it; scenarios of scalable topics are not, because a real Pulsar remembers
    deleted ones. Name a broker of this machine by 127.0.0.1: on Linux, connections then wait for each other, so that
    the broker reads in the order of the recording. Otherwise a few scenarios with two connections differ by chance.

    \b
    Start a broker with the recorded settings, and compare it:
      pulsarium conformance broker --show-conf > broker.conf
      pulsarium conformance broker --url pulsar://127.0.0.1:6650 --admin-url http://127.0.0.1:8080

    \b
    Some scenarios:
      pulsarium conformance broker --list
      pulsarium conformance broker --url pulsar://127.0.0.1:6650 --admin-url http://127.0.0.1:8080 seek 025-033

    DIR receives NAME.jsonl, the frames of your broker; NAME.diff, the answers that differ, with - for those of the
    real Pulsar; and broker.xml (JUnit). The exit code is 1 when a scenario differs.
    """
    from pulsarium.conformance.recordings import replay
    from pulsarium.conformance.recordings.catalogue import CatalogueError, named, recorded

    chosen = RELEASES[release]
    if conf not in chosen.configs:
        raise RequestRefused(f"--conf {conf}: recordings of {release} have {', '.join(chosen.configs)}")
    if show_conf:
        click.echo(chosen.config(conf).read_text(), nl=False)
        return
    try:
        wanted = named(recorded(chosen, conf), scenarios)
    except CatalogueError as error:
        raise RequestRefused(f"{error} (--list shows those of --conf {conf})") from None
    if show:
        for each in wanted:
            click.echo(f"{each.name:40} {each.purpose}")
        return
    if url is None or admin_url is None:
        raise RequestRefused("pass both --url and --admin-url of the broker to compare")
    try:
        given = replay.Broker.running(url, admin_url)
    except replay.BrokerError as error:
        raise RunRefused(str(error)) from None
    folder = _folder(report)
    with closing_at_ctrl_c():
        again = replay.Replay(folder, texts, chosen)
        verdicts = again.run(
            wanted, lambda _: nullcontext(given), 1, _tell, lambda verdict: chosen.scalable or verdict.equal
        )
    for path in replay.write(verdicts, folder):
        click.echo(path)
    click.echo(replay.summary(verdicts))
    if not all(each.equal for each in verdicts):
        raise SystemExit(1)


def _tell(verdict: Verdict) -> None:
    click.echo(styled(verdict.line, fg="green" if verdict.equal else "red"))
    if verdict.trouble:
        click.echo(f"    {verdict.trouble}")


@conformance.command()
@click.option(
    "--language", required=True, type=click.Choice(list(LANGUAGES)), help="Print an adapter in this language."
)
def new(language: str) -> None:
    """Print the skeleton of an adapter, to fill in.

    \b
    Begin an adapter in Go, and test what it has:
      pulsarium conformance new --language go > main.go
      go build -o adapter main.go
      pulsarium conformance adapter --command ./adapter

    docs/adapters.md teaches the way from there.
    """
    click.echo(skeleton(language), nl=False)


def _folder(report: Path | None) -> Path:
    folder = (report or Path(tempfile.mkdtemp(prefix="pulsarium-conformance-"))).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunRefused(f"--report {folder}: {error.strerror}") from None
    return folder


def _split(given: str | None) -> list[str]:
    return [name for name in (each.strip() for each in (given or "").split(",")) if name]


def _check(names: Sequence[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise RequestRefused(f"no {what} {name}; there are {', '.join(known)}")
