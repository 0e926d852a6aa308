"""Plans: the choices that follow from a seed."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.lab.explore.plan import MOST, Scripted, Seeded
from pulsarium.broker.lab.explore.script import Decision, Script

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
