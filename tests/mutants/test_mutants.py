"""The mutants of `scripts/mutate` fit the sources; and what it says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.__main__ import LEAST, ROOT, Outcome, is_enough, summary
from tests.mutants.mutant import Mutant, MutantError
from tests.mutants.rows import MUTANTS

EXAMPLE = Mutant("name", "broker/file.py", "one", "two", "It breaks.", ("tests/test_file.py",))


def test_each_mutant_still_applies_exactly_once() -> None:
    for mutant in MUTANTS:
        compile(mutant.applied(ROOT), mutant.file, "exec")


def test_each_mutant_has_a_name_of_its_own_and_tests_that_are_there() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert [path for mutant in MUTANTS for path in mutant.first if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize(("text", "times"), [("", 0), ("one one", 2)])
def test_a_mutant_that_applies_no_more_is_named(tmp_path: Path, text: str, times: int) -> None:
    with pytest.raises(MutantError, match=r"name: there is no broker/file\.py"):
        EXAMPLE.applied(tmp_path)
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker/file.py").write_text(text)
    with pytest.raises(MutantError, match=f"name: its old text stands {times} times in broker/file.py, not once"):
        EXAMPLE.applied(tmp_path)


def test_a_few_may_survive_of_all_and_none_of_those_that_were_named() -> None:
    caught, survived = Outcome(EXAMPLE, by="tests/test_file.py::test_it_works"), Outcome(EXAMPLE)
    assert is_enough([caught] * LEAST + [survived] * (len(MUTANTS) - LEAST))
    assert not is_enough([caught] * (LEAST - 1) + [survived] * (len(MUTANTS) - LEAST + 1))
    assert is_enough([caught])
    assert not is_enough([caught, survived])


def test_a_mutant_that_could_not_be_tried_is_never_enough() -> None:
    caught, problem = Outcome(EXAMPLE, by="tests/test_file.py::test_it_works"), Outcome(EXAMPLE, problem="no tests")
    assert not is_enough([caught] * (len(MUTANTS) - 1) + [problem])


def test_the_summary_names_what_survived() -> None:
    lines = summary([Outcome(EXAMPLE, by="tests/test_file.py::test_it_works"), Outcome(EXAMPLE)]).splitlines()
    assert lines[0] == "1 of 2 mutants were caught"
    assert lines[2:] == ["name (broker/file.py)", "  It breaks.", "  No everyday test noticed: write one."]
