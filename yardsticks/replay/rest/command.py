"""scripts/conformance rest: makes the recorded calls of the admin API of a broker and compares the answers."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pulsarium.conformance.recordings.replay import Broker, BrokerError
from tests.foreign.broker_process import Address, AddressError

from ..brokers import pulsarium
from ..expectations import DIFFERENCES
from . import excuses, report
from .player import Played, play
from .recording import Call, load

ABOUT = """\
Makes the calls of the admin API that were recorded on a real broker (yardsticks/replay/rest/recorded) of a fresh
`pulsarium serve --profile pulsar-4.2` with that broker's settings, and compares status, headers and each value of the
answer, the texts of errors included. Masked: times, ports, ledger ids (by first appearance) and generated names. A
second broker with tokens and authorization answers the calls of `auth`. All are made, for they build on each other;
name resources to see those only.

  scripts/conformance rest                        how many are equal, and what differs beyond differs.toml
  scripts/conformance rest -v persistent lookup   of these resources; -v shows each value that differs

Exit code 0: what differs is listed in differs.toml, with its values. 1: it is not.
"""


def arguments(words: Sequence[str]) -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("conformance rest", description=ABOUT, formatter_class=layout)
    parser.add_argument("resources", nargs="*", metavar="RESOURCE", help="persistent, namespaces, auth, ...")
    parser.add_argument("--against", metavar="PULSAR_URL,HTTP_URL", help="a fresh broker that runs already; no auth")
    parser.add_argument("-v", "--verbose", action="store_true", help="show each difference")
    return parser.parse_args(words)


def played_on(broker: Broker, *, auth: bool) -> tuple[list[Played], list[Call]]:
    """Return the answers of a broker, and the calls that were left out because ours has no such route."""
    lines = load(auth=auth)
    calls = [line for line in lines if isinstance(line, Call) and line.recorded]
    absent = excuses.absent_calls(calls) if broker.is_own else []
    played = list(play(broker, lines, absent))
    if gone := broker.obituary():
        raise BrokerError(gone)
    return played, absent


def everything(folder: Path) -> report.Findings:
    """Play both recordings, on two fresh brokers of our own."""
    played: list[Played] = []
    absent: list[Call] = []
    for profile in ("lab", "auth"):
        with pulsarium(profile, folder, f"rest-{profile}") as broker:
            answers, left_out = played_on(broker, auth=profile == "auth")
            played += answers
            absent += left_out
    return report.judge(played, absent)


def run(options: argparse.Namespace, folder: Path) -> int:
    known = excuses.load()
    begin = time.monotonic()
    if options.against:
        given = Address.parse(options.against)
        findings = report.judge(*played_on(Broker(given.service_url, given.admin_url), auth=False))
    else:
        findings = everything(folder)
    wrong = report.unexcused(findings, known)
    for verdict in findings.unequal:
        if options.resources and verdict.call.resource not in options.resources:
            continue
        for said in report.lines(verdict):
            reason = known.reason_of(said)
            if options.verbose or said in wrong:
                print(said + (f"  (known: {reason})" if reason else ""))
    for said in known.idle(findings.differences):
        print(f"differs.toml lists what is equal now: {said}")
    print(report.table(findings, options.resources))
    print(report.absences(findings, known))
    print(report.summary(findings, wrong, time.monotonic() - begin))
    return 1 if wrong else 0


def main(words: Sequence[str]) -> int:
    options = arguments(words)
    try:
        if silent := excuses.undocumented(excuses.load(), DIFFERENCES.read_text()):
            print("conformance: docs/differences.md does not hold these reasons of differs.toml:", *silent, sep="\n  ")
        with tempfile.TemporaryDirectory(prefix="pulsarium-conformance-") as folder:
            return run(options, Path(folder))
    except (BrokerError, AddressError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
