from __future__ import annotations

from dataclasses import replace

import pytest

from pulsarium.conformance.recordings.catalogue import CatalogueError, named, numbers
from pulsarium.conformance.recordings.record import scenarios_of
from pulsarium.conformance.recordings.releases import PULSAR_4
from yardsticks.replay.expectations import DIFFERENCES, Known, load, undocumented


def test_ranges_and_single_numbers() -> None:
    assert numbers(["001-003", "7"]) == {1, 2, 3, 7}


@pytest.mark.parametrize("text", ["", "seek", "1-", "-3", "1-2-3"])
def test_a_range_that_is_none(text: str) -> None:
    with pytest.raises(CatalogueError):
        numbers([text])


def test_every_scenario_has_its_recording() -> None:
    expected = load()
    assert [s.name for s in expected.scenarios] == [s.name for s in scenarios_of(PULSAR_4)]
    assert [s.number for s in expected.scenarios] == list(range(1, 153))
    assert {s.profile for s in expected.scenarios} == {"lab", "stock", "auth"}


def test_every_known_difference_is_explained_in_the_docs() -> None:
    assert undocumented(load().differs, DIFFERENCES.read_text()) == []


def test_a_reason_may_be_wrapped_but_not_reworded() -> None:
    known = [Known("001-connect-versions", ("+ [A] x",), "we answer v22")]
    assert undocumented(known, "| 001-connect-versions | we\nanswer v22 |") == []
    assert undocumented(known, "| 001-connect-versions | v22 is the answer |") == ["001-connect-versions"]
    assert undocumented(known, "we answer v22") == ["001-connect-versions"]


def test_a_profile_may_differ_in_more_answers() -> None:
    every = Known("001-connect-versions", ("+ [A] x",), "we answer x")
    default = Known("001-connect-versions", ("+ [A] y",), "we answer y", "pip")
    expected = replace(load(), differs=(every, default))
    assert expected.known("pulsar-4.2") == {every.name: every}
    both = expected.known("pip")[every.name]
    assert (both.answers, both.reason) == (("+ [A] x", "+ [A] y"), "we answer x; we answer y")


def test_scenarios_are_named_by_numbers_ranges_and_parts_of_names() -> None:
    lab = load().of_profile("lab")

    def found(*words: str) -> list[int]:
        return [each.number for each in named(lab, words)]

    assert found("37") == [37]
    assert found("001-003", "2") == [1, 2, 3]
    assert found("subscribe-busy", "7") == [7, 49]
    assert found("049-subscribe-busy") == [49]
    assert found() == [each.number for each in lab]
    with pytest.raises(CatalogueError, match="no recorded scenario fits 'nonsense'"):
        found("nonsense")
    with pytest.raises(CatalogueError):
        found("127")  # recorded, but with the stock profile
