"""Fresh brokers must answer the recorded scenarios as the recorded broker did, docs/differences.md apart."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path

import pytest

from . import report
from .brokers import pulsarium
from .catalogue import load
from .replay import Replay, Verdict


def replay(numbers: Collection[int], folder: Path, jobs: int, profile: str = "lab") -> None:
    """Fails with what each broker said otherwise than the one recorded with that profile."""
    catalogue = load()
    scenarios = [s for s in catalogue.of_profile(profile) if s.number in numbers]

    def good(verdict: Verdict) -> bool:
        return report.good(verdict, catalogue.known)

    verdicts = Replay(folder).run(scenarios, partial(pulsarium, profile, folder), jobs, lambda verdict: None, good)
    failed = report.failures(verdicts, catalogue.known, numbers)
    shown = [f"{report.line(v, catalogue.known)}\n{report.details(v)}" for v in failed]
    assert not failed, "\n".join(["", *shown, "scripts/conformance -v NUMBER plays one of them again"])
    assert {v.scenario.number for v in verdicts} == {s.number for s in scenarios} != set()


def test_the_quick_scenarios(tmp_path: Path) -> None:
    replay(load().quick, tmp_path, jobs=2)


@pytest.mark.heavy
@pytest.mark.parametrize("profile", ["lab", "stock", "auth"])
def test_every_required_scenario(tmp_path: Path, profile: str) -> None:
    replay(load().all_required(), tmp_path, jobs=4, profile=profile)
