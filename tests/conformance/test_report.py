from __future__ import annotations

from . import report
from .catalogue import Known, Scenario
from .replay import Verdict

ONE = Scenario(1, "001-connect-versions", "lab", "CONNECT", 0.1)
KNOWN = {ONE.name: Known(ONE.name, 2, "a later issue")}


def test_equal() -> None:
    verdict = Verdict(ONE, 5, 5)
    assert report.line(verdict, {}) == "equal      5 of    5  001-connect-versions"
    assert report.failures([verdict], {}, {1}) == []


def test_a_difference_fails_where_it_counts() -> None:
    verdict = Verdict(ONE, 4, 5)
    assert report.line(verdict, {}).startswith("DIFFER")
    assert report.failures([verdict], {}, {1}) == [verdict]
    assert report.failures([verdict], {}, {2}) == []


def test_a_known_difference_may_not_grow() -> None:
    assert report.failures([Verdict(ONE, 3, 5)], KNOWN, {1}) == []
    assert "a later issue" in report.line(Verdict(ONE, 3, 5), KNOWN)
    grown = Verdict(ONE, 2, 5)
    assert report.failures([grown], KNOWN, {1}) == [grown]
    assert "WORSE than the 2" in report.line(grown, KNOWN)


def test_trouble_is_never_excused() -> None:
    verdict = Verdict(ONE, 5, 5, trouble="the broker is gone")
    assert report.failures([verdict], KNOWN, {1}) == [verdict]
    assert report.line(verdict, KNOWN).startswith("TROUBLE")
    assert report.details(verdict) == "the broker is gone"


def test_an_excuse_that_is_not_needed_is_pointed_out() -> None:
    assert "take it off the list" in report.line(Verdict(ONE, 5, 5), KNOWN)


def test_summary() -> None:
    verdicts = [Verdict(ONE, 4, 5)]
    text = report.summary(verdicts, verdicts, 12.3)
    assert text == "0 of 1 scenarios equal, 4 of 5 answers (80.0%), 12 s; NOT AS REQUIRED: 001-connect-versions"
