from __future__ import annotations

import pytest

from . import report
from .catalogue import Known, Scenario
from .replay import Verdict

ONE = Scenario(1, "001-connect-versions", "lab", "CONNECT", 0.1)
LISTED = ("- [A] PONG", "+ [A] ERROR")
KNOWN = {ONE.name: Known(ONE.name, LISTED, "a later issue")}


def test_an_equal_scenario_is_no_failure() -> None:
    verdict = Verdict(ONE, 5, 5)
    assert report.line(verdict, {}) == "equal      5 of    5  001-connect-versions"
    assert report.failures([verdict], {}, {1}) == []


def test_a_difference_fails_where_it_counts() -> None:
    verdict = Verdict(ONE, 4, 5)
    assert report.line(verdict, {}).startswith("DIFFER")
    assert report.failures([verdict], {}, {1}) == [verdict]
    assert report.failures([verdict], {}, {2}) == []


def test_an_answer_may_differ_as_it_is_listed() -> None:
    listed = Verdict(ONE, 3, 5, answers=LISTED)
    assert report.failures([listed], KNOWN, {1}) == []
    assert "a later issue" in report.line(listed, KNOWN)


@pytest.mark.parametrize("answers", [("- [A] PONG", "+ [A] another ERROR"), ("- [B] PONG",), ("+ [A] ERROR",) * 2])
def test_as_many_answers_that_differ_otherwise_are_not_excused(answers: tuple[str, ...]) -> None:
    verdict = Verdict(ONE, 3, 5, answers=answers)
    assert report.failures([verdict], KNOWN, {1}) == [verdict]
    assert "NOT LISTED: 1" in report.line(verdict, KNOWN)


def test_trouble_is_never_excused() -> None:
    verdict = Verdict(ONE, 5, 5, trouble="the broker is gone")
    assert report.failures([verdict], KNOWN, {1}) == [verdict]
    assert report.line(verdict, KNOWN).startswith("TROUBLE")
    assert report.details(verdict) == "the broker is gone"


def test_an_excuse_that_is_not_needed_is_pointed_out() -> None:
    assert "take it off the list" in report.line(Verdict(ONE, 5, 5), KNOWN)


def test_the_summary_counts_equal_scenarios_and_answers() -> None:
    verdicts = [Verdict(ONE, 4, 5)]
    text = report.summary(verdicts, verdicts, 12.3)
    assert text == "0 of 1 scenarios equal, 4 of 5 answers (80.0%), 12 s; NOT AS REQUIRED: 001-connect-versions"


def test_the_last_line_names_what_was_played_twice() -> None:
    text = report.summary([Verdict(ONE, 5, 5, plays=2)], [], 12.3)
    assert text == "1 of 1 scenarios equal, 5 of 5 answers (100.0%), 12 s; played twice: 001-connect-versions"
