"""Fresh brokers must answer the recorded scenarios as the recorded broker did, docs/differences.md apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.releases import PULSAR_4

from .brokers import DEFAULT
from .catalogue import load
from .plays import play_and_change_fields, replay

pytestmark = pytest.mark.filterwarnings("default:played twice")


def test_the_quick_scenarios(tmp_path: Path) -> None:
    replay(load().quick, tmp_path, jobs=2)


@pytest.mark.heavy
def test_a_wrong_field_is_noticed_beside_differences_that_are_listed(tmp_path: Path) -> None:
    play_and_change_fields({16, 25, 30, 35}, tmp_path, 8)


@pytest.mark.heavy
def test_forty_wrong_fields_are_all_noticed(tmp_path: Path) -> None:
    catalogue = load()
    differs = {s.number for s in catalogue.of_profile("lab") if s.name in catalogue.known(PULSAR_4.behavior)}
    play_and_change_fields(catalogue.quick | differs, tmp_path, 40)


@pytest.mark.heavy
@pytest.mark.parametrize("behaviour", [PULSAR_4.behavior, DEFAULT])
@pytest.mark.parametrize("profile", ["lab", "stock", "auth"])
def test_every_required_scenario(tmp_path: Path, profile: str, behaviour: str) -> None:
    replay(load().all_required(), tmp_path, jobs=4, profile=profile, behaviour=behaviour)
