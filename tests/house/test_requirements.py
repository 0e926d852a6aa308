"""Rows count when a test that carries them ran and passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.requirements import RequirementRows, read_rows

ROWS = {"W-01": "one", "W-02": "two", "W-03": "three", "W-04": "four"}

SUITE = """
    import pytest

    @pytest.mark.req("W-01")
    def test_passes(): pass

    @pytest.mark.req("W-02", "W-03")
    @pytest.mark.parametrize("value", [1, 2])
    def test_fails_once(value): assert value == 1

    @pytest.mark.req("W-04")
    def test_skips(): pytest.skip("not here")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\ntestpaths = .\nmarkers =\n    req\n    heavy")
    return pytester


def run(suite: pytest.Pytester, *options: str) -> tuple[pytest.RunResult, Path]:
    report = suite.path / "build" / "missing.txt"
    result = suite.inline_run("-p", "no:trio", *options, plugins=[RequirementRows(ROWS, report, list_missing=True)])
    return result, report  # type: ignore[return-value]


def test_only_passed_rows_count(suite: pytest.Pytester) -> None:
    suite.makepyfile(SUITE)
    _, report = run(suite)
    assert report.read_text() == "W-02\ttwo\nW-03\tthree\nW-04\tfour\n"


@pytest.mark.parametrize(
    "options", [["-k", "passes"], ["-m", "heavy"], ["--collect-only"], ["test_only_passed_rows_count.py"]]
)
def test_a_part_of_the_suite_reports_nothing(suite: pytest.Pytester, options: list[str]) -> None:
    suite.makepyfile(test_only_passed_rows_count=SUITE)
    _, report = run(suite, *options)
    assert not report.exists()


def test_an_unknown_row_is_an_error(suite: pytest.Pytester) -> None:
    suite.makepyfile('import pytest\n@pytest.mark.req("W-99")\ndef test_it(): pass')
    result, report = run(suite)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not report.exists()


def test_the_projects_table_has_text_in_every_row(pytestconfig: pytest.Config) -> None:
    rows = read_rows(pytestconfig.rootpath / "tests" / "requirements.tsv")
    assert {row.split("-")[0] for row in rows} == {"S423", "SREV", "S415", "S429", "S54", "W", "P", "C", "B"}
    assert all(rows.values())
