"""Plays of scenarios for tests, which fail with what a broker said otherwise than the recorded one."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from functools import partial
from pathlib import Path

from pulsarium.conformance.recordings.releases import PULSAR_4, Release
from pulsarium.conformance.recordings.replay import Replay, Verdict

from . import report
from .brokers import pulsarium
from .expectations import load
from .mutants import unnoticed

BROKERS = 6
"""Brokers that play side by side before fields are changed: the recorder mostly waits."""


class SecondPlay(UserWarning):
    """A warning about scenarios that passed only in a second play, alone. The summary of pytest shows the warning."""


def replay(
    folder: Path,
    jobs: int,
    numbers: Collection[int] | None = None,
    profile: str = "lab",
    behaviour: str | None = None,
    release: Release = PULSAR_4,
) -> None:
    """Play scenarios, by default all of the profile; fail with what a broker said otherwise than the recorded one."""
    expected = load(release)
    known = expected.known(behaviour or release.behavior)
    scenarios = [s for s in expected.of_profile(profile) if numbers is None or s.number in numbers]

    def good(verdict: Verdict) -> bool:
        return report.good(verdict, known)

    new_broker = partial(pulsarium, profile, folder, release=release, behaviour=behaviour)
    verdicts = Replay(folder, release=release).run(scenarios, new_broker, jobs, lambda verdict: None, good)
    if again := report.second_plays(verdicts):
        warnings.warn(again, SecondPlay, stacklevel=1)
    failed = report.failures(verdicts, known)
    shown = [f"{report.line(v, known)}\n{report.details(v)}" for v in failed]
    assert not failed, "\n".join(["", *shown, "scripts/conformance -v NUMBER plays one of them again"])
    assert {v.scenario.number for v in verdicts} == {s.number for s in scenarios} != set()


def play_and_change_fields(numbers: Collection[int], folder: Path, count: int, release: Release = PULSAR_4) -> None:
    """Fail with the changes of single fields of a broker's answers that the comparison does not notice."""
    expected = load(release)
    known = expected.known(release.behavior)
    scenarios = [s for s in expected.of_profile("lab") if s.number in numbers]
    player = Replay(folder, release=release)

    def good(verdict: Verdict) -> bool:
        return report.good(verdict, known)

    new_broker = partial(pulsarium, "lab", folder, release=release)
    verdicts = player.run(scenarios, new_broker, BROKERS, lambda verdict: None, good)
    fine = [verdict.scenario for verdict in verdicts if good(verdict)]
    assert len(fine) > len(scenarios) / 2
    assert unnoticed(player, fine, known, count) == []
