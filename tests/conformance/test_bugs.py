"""The kit finds each bug that is planted in a raw client, and nothing in the client without bugs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarium.conformance.run import Result, Runner, Verdict, matching
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.conformance.side import Sides, our_brokers

from .raw import BUGS

pytestmark = pytest.mark.heavy

FOUND_BY = {
    "misroute": "routing-vectors-four-segments",
    "low-bits": "routing-vectors-sixteen-segments",
    "ignores-layouts": "stale-layouts-are-dropped",
    "drops-unconfirmed": "sends-survive-a-split",
    "overtakes": "order-across-split-under-load",
    "sticky-keyless": "routing-keyless-round-robin",
    "reads-active-only": "queue-reads-sealed-segments",
    "acks-across-split": "queue-acknowledges-across-a-split",
    "acks-one-segment": "cumulative-ack-across-segments",
    "acks-too-much": "cumulative-ack-in-the-middle",
    "double-session": "double-sessions",
    "partial-checkpoint": "checkpoint-round-trip",
    "durable-reader": "checkpoint-leaves-no-cursor",
    "lazy-exclusive": "exclusive-access-is-eager",
    "stays-registered": "stream-leaves-cleanly",
    "generic-errors": "missing-topic-without-creation",
}
ADAPTER = [
    sys.executable,
    "-P",
    "-c",
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('tests.conformance.raw')",
]
ROOT = str(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def sides() -> Iterator[Sides]:
    with our_brokers("5.0") as brokers:
        yield brokers


def run(sides: Sides, folder: Path, name: str, *options: str) -> Result:
    (result,) = Runner([*ADAPTER, ROOT, *options], sides, "5.0", folder).run(matching(SCENARIOS.values(), [name]))
    return result


def test_each_bug_has_a_scenario() -> None:
    assert FOUND_BY.keys() == BUGS.keys()


@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_planted_bug_is_found(bug: str, sides: Sides, tmp_path: Path) -> None:
    assert run(sides, tmp_path, FOUND_BY[bug], "--bug", bug).verdict is Verdict.FAIL


@pytest.mark.parametrize("name", sorted({*FOUND_BY.values(), "broker-failover-of-a-queue", "stream-shares-segments"}))
def test_the_client_without_bugs_passes(name: str, sides: Sides, tmp_path: Path) -> None:
    result = run(sides, tmp_path, name)
    assert (result.verdict, result.reason) == (Verdict.PASS, "")
