"""Our broker must answer the recorded WebSocket scenarios as the recorded broker did, `differs.toml` apart."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.brokers import pulsarium

from .comparison import RECORDED, differences, recorded
from .player import Play
from .scenarios import SCENARIOS

FOLDER = Path(__file__).parent
DIFFERENCES = FOLDER.parents[2] / "docs" / "differences.md"


def excused() -> dict[str, str]:
    """Return the answers that may differ, each with its reason."""
    table = tomllib.loads((FOLDER / "differs.toml").read_text())
    return {answer: each["reason"] for each in table["differs"] for answer in each["answers"]}


def test_every_scenario_is_answered_as_recorded(tmp_path: Path) -> None:
    found: list[str] = []
    with pulsarium("lab", tmp_path, "websocket", behaviour="pulsar-4.2") as broker:
        for name, scenario in SCENARIOS.items():
            with Play(broker.address.admin_url, name) as play:
                scenario(play)
            found += differences(name, play.lines)
    assert Counter(found) == Counter(list(excused()))


def test_every_scenario_has_a_recording() -> None:
    assert {path.stem for path in RECORDED.glob("*.jsonl")} == set(SCENARIOS)


def test_the_guide_of_differences_has_the_reasons() -> None:
    text = " ".join(DIFFERENCES.read_text().split())
    assert [reason for reason in excused().values() if reason not in text] == []


@pytest.mark.parametrize("name", ["consumer-nack", "encryption", "producer-wrong-options"])
def test_a_wrong_field_is_noticed(name: str) -> None:
    lines = recorded(name)
    assert list(differences(name, lines)) == []
    for number, line in enumerate(lines):
        changed = json.loads(json.dumps(line).replace("101", "102").replace('"result"', '"outcome"'))
        changed.get("json", {}).update(redeliveryCount=9)
        if changed != line:
            assert list(differences(name, [*lines[:number], changed, *lines[number + 1 :]]))
