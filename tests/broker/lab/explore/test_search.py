"""The search: which runs it asks for, and what it concludes from their outcomes.

Coverage of choices, which steers the next runs. The file of failed scripts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.lab.explore.coverage import ChoiceClass, Coverage, Passed
from pulsarium.broker.lab.explore.explorer import PlannedRun
from pulsarium.broker.lab.explore.failures import MOST, Failures
from pulsarium.broker.lab.explore.kinds import KINDS
from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.script import Decision, Script, ScriptError
from pulsarium.broker.lab.explore.search import REPEATS, ExploredFailure, ExploreSettings, RunOutcome, Search


def run(plan: Plan, fails: Callable[[Script], bool]) -> RunOutcome:
    """Run an application that sends ten messages, and passes each choice point once."""
    run = PlannedRun(plan)
    for at in range(10):
        for name in ("receipt-lost", "unload", "ack-lost"):
            kind = KINDS[name]
            run.choose(kind, kind.commands[0], at, "")
    return RunOutcome("broken" if fails(tuple(run.made)) else "", tuple(run.made), run.passed)


def search(fails: Callable[[Script], bool], *, known: Sequence[Script] = (), **settings: Any) -> Search:
    """Search until all runs are done, or until the first failure."""
    keep_going = settings.pop("keep_going", False)
    searching = Search(ExploreSettings(**{"runs": 200, "seed": 1, **settings}), known, keep_going=keep_going)
    for trial in searching.trials():
        trial.outcome = run(trial.plan, fails)
    return searching


def find(fails: Callable[[Script], bool]) -> ExploredFailure:
    (finding,) = search(fails).findings
    return finding


def kinds_of(script: Script) -> set[str]:
    return {each.kind for each in script}


def test_a_planted_bug_of_two_kinds_is_found_and_reduced() -> None:
    finding = find(lambda script: {"receipt-lost", "unload"} <= {each.kind for each in script})
    assert sorted(map(str, finding.script)) == ["receipt-lost SEND 0", "unload SEND 0"]
    assert (finding.repeated, finding.same) == (REPEATS, REPEATS)


def test_a_failure_by_chance_is_reduced_too_and_its_share_is_counted() -> None:
    calls = iter(range(10_000))
    finding = find(lambda script: bool(script) and next(calls) % 2 == 0)
    assert 0 < finding.repeated < REPEATS
    assert finding.same == REPEATS
    assert len(finding.script) == 1


def test_the_first_run_makes_no_choice() -> None:
    finding = find(lambda script: True)
    assert (finding.script, finding.seed) == ((), "")


def test_the_same_seed_explores_the_same_way() -> None:
    def explored(seed: int) -> list[Script]:
        found: list[Script] = []

        def passes(script: Script) -> bool:
            found.append(script)
            return False

        search(passes, runs=30, seed=seed)
        return found

    assert explored(1) == explored(1) != explored(2)


def test_only_enabled_kinds_are_chosen_or_counted() -> None:
    rates = {"ack-lost": 1.0, "receipt-lost": 0.0}
    searched = search(lambda script: "unload" in kinds_of(script), runs=40, without=["unload"], rates=rates)
    assert searched.findings == []
    assert set(searched.coverage.by_kind()) == {"ack-lost", "receipt-lost"}


def test_places_that_no_run_chose_are_wished_for() -> None:
    coverage = search(lambda script: False, runs=100, rates=dict.fromkeys(KINDS, 0.0)).coverage
    assert coverage.covered == coverage.places


def test_a_known_script_is_run_first_and_not_reduced() -> None:
    known = (Decision("unload", "SEND", 7), Decision("ack-lost", "ACK", 7))
    searched = search(lambda script: "unload" in kinds_of(script), known=[known])
    (finding,) = searched.findings
    assert {*finding.script} == {*known}
    assert (searched.done, finding.repeats) == (0, 0)


def test_each_distinct_failure_is_found_once_when_the_search_goes_on() -> None:
    bugs = [{"receipt-lost"}, {"unload", "ack-lost"}]
    searched = search(lambda script: any(bug <= kinds_of(script) for bug in bugs), keep_going=True)
    assert sorted(sorted(kinds_of(each.script)) for each in searched.findings) == [
        ["ack-lost", "unload"],
        ["receipt-lost"],
    ]
    assert searched.done == 200
    assert searched.repeated > 10


def test_a_search_ends_when_a_run_without_a_choice_fails() -> None:
    searched = search(lambda script: True, keep_going=True)
    assert [each.script for each in searched.findings] == [()]
    assert searched.done == 1


def test_a_worker_reduces_a_failure_while_others_get_no_more_trials() -> None:
    searched = Search(ExploreSettings(200, 1))
    first, second = searched.trials(), searched.trials()
    failing, passing = next(first), next(second)
    failing.outcome = RunOutcome("broken", (), ())
    passing.outcome = RunOutcome("", (), ())
    assert next(first).plan is failing.plan
    assert list(second) == []


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"only": ["unlode"]}, "there is no kind 'unlode'"),
        ({"rates": {"unload": 2.0}}, "the rate of unload is 2"),
        ({"only": ["unload"], "without": ["unload"]}, "no kind is left"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ExploreSettings(1, 1, **wrong)


OFTEN, SELDOM = ChoiceClass("unload", "SEND", "with consumers"), ChoiceClass("unload", "SEND", "without subscription")


def test_a_wish_is_for_a_place_where_no_run_has_chosen() -> None:
    coverage = Coverage()
    coverage.add([Passed(OFTEN, 0, True), Passed(SELDOM, 1, False), Passed(OFTEN, 2, False)])
    assert {coverage.wish(random.Random(seed)) for seed in range(20)} == {Decision("unload", "SEND", 1)}


def test_there_is_no_wish_before_the_first_run() -> None:
    assert Coverage().wish(random.Random(1)) is None


def test_coverage_counts_places_and_choices_by_kind() -> None:
    coverage = Coverage()
    coverage.add([Passed(OFTEN, 0, True), Passed(SELDOM, 1, False)])
    coverage.add([Passed(OFTEN, 5, True)])
    assert (coverage.covered, coverage.places) == (1, 2)
    assert coverage.by_kind() == {"unload": (2, 1, 2)}


LOST = (Decision("receipt-lost", "SEND", 3),)
JUMP = (Decision("clock-jump", "FLOW", 0, 65.0), Decision("ack-lost", "ACK", 1))


def test_each_application_has_its_own_scripts_in_one_file(tmp_path: Path) -> None:
    mine, other = (Failures(tmp_path / "new" / "failures", name) for name in ("orders", "invoices"))
    assert mine.scripts() == []
    for failures, script in ((mine, LOST), (other, JUMP), (mine, JUMP), (mine, LOST)):
        failures.add(script)
    assert (mine.scripts(), other.scripts()) == ([LOST, JUMP], [JUMP])


def test_the_oldest_scripts_of_an_application_are_dropped(tmp_path: Path) -> None:
    mine, other = (Failures(tmp_path / "failures", name) for name in ("orders", "invoices"))
    other.add(LOST)
    for at in range(MOST + 2):
        mine.add((Decision("unload", "SEND", at),))
    assert [script[0].at for script in mine.scripts()] == list(range(2, MOST + 2))
    assert other.scripts() == [LOST]


@pytest.mark.parametrize("line", ["{", "[]", '{"of": "orders", "script": ["unload"]}', '{"of": "orders"}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "failures"
    path.write_text(line)
    with pytest.raises(ScriptError, match="line 1, is no failure"):
        Failures(path, "orders").scripts()
