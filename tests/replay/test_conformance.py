"""Fresh brokers must answer the recorded scenarios as the recorded broker did, docs/differences.md apart.

A fresh broker must answer the scenarios of scalable topics as a real 5.0.0-M1 did, docs/differences.md apart.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.conformance.recordings.record import scenarios_of
from pulsarium.conformance.recordings.releases import PULSAR_4, PULSAR_5_M1
from yardsticks.replay.brokers import DEFAULT
from yardsticks.replay.expectations import DIFFERENCES, load, undocumented
from yardsticks.replay.plays import play_and_change_fields, replay

pytestmark = pytest.mark.filterwarnings("default:played twice")


def test_the_quick_scenarios(tmp_path: Path) -> None:
    replay(tmp_path, 2, load().quick)


@pytest.mark.heavy
def test_a_wrong_field_is_noticed_beside_differences_that_are_listed(tmp_path: Path) -> None:
    play_and_change_fields({16, 25, 30, 35}, tmp_path, 8)


@pytest.mark.heavy
def test_forty_wrong_fields_are_all_noticed(tmp_path: Path) -> None:
    expected = load()
    differs = {s.number for s in expected.of_profile("lab") if s.name in expected.known(PULSAR_4.behavior)}
    play_and_change_fields(expected.quick | differs, tmp_path, 40)


@pytest.mark.heavy
@pytest.mark.parametrize("behaviour", [PULSAR_4.behavior, DEFAULT])
@pytest.mark.parametrize("profile", ["lab", "stock", "auth"])
def test_every_scenario(tmp_path: Path, profile: str, behaviour: str) -> None:
    replay(tmp_path, 4, profile=profile, behaviour=behaviour)


def test_every_recording_of_scalable_topics_has_its_scenario() -> None:
    expected = load(PULSAR_5_M1)
    assert [s.name for s in expected.scenarios] == [s.name for s in scenarios_of(PULSAR_5_M1)]
    assert len(expected.scenarios) == 42


def test_every_known_difference_of_scalable_topics_is_explained_in_the_docs() -> None:
    assert undocumented(load(PULSAR_5_M1).differs, DIFFERENCES.read_text()) == []


def test_the_quick_scenarios_of_scalable_topics(tmp_path: Path) -> None:
    replay(tmp_path, 2, load(PULSAR_5_M1).quick, release=PULSAR_5_M1)


@pytest.mark.heavy
def test_a_wrong_field_of_a_scalable_topic_is_noticed(tmp_path: Path) -> None:
    play_and_change_fields(load(PULSAR_5_M1).quick, tmp_path, 6, release=PULSAR_5_M1)


@pytest.mark.heavy
@pytest.mark.parametrize("profile", PULSAR_5_M1.configs)
def test_every_scenario_of_scalable_topics(tmp_path: Path, profile: str) -> None:
    replay(tmp_path, 4, profile=profile, release=PULSAR_5_M1)
