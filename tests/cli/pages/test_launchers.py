"""docs/launchers.md says what the last run of the examples saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.cli.pages import launchers
from pulsarium.cli.pages.launchers import Seen

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "RECORD", tmp_path / "launchers.json")


@pytest.mark.usefixtures("record")
def test_a_row_has_the_versions_that_ran() -> None:
    launchers.write_record([Seen("quarkus", {"quarkus-messaging-pulsar": "3.33.2"}, ["a", "b"], [])])
    assert "| quarkus-messaging-pulsar 3.33.2 | 2 |" in launchers.launchers_page()


@pytest.mark.usefixtures("record")
def test_a_failed_test_is_named_in_its_row() -> None:
    launchers.write_record([Seen("quarkus", {}, ["a"], ["anOrderReachesItsChannel"])])
    assert "| 1; **failed: anOrderReachesItsChannel** |" in launchers.launchers_page()


def test_each_recorded_example_is_there_and_passed() -> None:
    record = launchers.read_record()
    assert record
    for seen in record:
        assert (EXAMPLES / seen.launcher).is_dir()
        assert seen.passed
        assert not seen.failed
