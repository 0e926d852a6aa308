"""Our broker must answer the recorded WebSocket scenarios as the recorded broker did, `differs.toml` apart.

WebSockets of a cluster of several brokers.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from pulsarium.broker import running
from yardsticks.replay.brokers import pulsarium
from yardsticks.replay.websocket.comparison import RECORDED, differences, recorded
from yardsticks.replay.websocket.player import Play
from yardsticks.replay.websocket.scenarios import SCENARIOS, message

FOLDER = Path(__file__).parents[3] / "yardsticks" / "replay" / "websocket"
DIFFERENCES = FOLDER.parents[2] / "docs" / "differences.md"


def excused() -> dict[str, str]:
    """Return the answers that may differ, each with its reason."""
    table = tomllib.loads((FOLDER / "differs.toml").read_text())
    return {answer: each["reason"] for each in table["differs"] for answer in each["answers"]}


def test_every_scenario_is_answered_as_recorded(tmp_path: Path) -> None:
    found: list[str] = []
    with pulsarium("lab", tmp_path, "websocket", behaviour="pulsar-4.2") as broker:
        for name, scenario in SCENARIOS.items():
            with Play(broker.admin_url, name) as play:
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


def test_any_broker_serves_the_topics_of_all() -> None:
    with running(brokers=2) as cluster:
        for number in range(6):
            with Play(cluster.admin_url, f"spread-{number}") as play:
                play.open("c", f"v2/consumer/{play.topic}/sub")
                play.open("p", f"v2/producer/{play.topic}")
                play.send("p", message("x"), 1)
                assert [each["payload"] for each in play.messages("c", 1)] == ["eA=="]
                play.leave()
