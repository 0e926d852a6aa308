from __future__ import annotations

from typing import Any

import pytest

from .recorded import comparable, differences, parsed, without_chance


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("created 2026-11-21T20:39:04.021Z on localhost:8080", "created TIME on BROKER"),
        ("12:0:-1", "LEDGER:0:-1"),
        ("-1:-1:-1", "-1:-1:-1"),
        ("at 1795295046050 ms", "at MILLISECONDS ms"),
        ("r    [produce, consume]", "r    [consume, produce]"),
        ("v1.2:3", "v1.2:3"),
    ],
)
def test_values_of_chance_get_names(text: str, left: str) -> None:
    assert without_chance(text) == left


def test_measures_are_compared_by_type_in_statistics_only() -> None:
    told = {"msgRateIn": 1.5, "msgBacklog": 4, "version": None}
    assert comparable(told) == told
    assert comparable(told, statistics=True) == {"msgRateIn": "NUMBER", "msgBacklog": 4, "version": None}


def test_sets_of_names_have_an_order() -> None:
    assert comparable(["b", "a"]) == ["a", "b"]
    assert comparable([2, 1]) == [2, 1]


@pytest.mark.parametrize(
    ("wanted", "got", "lines"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, [".a[1].b: 2 there, 3 here"]),
        ({"a": 1}, {"b": 1}, [".a: only there", ".b: only here"]),
        ([1], [1, 2], [": [1] there, [1, 2] here"]),
        (1, True, [": 1 there, True here"]),
    ],
)
def test_differences_of_answers_are_named(wanted: Any, got: Any, lines: list[str]) -> None:
    assert list(differences(wanted, got)) == lines


@pytest.mark.parametrize(("text", "value"), [('{"a": 1}', {"a": 1}), ("[1]", [1]), ("{no", "{no"), ("7", "7")])
def test_json_in_a_text(text: str, value: Any) -> None:
    assert parsed(text) == value
