"""Rows count when a test that carries them ran and passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.pages.requirements import codes_of_official_clients, reasons
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


def run(suite: pytest.Pytester, *options: str, must_be_all: bool = True) -> tuple[pytest.RunResult, Path]:
    report = suite.path / "build" / "missing.txt"
    rows = RequirementRows(ROWS, report, must_be_all=must_be_all)
    result = suite.inline_run("-p", "no:trio", *options, plugins=[rows])
    return result, report  # type: ignore[return-value]


@pytest.mark.parametrize("marks", ["", "not heavy", "not heavy and not foreign and not spark"])
def test_only_passed_rows_of_a_whole_suite_count(suite: pytest.Pytester, marks: str) -> None:
    suite.makepyfile(SUITE)
    _, report = run(suite, "-m", marks)
    assert report.read_text() == "W-02\ttwo\nW-03\tthree\nW-04\tfour\n"


@pytest.mark.parametrize(
    "options",
    [
        ["-k", "passes"],
        ["-m", "heavy"],
        ["-m", "not heavy and req"],
        ["-m", "not heavy or req"],
        ["--collect-only"],
        ["-o", "testpaths=."],
        ["test_only_passed_rows_count.py"],
    ],
)
def test_a_part_of_the_suite_reports_nothing(suite: pytest.Pytester, options: list[str]) -> None:
    suite.makepyfile(test_only_passed_rows_count=SUITE)
    _, report = run(suite, *options)
    assert not report.exists()


CARRIED = """
    import pytest

    @pytest.mark.req({})
    def test_passes(): pass
"""
SOME, ALL = CARRIED.format('"W-01"'), CARRIED.format(", ".join(map(repr, ROWS)))


def test_a_whole_run_with_a_row_that_no_test_carries_fails(
    suite: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.makepyfile(SOME)
    result, _ = run(suite)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "W-02 W-03 W-04" in capsys.readouterr().out


def test_a_whole_run_with_a_test_for_each_row_passes(suite: pytest.Pytester) -> None:
    suite.makepyfile(ALL)
    result, report = run(suite)
    assert (result.ret, report.read_text()) == (pytest.ExitCode.OK, "")


@pytest.mark.parametrize("options", [["-k", "passes"], ["-m", "not heavy"], ["test_part.py"]])
def test_a_run_of_a_part_passes_without_the_other_rows(suite: pytest.Pytester, options: list[str]) -> None:
    suite.makepyfile(test_part=SOME)
    assert run(suite, *options)[0].ret == pytest.ExitCode.OK


def test_missing_rows_fail_nothing_outside_ci(suite: pytest.Pytester) -> None:
    suite.makepyfile(SOME)
    assert run(suite, must_be_all=False)[0].ret == pytest.ExitCode.OK


@pytest.mark.heavy
def test_processes_that_share_a_run_fail_for_no_row_that_another_carries(
    pytester: pytest.Pytester, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(pytestconfig.rootpath))
    pytester.makeini("[pytest]\ntestpaths = .\nmarkers =\n    req\naddopts = --strict-config --strict-markers")
    pytester.makeconftest(
        """
        from tests.house.requirements import RequirementRows

        def pytest_configure(config):
            rows = RequirementRows({"W-01": "one", "W-02": "two"}, config.rootpath / "missing", must_be_all=True)
            config.pluginmanager.register(rows)
        """
    )
    for number in (1, 2):
        pytester.makepyfile(**{f"test_{number}": CARRIED.format(f'"W-0{number}"')})
    options = ("-p", "no:trio", "-n", "2", "--dist", "loadfile")
    assert pytester.runpytest_subprocess(*options).ret == pytest.ExitCode.OK
    (pytester.path / "test_2.py").unlink()
    assert pytester.runpytest_subprocess(*options).ret == pytest.ExitCode.TESTS_FAILED


def test_an_unknown_row_is_an_error(suite: pytest.Pytester) -> None:
    suite.makepyfile('import pytest\n@pytest.mark.req("W-99")\ndef test_it(): pass')
    result, report = run(suite)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not report.exists()


def test_the_projects_table_has_text_in_every_row(pytestconfig: pytest.Config) -> None:
    rows = read_rows(pytestconfig.rootpath / "tests" / "requirements.tsv")
    assert {row.split("-")[0] for row in rows} == {"S423", "SREV", "S415", "S429", "S54", "W", "P", "C", "B"}
    assert all(rows.values())


def test_each_row_has_a_test_with_a_foreign_client_or_a_word_why_none_can_show_it(pytestconfig: pytest.Config) -> None:
    rows = read_rows(pytestconfig.rootpath / "tests" / "requirements.tsv")
    shown, not_shown = codes_of_official_clients(), reasons()
    assert [row for row in rows if (row in shown) == (row in not_shown)] == []
