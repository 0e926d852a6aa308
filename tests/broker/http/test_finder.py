"""Finding the route of a path among many."""

from __future__ import annotations

import pytest

from pulsarium.broker.http.registry import Finder


@pytest.fixture
def finder() -> Finder[str]:
    found: Finder[str] = Finder()
    for path in ("/", "/a/{x}/c", "/a/b/{y}", "/{z}/b/d", "/{one}/{two}", "/metrics", "/metrics/"):
        found.add(path, path)
    return found


@pytest.mark.parametrize(
    ("path", "answers", "parameters"),
    [
        ("/", "/", {}),
        ("/a/b/c", "/a/b/{y}", {"y": "c"}),
        ("/a/q/c", "/a/{x}/c", {"x": "q"}),
        ("/q/b/d", "/{z}/b/d", {"z": "q"}),
        ("/a/b", "/{one}/{two}", {"one": "a", "two": "b"}),
        ("/a%2Fb/%", "/{one}/{two}", {"one": "a%2Fb", "two": "%"}),
        ("/metrics", "/metrics", {}),
        ("/metrics/", "/metrics/", {}),
        ("/a/b/", "/{one}/{two}", {"one": "a", "two": "b"}),
    ],
)
def test_a_path_is_found(finder: Finder[str], path: str, answers: str, parameters: dict[str, str]) -> None:
    assert finder.find(path) == (answers, parameters)


@pytest.mark.parametrize("path", ["", "x", "/nope", "//b", "/a/", "/a//c", "/a/q/d", "/a/b/c/d", "/a/b//"])
def test_a_path_that_nothing_answers_is_not_found(finder: Finder[str], path: str) -> None:
    assert finder.find(path) is None


def test_the_most_fixed_path_that_takes_the_request_answers(finder: Finder[str]) -> None:
    assert finder.find("/a/b/c", lambda path: path == "/a/{x}/c") == ("/a/{x}/c", {"x": "b"})
    assert finder.find("/a/b/c", lambda path: False) == ("/a/b/{y}", {"y": "c"})


def test_two_paths_that_are_alike_are_refused(finder: Finder[str]) -> None:
    with pytest.raises(TypeError, match="two paths are like /a/"):
        finder.add("/a/{other}/c", "")
