"""Fresh brokers must answer the recorded scenarios as real brokers did, docs/differences.md apart.

A fresh broker must answer the scenarios of scalable topics as a real 5.0.1 and a real 5.0.0-M1 did, in the same way.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.conformance.recordings.record import scenarios_of
from pulsarium.conformance.recordings.releases import (
    PULSAR_3_0,
    PULSAR_4,
    PULSAR_4_0,
    PULSAR_5,
    PULSAR_5_M1,
    PULSAR_5_SCALABLE,
    Release,
)
from yardsticks.replay.brokers import DEFAULT
from yardsticks.replay.expectations import DIFFERENCES, load, undocumented
from yardsticks.replay.plays import play_and_change_fields, replay

pytestmark = pytest.mark.filterwarnings("default:played twice")


@pytest.mark.parametrize("release", [PULSAR_4, PULSAR_5, PULSAR_4_0, PULSAR_3_0], ids=lambda each: each.name)
def test_the_quick_scenarios(tmp_path: Path, release: Release) -> None:
    replay(tmp_path, 2, load(release).quick, release=release)


@pytest.mark.heavy
def test_a_wrong_field_is_noticed_beside_differences_that_are_listed(tmp_path: Path) -> None:
    play_and_change_fields({16, 25, 30, 35}, tmp_path, 8)


@pytest.mark.heavy
def test_forty_wrong_fields_are_all_noticed(tmp_path: Path) -> None:
    expected = load()
    differs = {s.number for s in expected.of_profile("lab") if s.name in expected.known(PULSAR_4.behavior)}
    play_and_change_fields(expected.quick | differs, tmp_path, 40)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("release", "behaviour"),
    [(PULSAR_4, PULSAR_4.behavior), (PULSAR_4, DEFAULT), (PULSAR_5, PULSAR_5.behavior)],
    ids=["4.2.4", "default", "5.0.1"],
)
@pytest.mark.parametrize("profile", ["lab", "stock", "auth"])
def test_every_scenario(tmp_path: Path, profile: str, release: Release, behaviour: str) -> None:
    replay(tmp_path, 8, profile=profile, behaviour=behaviour, release=release)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("release", "profile"),
    [(PULSAR_4_0, "lab"), (PULSAR_4_0, "stock"), (PULSAR_4_0, "auth"), (PULSAR_3_0, "lab")],
    ids=["4.0.7-lab", "4.0.7-stock", "4.0.7-auth", "3.0.7-lab"],
)
def test_what_a_release_with_long_term_support_answers_otherwise(
    tmp_path: Path, release: Release, profile: str
) -> None:
    own = {int(path.name[:3]) for path in release.folder.glob("[0-9]*.jsonl")}
    replay(tmp_path, 8, own, profile=profile, release=release)


@pytest.mark.parametrize("release", [PULSAR_5, PULSAR_4_0, PULSAR_3_0], ids=lambda each: each.name)
def test_every_known_difference_from_another_release_is_explained_in_the_docs(release: Release) -> None:
    assert undocumented(load(release).differs, DIFFERENCES.read_text()) == []


of_scalable_topics = pytest.mark.parametrize("release", [PULSAR_5_SCALABLE, PULSAR_5_M1], ids=lambda each: each.name)


@of_scalable_topics
def test_every_recording_of_scalable_topics_has_its_scenario(release: Release) -> None:
    expected = load(release)
    assert [s.name for s in expected.scenarios] == [s.name for s in scenarios_of(release)]
    assert len(expected.scenarios) == (42 if release is PULSAR_5_M1 else 45)


@of_scalable_topics
def test_every_known_difference_of_scalable_topics_is_explained_in_the_docs(release: Release) -> None:
    assert undocumented(load(release).differs, DIFFERENCES.read_text()) == []


@of_scalable_topics
def test_the_quick_scenarios_of_scalable_topics(tmp_path: Path, release: Release) -> None:
    replay(tmp_path, 2, load(release).quick, release=release)


@pytest.mark.heavy
@of_scalable_topics
def test_a_wrong_field_of_a_scalable_topic_is_noticed(tmp_path: Path, release: Release) -> None:
    play_and_change_fields(load(release).quick, tmp_path, 6, release=release)


@pytest.mark.heavy
@of_scalable_topics
@pytest.mark.parametrize("profile", ["lab", "slow", "off"])
def test_every_scenario_of_scalable_topics(tmp_path: Path, profile: str, release: Release) -> None:
    replay(tmp_path, 8, profile=profile, release=release)
