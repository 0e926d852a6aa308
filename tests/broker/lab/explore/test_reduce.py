"""Reduction of a script that fails."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.lab.explore.reduce import reduced
from pulsarium.broker.lab.explore.script import Decision, Script
from tests.broker.lab.explore.scripts import scripts


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
