"""The search: which runs it wants, and what it makes of their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pulsarium.broker.lab.explore.explorer import Run
from pulsarium.broker.lab.explore.kinds import KINDS
from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.script import Script
from pulsarium.broker.lab.explore.search import REPEATS, Finding, Outcome, Search, Settings, reduce


def run(plan: Plan, fails: Callable[[Script], bool]) -> Outcome:
    """Run an application that sends ten messages, and passes each choice point once."""
    run = Run(plan)
    for at in range(10):
        for name in ("receipt-lost", "unload", "ack-lost"):
            kind = KINDS[name]
            run.choose(kind, kind.commands[0], at, "")
    return Outcome("broken" if fails(tuple(run.made)) else "", tuple(run.made), run.passed)


def find(fails: Callable[[Script], bool], **settings: Any) -> Finding:
    search = Search(Settings(**{"runs": 200, "seed": 1, **settings}))
    for number in range(search.settings.runs):
        plan = search.plan(number)
        outcome = run(plan, fails)
        search.note(outcome)
        if outcome.failure:
            return reduced(plan, outcome, fails)
    raise AssertionError("nothing was found")


def reduced(plan: Plan, outcome: Outcome, fails: Callable[[Script], bool]) -> Finding:
    trials = reduce(plan, outcome)
    wanted = next(trials)
    while True:
        try:
            wanted = trials.send(run(wanted, fails))
        except StopIteration as end:
            found: Finding = end.value
            return found


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
        search = Search(Settings(30, seed))
        found = []
        for number in range(30):
            outcome = run(search.plan(number), lambda script: False)
            search.note(outcome)
            found.append(outcome.made)
        return found

    assert explored(1) == explored(1) != explored(2)


def test_only_enabled_kinds_are_chosen_or_counted() -> None:
    search = Search(Settings(40, 1, without=["unload"], rates={"ack-lost": 1.0, "receipt-lost": 0.0}))
    for number in range(40):
        outcome = run(search.plan(number), lambda script: False)
        search.note(outcome)
        assert {each.kind for each in outcome.made} <= {"ack-lost", "receipt-lost"}
    assert set(search.coverage.by_kind()) == {"ack-lost", "receipt-lost"}


def test_places_that_no_run_chose_are_wished_for() -> None:
    search = Search(Settings(100, 1, rates=dict.fromkeys(KINDS, 0.0)))
    for number in range(100):
        search.note(run(search.plan(number), lambda script: False))
    assert search.coverage.covered == search.coverage.places


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
        Settings(1, 1, **wrong)
