"""Plants the bug that each scenario names between the kit and our own client: the scenario must find it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarium.conformance import scenario as stage
from pulsarium.conformance.run import Runner, Verdict
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.conformance.side import Sides, our_brokers

OURS = [sys.executable, "-P", "-m", "pulsarium.conformance.adapters.ours"]
BETWEEN = [each.name for each in SCENARIOS.values() if not each.bug.startswith("raw ")]
"""Scenarios whose bug is not one of a raw client, which test_bugs has."""


@pytest.fixture(scope="module")
def sides() -> Iterator[Sides]:
    with our_brokers("pulsar-5.0") as brokers:
        yield brokers


def test_every_scenario_names_a_bug() -> None:
    assert [each.name for each in SCENARIOS.values() if not each.bug] == []


MISCOUNTS = {
    "a-damaged-batch-gives-its-permits-back": "receiver.Receiver._charged = lambda *_, **__: 1",
    "a-damaged-part-of-a-batch-gives-its-permits-back": "receiver.Receiver._charged = lambda *_, **__: 1",
    "permits-are-not-given-to-the-next-consumer": "flow.Permits.opened = lambda self: self._size",
}
"""Changes to our client by which it gives back one permit for any damaged entry, or those of the consumer before."""


@pytest.mark.heavy
@pytest.mark.parametrize("name", MISCOUNTS)
def test_a_client_that_counts_permits_wrongly_is_found(
    name: str, sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "PATIENCE", 2.0)
    lines = (
        "import runpy",
        "from pulsarium.client.consumer import flow, receiver",
        MISCOUNTS[name],
        "runpy.run_module('pulsarium.conformance.adapters.ours', run_name='__main__')",
    )
    command = [sys.executable, "-P", "-c", "\n".join(lines)]
    (result,) = Runner(command, sides, "pulsar-5.0", tmp_path).run([SCENARIOS[name]])
    assert result.verdict is Verdict.FAIL, result.reason


@pytest.mark.heavy
@pytest.mark.parametrize("name", BETWEEN)
def test_a_planted_bug_is_found(name: str, sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PATIENCE", 2.0)
    scenario = SCENARIOS[name]
    faulty = [sys.executable, "-P", "-m", "pulsarium.conformance.faulty", scenario.bug, *OURS]
    (result,) = Runner(faulty, sides, "pulsar-5.0", tmp_path).run([scenario])
    assert result.verdict is Verdict.FAIL, result.reason
