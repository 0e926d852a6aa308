"""Requirement rows and their tests: `@pytest.mark.req("W-05")` counts when that test ran and passed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

PROPERTY = "req"
# Mark expressions of whole suites: all tests, or all that lack some marks, as in addopts of pyproject.toml.
WHOLE_SUITE = re.compile(r"(not \w+( and not \w+)*)?")


def read_rows(table: Path) -> dict[str, str]:
    """Return ID -> text of each row of a table: lines `ID<TAB>text[<TAB>why no foreign client]`, comments from `#`."""
    lines = (line for line in table.read_text().splitlines() if line and not line.startswith("#"))
    return {row: text for row, text, *_ in (line.split("\t") for line in lines)}


class RequirementRows:
    """Collects the rows that passed tests carry; a row that any failed test carries does not count.

    A run of a whole suite writes the rows without a test to `report`, one `ID<TAB>text` a line; a run of a part of it
    would take most tests for missing, and writes nothing. With `must_be_all`, a run of the whole suite, heavy tests
    too, fails and names the rows when one has no passed test.
    """

    def __init__(self, rows: dict[str, str], report: Path, *, must_be_all: bool) -> None:
        self.rows = rows
        self.report = report
        self.must_be_all = must_be_all
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    @pytest.hookimpl(tryfirst=True)  # before -m and -k deselect tests, so that every run checks each ID
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            ids = tuple(_ids_of(item))
            unknown = sorted(set(ids) - self.rows.keys())
            if unknown:
                raise pytest.UsageError(f"{item.nodeid}: no row {', '.join(unknown)} in tests/requirements.tsv")
            item.user_properties.extend((PROPERTY, row) for row in ids)  # reports bring them from worker processes

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ids = {str(row) for name, row in report.user_properties if name == PROPERTY}
        if report.failed:
            self.failed.update(ids)
        elif report.passed and report.when == "call":
            self.passed.update(ids)

    def missing(self) -> list[str]:
        """Return the ids of rows without a passed test, in the order of the table."""
        return [row for row in self.rows if row not in self.passed or row in self.failed]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK and self._must_fail(session.config) and self.missing():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _must_fail(self, config: pytest.Config) -> bool:
        """Return whether this run may end well only when each row has a passed test."""
        is_worker = hasattr(config, "workerinput")  # only the main process gets all reports
        return self.must_be_all and not is_worker and _is_whole_suite(config) and not config.getoption("markexpr")

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
    ) -> None:
        finished = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if not finished or not _is_whole_suite(config):
            return
        missing = self.missing()
        self.report.parent.mkdir(parents=True, exist_ok=True)
        self.report.write_text("".join(f"{row}\t{self.rows[row]}\n" for row in missing))
        place = self.report.relative_to(config.rootpath)
        terminalreporter.section("requirement rows")
        terminalreporter.line(
            f"with a passed test: {len(self.rows) - len(missing)} of {len(self.rows)}; without: {place}"
        )
        if missing and self._must_fail(config):
            terminalreporter.line("FAILED: each row needs a passed test that carries it with @pytest.mark.req")
            terminalreporter.line(textwrap.fill(" ".join(missing), 120, break_on_hyphens=False))


def _ids_of(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers("req"):
        if not mark.args or not all(isinstance(argument, str) for argument in mark.args):
            raise pytest.UsageError(f"{item.nodeid}: the mark req takes IDs of rows")
        yield from mark.args


def _is_whole_suite(config: pytest.Config) -> bool:
    narrowed = (
        "keyword",
        "deselect",
        "ignore",
        "ignore_glob",
        "lf",
        "maxfail",
        "collectonly",
        "stepwise",
    )
    return (
        config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and WHOLE_SUITE.fullmatch(config.getoption("markexpr")) is not None
        and not any(config.getoption(option, default=None) for option in narrowed)
        # addopts has overrides of its own: --strict-config and --strict-markers are two
        and not any(each.startswith("testpaths=") for each in config.getoption("override_ini") or ())
    )
