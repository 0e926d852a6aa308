"""Decisions in the form of text. Plans: the choices that follow from a seed. Reduction of a script that fails."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.lab.explore.kinds import check
from pulsarium.broker.lab.explore.plan import MOST, Scripted, Seeded
from pulsarium.broker.lab.explore.reduce import reduced
from pulsarium.broker.lab.explore.script import Decision, Script, ScriptError, parse, read
from tests.broker.lab.explore.scripts import scripts


@given(scripts)
def test_a_script_is_read_as_it_was_written(script: tuple[Decision, ...]) -> None:
    assert read(map(str, script)) == script


def test_comments_and_empty_lines_of_a_script_are_ignored() -> None:
    lines = ["# found on a Tuesday", "", "receipt-lost SEND 3  # the third order", "clock-jump FLOW 0 60"]
    assert read(lines) == (Decision("receipt-lost", "SEND", 3), Decision("clock-jump", "FLOW", 0, 60.0))


@pytest.mark.parametrize(
    "text",
    ["receipt-lost SEND", "receipt-lost SEND three", "receipt-lost SEND -1", "a B 1 2 3", "a B 1 nan", "a B 1 -2"],
)
def test_a_line_that_is_no_decision_is_named(text: str) -> None:
    with pytest.raises(ScriptError, match=text):
        parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("receipt-lots SEND 0", "there is no kind 'receipt-lots'"),
        ("receipt-lost ACK 0", "receipt-lost is not chosen at ACK: use SEND"),
        ("receipt-lost SEND 0 5", "receipt-lost takes no value"),
    ],
)
def test_a_decision_that_no_broker_can_make_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ScriptError, match=reason):
        check((parse(text),))


@given(st.text(max_size=30))
def test_any_text_is_a_decision_or_an_error(text: str) -> None:
    with suppress(ScriptError):
        decision = parse(text)
        assert parse(str(decision))[:3] == decision[:3]


Point = tuple[str, str, int]
RATES = {"receipt-lost": 0.3, "ack-lost": 0.3, "slow-ack": 0.3}
VALUES = {"slow-ack": (0.1, 0.2)}
points = st.lists(
    st.tuples(st.sampled_from([*RATES, "unload"]), st.sampled_from(["SEND", "ACK"]), st.integers(0, 30)), unique=True
)
seeds = st.integers(0, 10_000).map(str)


def made(plan: Seeded | Scripted, asked: Sequence[Point]) -> Script:
    return tuple(decision for point in asked if (decision := plan.choose(*point)) is not None)


@given(seeds, points)
def test_a_seed_repeats_its_decisions(seed: str, asked: list[Point]) -> None:
    plan = Seeded(seed, RATES, VALUES)
    assert made(plan, asked) == made(plan.again(), asked)


@given(seeds, points)
def test_a_scripted_plan_repeats_the_decisions_of_a_seed(seed: str, asked: list[Point]) -> None:
    decisions = made(Seeded(seed, RATES, VALUES), asked)
    assert made(Scripted(decisions), asked) == decisions


@given(seeds, points.filter(lambda asked: len(asked) <= 3), st.randoms())
def test_choices_do_not_depend_on_the_order_of_the_points(seed: str, asked: list[Point], chance: object) -> None:
    plan = Seeded(seed, RATES, VALUES)
    if plan.most >= len(asked):  # otherwise the first points use up the budget
        assert {*made(plan, asked)} == {*made(plan.again(), asked[::-1])}


@given(seeds, points)
def test_a_plan_makes_few_decisions_and_none_of_a_kind_without_a_rate(seed: str, asked: list[Point]) -> None:
    decisions = made(Seeded(seed, RATES, VALUES), asked)
    assert len(decisions) <= MOST
    assert all(each.kind in RATES for each in decisions)
    assert all((each.value in VALUES["slow-ack"]) == (each.kind == "slow-ack") for each in decisions)


def test_runs_differ_in_the_kinds_that_they_use() -> None:
    asked = [(kind, "SEND", at) for at in range(40) for kind in RATES]
    used = {frozenset(each.kind for each in made(Seeded(str(seed), RATES, VALUES), asked)) for seed in range(60)}
    assert len(used) >= 5


@given(seeds)
def test_a_wish_is_made_whatever_the_seed(seed: str) -> None:
    wish = Decision("unload", "ACK", 2)
    assert made(Seeded(seed, RATES, VALUES, (wish,)), [("unload", "ACK", 1), ("unload", "ACK", 2)]) == (wish,)


def reduce(script: Script, fails: Callable[[Script], bool], most: int = 1000) -> tuple[Script, int]:
    """Return the reduced script, and the number of trials."""
    least: list[Script] = []

    def judged(candidate: Script) -> Generator[Script, None, bool]:
        yield candidate
        return fails(candidate)

    def reducing() -> Iterator[Script]:
        least.append((yield from reduced(script, judged, most)))

    tried = list(reducing())
    return least[0], len(tried)


@given(scripts, st.data())
def test_a_reduced_script_is_the_planted_bug(script: Script, data: st.DataObject) -> None:
    """The planted bug needs some kinds of choices, each at any index."""
    needed = data.draw(st.sets(st.sampled_from([each[:2] for each in script]))) if script else set()

    def fails(candidate: Script) -> bool:
        return needed <= {each[:2] for each in candidate}

    least, _ = reduce(script, fails)
    assert fails(least)
    assert len(least) == len(needed)
    assert all(each.at == 0 for each in least)


@given(scripts)
def test_a_script_that_fails_only_as_a_whole_stays(script: Script) -> None:
    assert reduce(script, lambda candidate: candidate == script)[0] == script


@given(scripts, st.integers(1, 10))
def test_a_reduction_ends_after_its_most_trials(script: Script, most: int) -> None:
    assert reduce(script, lambda candidate: len(candidate) > 1, most)[1] <= most


def test_a_decision_moves_to_the_earliest_index_that_fails() -> None:
    late = (Decision("receipt-lost", "SEND", 9),)
    assert reduce(late, lambda candidate: any(each.at >= 3 for each in candidate))[0][0].at == 3


def test_a_run_that_fails_without_any_decision_has_an_empty_script() -> None:
    script = (Decision("unload", "SEND", 1), Decision("unload", "ACK", 1))
    assert reduce(script, lambda candidate: True) == ((), 1)
