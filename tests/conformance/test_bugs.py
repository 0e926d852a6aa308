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

FOUND_BY = {each.bug.removeprefix("raw "): each.name for each in SCENARIOS.values() if each.bug.startswith("raw ")}
ADAPTER = [
    sys.executable,
    "-P",
    "-c",
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('tests.conformance.raw')",
]
ROOT = str(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def sides() -> Iterator[Sides]:
    with our_brokers("pulsar-5.0") as brokers:
        yield brokers


def run(sides: Sides, folder: Path, name: str, *options: str) -> Result:
    (result,) = Runner([*ADAPTER, ROOT, *options], sides, "pulsar-5.0", folder).run(
        matching(SCENARIOS.values(), [name])
    )
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
