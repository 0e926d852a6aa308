"""Tests of the reports of the conformance kit."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pulsarium.conformance import report
from pulsarium.conformance.columns import Cell, Column
from pulsarium.conformance.run import Verdict
from pulsarium.conformance.scenarios import SCENARIOS

FIRST, SECOND, THIRD, *_ = SCENARIOS
NEW, OLD = Column("go", "pulsar-5.0"), Column("go@0.18.0", "pulsar-5.0")
CELLS = [
    Cell(NEW, "Go 0.19.0", FIRST, Verdict.PASS, log="go/a.log", capture="go/a b.pulscap"),
    Cell(NEW, "Go 0.19.0", SECOND, Verdict.PASS),
    Cell(NEW, "Go 0.19.0", THIRD, Verdict.UNSUPPORTED, "no such option"),
    Cell(OLD, "Go 0.18.0", FIRST, Verdict.FAIL, "a < b | c", rules=("closed-twice",)),
    Cell(OLD, "Go 0.18.0", SECOND, Verdict.ERROR, "the adapter ended"),
]


def test_a_cell_of_the_page_links_to_its_log_and_frames() -> None:
    page = report.html(CELLS)
    assert 'href="go/a.log"' in page
    assert 'href="go/a%20b.pulscap"' in page


def test_the_page_has_the_reason_and_the_broken_rules_of_a_failure() -> None:
    assert 'title="a &lt; b | c; broken rule closed-twice"' in report.html(CELLS)


def test_the_page_has_a_column_for_each_client() -> None:
    page = report.html(CELLS)
    assert "<th>Go 0.19.0<small>2 pass</small></th><th>Go 0.18.0<small>0 pass</small></th>" in page


def test_the_overview_has_the_passed_scenarios_of_those_that_a_client_supports() -> None:
    overview = report.overview(report.Table(CELLS))
    assert "| **all** | 2/2 | **0/2** |" in overview


def test_the_details_have_a_sign_for_each_cell() -> None:
    details = report.details(report.Table(CELLS))
    assert f"| `{FIRST}` | ✓ | **✗** |" in details
    assert f"| `{SECOND}` | ✓ | **!** |" in details
    assert f"| `{THIRD}` | – |  |" in details


def test_each_reason_for_a_failure_is_told_once_for_a_client() -> None:
    both = [CELLS[3], Cell(OLD, "Go 0.18.0", SECOND, Verdict.FAIL, "a < b | c")]
    told = report.failures(report.Table(both))
    assert f"**Go 0.18.0**\n\n- `{FIRST}`, `{SECOND}`: a &lt; b \\| c" in told


def test_junit_has_a_suite_for_each_column() -> None:
    root = ET.fromstring(report.junit(CELLS))
    suites = [[each.get(name) for name in ("name", "tests", "failures", "errors", "skipped")] for each in root]
    assert suites == [["Go 0.19.0 on pulsar-5.0", *"3001"], ["Go 0.18.0 on pulsar-5.0", *"2110"]]


def test_the_badge_has_the_passed_results_of_all() -> None:
    assert report.badge(CELLS) == "2 of 5"


def test_a_contradiction_of_texts_is_told_with_the_release_that_was_followed() -> None:
    name = "routing-vectors-four-segments"
    cells = [Cell(Column("", profile), "x", name, Verdict.PASS) for profile in ("pulsar-5.0", "pulsar-5.0-m1")]
    told = report.contradictions(cells)
    assert [each.partition(":")[0] for each in told] == ["run as 5.0", "run as 5.0-m1"]
    assert told[0].partition(": ")[2] in report.html(cells)


def test_a_title_has_the_profile_where_a_run_has_several() -> None:
    table = report.Table([CELLS[0], Cell(Column("go", "pulsar-4.2", "v19"), "Go 0.19.0", FIRST, Verdict.PASS)])
    assert [table.title(each) for each in table.columns] == ["Go 0.19.0, pulsar-5.0", "Go 0.19.0, pulsar-4.2, v19"]


def test_every_report_is_written(tmp_path: Path) -> None:
    paths = report.write(CELLS, tmp_path)
    assert sorted(each.name for each in paths) == ["badge.txt", "conformance.html", "conformance.md", "conformance.xml"]
    assert all(each.read_text("utf-8").endswith("\n") for each in paths)


@pytest.mark.parametrize("name", ["matrix.md", "matrix-scenarios.md"])
def test_the_pages_of_the_documentation_have_the_clients(name: str) -> None:
    assert "| Go 0.19.0 | Go 0.18.0 |" in report.docs(CELLS)[name]
