"""Tests of the table of scenarios that passed on a real Pulsar."""

from __future__ import annotations

import pytest

from pulsarium.conformance.proof import PROOF, proofs, table
from pulsarium.conformance.report import junit
from pulsarium.conformance.run import Result, Verdict
from pulsarium.conformance.scenarios import SCENARIOS


def test_every_scenario_has_passed_on_a_real_pulsar_or_says_why_it_cannot_run_there() -> None:
    known = proofs()
    assert known.keys() == SCENARIOS.keys()
    unproven = {told for told in known.values() if not told[0].isdigit()}
    assert {told.partition(" ")[0] for told in unproven} == {"needs"}


def test_the_table_has_the_releases_of_each_scenario() -> None:
    first, second, *_ = SCENARIOS.values()
    reports = {
        "4.2.4": junit([Result(first, Verdict.PASS), Result(second, Verdict.UNSUPPORTED, "needs a lab")], None, "5.0"),
        "5.0.1": junit([Result(first, Verdict.PASS)], None, "5.0"),
    }
    lines = table(reports).splitlines()
    assert f"{first.name}\t4.2.4, 5.0.1" in lines
    assert f"{second.name}\tneeds a lab" in lines


def test_a_scenario_that_fails_on_a_real_pulsar_is_no_proof() -> None:
    first = next(iter(SCENARIOS.values()))
    with pytest.raises(ValueError, match=f"{first.name} did not pass on 4.2.4"):
        table({"4.2.4": junit([Result(first, Verdict.FAIL, "lost")], None, "5.0")})
    assert PROOF.exists()
