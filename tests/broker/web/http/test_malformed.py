"""Malformed names, ids, numbers and queries: no route of the broker answers them with a fault of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.web.http.registry import Route
from pulsarium.broker.web.routes import all_routes
from tests.broker.web.admin.rest import Rest, rest_of
from tests.broker.wire import serving

VALUES = (
    *("xx", "%", "%00", "%2F", "a%2Fb", "%FF", "%ED%A0%80", "..", "-1", "1.5", "1e999", "0x10", "٣", "9" * 30),
    *(
        "null",
        "[]",
        "{}",
        "a:b",
        "1:2:3",
        ":",
        "-partition-",
        "x-partition-99999999999",
        "topic",
        "segment",
        "*",
        "x" * 300,
    ),
)
QUERIES = ("", "x", "-1", "9" * 30, "1.5", "٣", "%FF", "%00", "null", "1:2:3", "true")
BODIES = (b"{", b"null", b"[]", b'"x"', b"{}", b'{"x": [[1e999]]}', b"\xff", b"9" * 5000, b"[" * 5000)
NAMED_IN_QUERIES = """
start limit offset filter subscription full count after since state topic messageId seed connection command when
number index timestamp messagePosition initialPosition authoritative force bundle seconds file format by until
"""
USUAL = {"domain": "persistent", "tenant": "public", "namespace": "default", "topic": "t", "subscription": "s"}


def routes() -> list[Route]:
    return sorted({route for route, _ in all_routes()}, key=lambda route: (route.path, route.method))


def urls(path: str) -> Iterator[str]:
    """Yield the path with each parameter malformed in turn, and with malformed queries."""
    parts = path.split("/")
    usual = [USUAL.get(part[1:-1], "x") if part.startswith("{") else part for part in parts]
    for index, part in enumerate(parts):
        if part.startswith("{"):
            yield from ("/".join([*usual[:index], value, *usual[index + 1 :]]) for value in VALUES)
    for value in QUERIES:
        yield "/".join(usual) + "?" + "&".join(f"{name}={quote(value, safe='%')}" for name in NAMED_IN_QUERIES.split())


async def faults(rest: Rest, route: Route, caplog: pytest.LogCaptureFixture) -> list[str]:
    found = []
    requests = [(url, b"") for url in urls(route.path)]
    if route.method in ("POST", "PUT", "DELETE"):
        plain = "/".join(USUAL.get(each[1:-1], "x") if each.startswith("{") else each for each in route.path.split("/"))
        requests += [(plain, body) for body in BODIES]
    for url, body in requests:
        caplog.clear()
        answer = await rest.call(route.method, url, body=body)
        logged = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
        if logged or answer.status == 500:
            found.append(f"{route.method} {url} {body[:20]!r}: {answer.status} {answer.body[:200]!r} {logged}")
    return found


@pytest.mark.parametrize("first", sorted({"/".join(each.path.split("/")[:4]) for each in routes()}))
async def test_malformed_parameters_are_no_fault_of_the_broker(first: str, caplog: pytest.LogCaptureFixture) -> None:
    found: list[str] = []
    async with serving(Config(transactionCoordinatorEnabled=True)) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", "/admin/v2/persistent/public/default/t")
        for route in routes():
            if "/".join(route.path.split("/")[:4]) == first:
                found += await faults(rest, route, caplog)
    assert found == []
