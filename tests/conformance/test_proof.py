"""Tests of the table of scenarios that passed on a real Pulsar."""

from __future__ import annotations

import pytest

from pulsarium.conformance.columns import Cell, Column
from pulsarium.conformance.proof import PROOF, proofs, table
from pulsarium.conformance.protocol import OPERATIONS, OPTIONS
from pulsarium.conformance.run import Verdict
from pulsarium.conformance.scenarios import SCENARIOS

FIRST, SECOND, *_ = SCENARIOS


def cell(name: str, verdict: Verdict, reason: str = "", needs: tuple[str, ...] = ()) -> Cell:
    return Cell(Column("ours", "pulsar-5.0"), "ours", name, verdict, reason, needs=needs)


def test_every_scenario_has_passed_on_a_real_pulsar_or_says_why_it_cannot_run_there() -> None:
    known = proofs()
    assert known.keys() == SCENARIOS.keys()
    unproven = {each.told for each in known.values() if not each.told[0].isdigit()}
    assert {told.partition(" ")[0] for told in unproven} == {"needs"}


def test_every_operation_and_option_is_needed_by_a_scenario() -> None:
    needed = frozenset().union(*(each.needs for each in proofs().values()))
    assert (OPERATIONS.keys() | OPTIONS) - needed == {"hello"}


def test_the_table_has_the_releases_of_each_scenario_and_what_it_needs() -> None:
    cells = [
        ("4.2.4", cell(FIRST, Verdict.PASS, needs=("send", "open"))),
        ("4.2.4", cell(SECOND, Verdict.UNSUPPORTED, "needs a lab")),
        ("5.0.1", cell(FIRST, Verdict.PASS)),
    ]
    lines = table(cells).splitlines()
    assert f"{FIRST}\t4.2.4, 5.0.1\topen send" in lines
    assert f"{SECOND}\tneeds a lab\t" in lines


def test_a_scenario_that_fails_on_a_real_pulsar_is_no_proof() -> None:
    with pytest.raises(ValueError, match=f"{FIRST} did not pass on 4.2.4: lost"):
        table([("4.2.4", cell(FIRST, Verdict.FAIL, "lost"))])
    assert PROOF.exists()
