"""Fresh brokers must answer the recorded scenarios as the recorded broker did, docs/differences.md apart."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pytest

from . import report
from .brokers import DEFAULT, PULSAR, pulsarium
from .catalogue import load
from .mutants import unnoticed
from .replay import Replay, Verdict

pytestmark = pytest.mark.filterwarnings("default:played twice")


class SecondPlay(UserWarning):
    """Scenarios that were as recorded only when they were played again, alone; pytest's summary shows them."""


def replay(numbers: Collection[int], folder: Path, jobs: int, profile: str = "lab", behaviour: str = PULSAR) -> None:
    """Fail with what each broker said otherwise than the one recorded with that profile."""
    catalogue = load()
    known = catalogue.known(behaviour)
    scenarios = [s for s in catalogue.of_profile(profile) if s.number in numbers]

    def good(verdict: Verdict) -> bool:
        return report.good(verdict, known)

    new_broker = partial(pulsarium, profile, folder, behaviour=behaviour)
    verdicts = Replay(folder).run(scenarios, new_broker, jobs, lambda verdict: None, good)
    if again := report.second_plays(verdicts):
        warnings.warn(again, SecondPlay, stacklevel=1)
    failed = report.failures(verdicts, known, numbers)
    shown = [f"{report.line(v, known)}\n{report.details(v)}" for v in failed]
    assert not failed, "\n".join(["", *shown, "scripts/conformance -v NUMBER plays one of them again"])
    assert {v.scenario.number for v in verdicts} == {s.number for s in scenarios} != set()


def test_the_quick_scenarios(tmp_path: Path) -> None:
    replay(load().quick, tmp_path, jobs=2)


def play_and_change_fields(numbers: Collection[int], folder: Path, count: int) -> None:
    """Fails with the changes of single fields of a broker's answers that the comparison does not notice."""
    catalogue = load()
    known = catalogue.known(PULSAR)
    scenarios = [s for s in catalogue.of_profile("lab") if s.number in numbers]
    player = Replay(folder)
    verdicts = player.run(scenarios, partial(pulsarium, "lab", folder), 2, lambda verdict: None)
    fine = [verdict.scenario for verdict in verdicts if report.good(verdict, known)]
    assert len(fine) > len(scenarios) / 2
    assert unnoticed(player, fine, known, count) == []


def test_a_wrong_field_is_noticed_beside_differences_that_are_listed(tmp_path: Path) -> None:
    play_and_change_fields({16, 25, 30, 35}, tmp_path, 8)


@pytest.mark.heavy
def test_forty_wrong_fields_are_all_noticed(tmp_path: Path) -> None:
    catalogue = load()
    differs = {s.number for s in catalogue.of_profile("lab") if s.name in catalogue.known(PULSAR)}
    play_and_change_fields(catalogue.quick | differs, tmp_path, 40)


@pytest.mark.heavy
@pytest.mark.parametrize("behaviour", [PULSAR, DEFAULT])
@pytest.mark.parametrize("profile", ["lab", "stock", "auth"])
def test_every_required_scenario(tmp_path: Path, profile: str, behaviour: str) -> None:
    replay(load().all_required(), tmp_path, jobs=4, profile=profile, behaviour=behaviour)
