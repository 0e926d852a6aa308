"""Paths as clients send them, and paths that do not exist. Finding the route of a path among many."""

from __future__ import annotations

import json

import pytest

from pulsarium.broker.web.http.registry import Finder
from tests.broker.web.admin.rest import ADMIN, TENANTS, TOPICS, Rest


async def test_a_slash_at_the_end_changes_nothing(rest: Rest) -> None:
    assert await rest.get(f"{TENANTS}/") == await rest.get(TENANTS) == ["public", "pulsar"]


async def test_an_encoded_slash_stays_inside_its_part(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("PUT", f"{TOPICS}/t/subscription/a%2Fb%20c+d%252b%C3%A9")
    assert await rest.get(f"{TOPICS}/t/subscriptions") == ["a/b c d+é"]
    await rest.done("DELETE", f"{TOPICS}/t/subscription/a%252fb+c%20d%252B%c3%a9")
    assert await rest.refused("PUT", f"{TOPICS}/a%2Fb") == (412, "Topic name is not valid")


@pytest.mark.parametrize(
    "path", ["/nope", "/admin/", f"{ADMIN}/nope", "/admin/v1/tenants", "/admin/tenants", "//x", "/%"]
)
async def test_an_unknown_path_is_not_found(rest: Rest, path: str) -> None:
    answer = await rest.call("GET", path)
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json) == ["servlet", "message", "url", "status"]
    assert answer.json["message"] == "Not Found"


async def test_an_unknown_path_is_a_page_for_a_browser(rest: Rest) -> None:
    answer = await rest.call("GET", "/<script>", accept="text/html,*/*;q=0.8")
    assert answer.status == 404
    assert answer.headers["content-type"] == "text/html;charset=iso-8859-1"
    assert b"<title>Error 404 Not Found</title>" in answer.body
    assert b"<script" not in answer.body


async def test_options_and_head_have_no_body(rest: Rest) -> None:
    options = await rest.call("OPTIONS", f"{TENANTS}/public")
    assert (options.status, options.body) == (200, b"")
    assert options.headers["allow"] == "HEAD,DELETE,POST,GET,OPTIONS,PUT"
    head = await rest.call("HEAD", TENANTS)
    assert head.status == 200
    assert head.headers["content-length"] == str(len(json.dumps(["public", "pulsar"], separators=(",", ":"))))
    assert (await rest.call("HEAD", f"{TENANTS}/nope")).status == 404


@pytest.mark.req("B-53")
async def test_packages_are_not_enabled(rest: Rest) -> None:
    answer = await rest.refused("GET", "/admin/v3/packages/function/public/default/p/v1/metadata")
    assert answer == (503, "Package Management Service is not enabled in the broker.")


@pytest.mark.req("B-53")
async def test_functions_are_not_enabled(rest: Rest) -> None:
    for path in ("/admin/v3/functions/connectors", "/admin/v2/worker/cluster", "/admin/v3/sinks/public/default/s"):
        status, reason = await rest.refused("GET", path)
        assert status == 409
        assert reason.startswith("Pulsar Function Worker is not enabled")


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
