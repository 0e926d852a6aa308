"""`pulsarium matrix`: test which features work with which client."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from pulsarium.cli.interrupts import closing_at_ctrl_c
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.cli.terminal import progress, styled
from pulsarium.proto.errors import look_for

if TYPE_CHECKING:
    from pulsarium.matrix.brokers import Address
    from pulsarium.matrix.cell import Result
    from pulsarium.matrix.runner import Run

A = TypeVar("A")
T = TypeVar("T")
_PROFILES: Final = ("pip", "pulsar-5.0", "pulsar-4.2")


@click.command()
@click.option(
    "--client",
    metavar="NAMES",
    help="Run these clients: python, java, go, rust, websocket, node, ours.  [default: all]",
)
@click.option(
    "--scenario", metavar="NAMES", help="Run these scenarios: names, or globs such as schema-*.  [default: all]"
)
@click.option(
    "--profile",
    default="pip",
    show_default=True,
    metavar="NAMES",
    help=f"Use these profiles: {', '.join(_PROFILES)}.",
)
@click.option(
    "--mask",
    default="none",
    show_default=True,
    metavar="NAMES",
    help="Use these masks: none, or a version such as v19.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=2, show_default=True, metavar="N", help="Run N columns at a time."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Write the results to DIR.  [default: a new folder]"
)
@click.option("--broker", metavar="URLS", help="Use the running broker of pulsar://...,http://...")
@click.option("--list", "show", is_flag=True, help="List the scenarios and exit.")
def matrix(
    client: str | None,
    scenario: str | None,
    profile: str,
    mask: str,
    jobs: int,
    out: Path | None,
    broker: str | None,
    show: bool,
) -> None:
    """Show which features work with which client, by small programs of many clients.

    A column is a client on a profile behind a mask. Each column has its own brokers, and each cell its own namespace.
    Separate names with commas. A client whose build tool is missing (go, cargo, mvn, a JDK, npm) is skipped, and the
    table says so. The first run builds the programs, which takes a minute or more.

    \b
    Run every scenario with every client:
      pulsarium matrix
    \b
    Run some scenarios, as the released broker behaves, and with an older protocol:
      pulsarium matrix --client python,go --scenario 'seek-*,reader' --profile pulsar-4.2 --mask none,v19
    \b
    Run the same programs against another broker, to compare:
      pulsarium matrix --broker pulsar://localhost:6650,http://localhost:8080

    DIR receives matrix.html, whose cells link to their log and capture, matrix.md, matrix.json and matrix.parquet. The
    exit code is 1 when a cell failed.

    Needs pip install "pulsarium[matrix]".
    """
    from pulsarium.matrix.scenarios import SCENARIOS

    if show:
        for each in SCENARIOS:
            click.echo(f"{each.name:24} {each.contract}")
        return
    look_for("pulsarium matrix", "matrix", "cryptography", "jwt")
    from pulsarium.matrix.report import write

    what = _run(client, scenario, profile, mask, jobs, out, broker)
    try:
        what.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunRefused(f"--out {what.folder}: {error.strerror}") from None
    results = _with_progress(what)
    _tell(results)
    for path in write(results, what.folder):
        click.echo(path)
    if any(result.outcome.is_bad for result in results):
        raise SystemExit(1)


def _run(
    client: str | None, scenario: str | None, profile: str, mask: str, jobs: int, out: Path | None, broker: str | None
) -> Run:
    from pulsarium.matrix.brokers import Mask
    from pulsarium.matrix.clients import CLIENTS
    from pulsarium.matrix.runner import Run
    from pulsarium.matrix.scenarios import matching

    scenarios = _asked(matching, _names(scenario))
    masks = [_asked(Mask.named, name) for name in _names(mask)]
    clients = _known(_names(client) or list(CLIENTS), CLIENTS, "client")
    profiles = _known(_names(profile), _PROFILES, "profile")
    folder = out or Path(tempfile.mkdtemp(prefix="pulsarium-matrix-"))
    return Run(scenarios, clients, profiles, masks, folder.absolute(), jobs, _address(broker) if broker else None)


def _with_progress(what: Run) -> list[Result]:
    from pulsarium.matrix.runner import run

    # SIGTERM must unwind the run: the run stops its brokers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with closing_at_ctrl_c(), progress(what.cells, "cells", sys.stdout, show_pos=True) as bar:
        return run(what, lambda result: bar.update(1))


def _tell(results: Sequence[Result]) -> None:
    from pulsarium.matrix.cell import Outcome
    from pulsarium.matrix.report import behind

    for result in results:
        if result.outcome.is_bad:
            click.echo(f"{styled(str(result.outcome), fg='red')} {result.cell}: {result.reason}")
    skipped = {result.cell.client: result.reason for result in results if result.outcome is Outcome.SKIPPED}
    for client, reason in skipped.items():
        click.echo(f"skipped {client}: {reason}")
    click.echo(behind(results))


def _names(given: str | None) -> list[str]:
    return [name for name in (each.strip() for each in (given or "").split(",")) if name]


def _known(names: list[str], known: Collection[str], what: str) -> list[str]:
    for name in names:
        if name not in known:
            raise RequestRefused(f"no {what} {name}; there are {', '.join(known)}")
    return names


def _asked(make: Callable[[A], T], given: A) -> T:
    try:
        return make(given)
    except (LookupError, ValueError) as error:
        raise RequestRefused(str(error.args[0])) from None


def _address(given: str) -> Address:
    from pulsarium.matrix.brokers import Address

    urls = _names(given)
    services, https = ([url for url in urls if url.startswith(scheme)] for scheme in ("pulsar://", "http://"))
    if not services or not https or len(services) + len(https) != len(urls):
        raise RequestRefused("--broker takes pulsar://HOST:PORT,http://HOST:PORT")
    return Address(services, https)
