from __future__ import annotations

from dataclasses import replace

import pytest

from yardsticks.replay.catalogue import DIFFERENCES, CatalogueError, Known, load, numbers, undocumented


def test_ranges_and_single_numbers() -> None:
    assert numbers(["001-003", "7"]) == {1, 2, 3, 7}


@pytest.mark.parametrize("text", ["", "seek", "1-", "-3", "1-2-3"])
def test_a_range_that_is_none(text: str) -> None:
    with pytest.raises(CatalogueError):
        numbers([text])


def test_the_catalogue_has_the_rows_that_each_issue_requires() -> None:
    catalogue = load()
    assert {issue: len(numbers) for issue, numbers in catalogue.required.items()} == {
        3: 62,
        4: 60,
        5: 3,
        6: 8,
        9: 3,
        10: 16,
    }
    assert not catalogue.required[3] & catalogue.required[4]


def test_every_recording_is_in_the_catalogue() -> None:
    catalogue = load()
    assert [s.number for s in catalogue.scenarios] == list(range(1, 153))
    assert {s.profile for s in catalogue.scenarios} == {"lab", "stock", "auth"}


def test_every_recording_is_required() -> None:
    assert load().all_required() == set(range(1, 153))


def test_quick_scenarios_are_required_ones() -> None:
    catalogue = load()
    assert catalogue.quick <= catalogue.all_required()


def test_every_known_difference_is_explained_in_the_docs() -> None:
    page = DIFFERENCES.read_text() if DIFFERENCES.exists() else ""
    assert undocumented(load().differs, page) == []


def test_a_reason_may_be_wrapped_but_not_reworded() -> None:
    known = [Known("001-connect-versions", ("+ [A] x",), "we answer v22")]
    assert undocumented(known, "| 001-connect-versions | we\nanswer v22 |") == []
    assert undocumented(known, "| 001-connect-versions | v22 is the answer |") == ["001-connect-versions"]
    assert undocumented(known, "we answer v22") == ["001-connect-versions"]


def test_a_profile_may_differ_in_more_answers() -> None:
    every = Known("001-connect-versions", ("+ [A] x",), "we answer x")
    default = Known("001-connect-versions", ("+ [A] y",), "we answer y", "pip")
    catalogue = replace(load(), differs=(every, default))
    assert catalogue.known("pulsar-4.2") == {every.name: every}
    both = catalogue.known("pip")[every.name]
    assert (both.answers, both.reason) == (("+ [A] x", "+ [A] y"), "we answer x; we answer y")


def test_scenarios_are_named_by_numbers_ranges_and_parts_of_names() -> None:
    catalogue = load()

    def named(*words: str) -> list[int]:
        return [s.number for s in catalogue.named(words, "lab")]

    assert named("37") == [37]
    assert named("001-003", "2") == [1, 2, 3]
    assert named("subscribe-busy", "7") == [7, 49]
    assert named("049-subscribe-busy") == [49]
    with pytest.raises(CatalogueError, match="no scenario of profile 'lab' fits 'nonsense'"):
        named("nonsense")
    with pytest.raises(CatalogueError):
        named("127")  # recorded, but with the stock profile
