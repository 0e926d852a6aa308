"""Fuzz target of REST requests to a broker that has a little of everything. No request may make the broker fail.

An input is JSON: a list of `[method, url, body, headers]`. A body is a text in which each character is one byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeAlias
from urllib.parse import quote

import trio
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.web.http.pulsar_routes import pulsar_routes
from pulsarium.broker.web.routes import all_routes
from tests.broker.web.admin.random_requests import (
    METHODS,
    NAMES,
    NAMES_OF_FIELDS,
    NUMBERS,
    ODD,
    PREPARED,
    QUERIES,
    VALUES,
    Bad,
    is_meant,
)
from tests.broker.web.admin.rest import Rest, rest_of
from tests.broker.wire import batch_of, plain, serving
from yardsticks.fuzz import mutations
from yardsticks.fuzz.oracle import Finding, watched
from yardsticks.fuzz.target import Target

RECORDED = Path(__file__).parents[1] / "replay" / "rest" / "recorded"
MOST = 8  # requests of one input, at most
ROUTES = sorted({(route.method, route.path) for route in (*(route for route, _ in all_routes()), *pulsar_routes())})
FIELDS = NAMES_OF_FIELDS.split()
LEAVES: list[Any] = [None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, 1.5, 1e300, float("nan"), "", *VALUES, [], {}]
BROKEN = ("{", "[", '"', "\xff\xfe", "[" * 3000, "{}{}", "\0", "NaN", "1" * 5000, '"\\ud800"')
TYPES = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/vnd.x+json",
    "",
    "x/y; z",
    "multipart/form-data",
)
CONFIG = Config(
    transactionCoordinatorEnabled=True, forceDeleteTenantAllowed=True, forceDeleteNamespaceAllowed=True
)  # fmt: skip

Request: TypeAlias = list[Any]  # method, URL, body and headers


class Requests(Target):
    """Requests of the admin API."""

    name = "rest"
    fresh = 250

    def run(self, data: bytes) -> None:
        with watched():
            trio.run(play, requests_of(data), clock=trio.testing.MockClock(autojump_threshold=0))

    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        other = requests_of(random.choice(others)) if others else []
        made = requests_of(data)
        for _ in range(random.choice((1, 1, 2, 3))):
            if random.random() < 0.15:
                made.insert(random.randint(0, len(made)), any_request(*random.choice(ROUTES), random))
            else:
                made = mutations.list_of(made, other, random, lambda request: changed(request, random))
        return json.dumps(made[:MOST]).encode()

    def seeds(self) -> Iterable[bytes]:
        random = Random(0)
        for start in range(0, len(ROUTES), MOST):
            some = [any_request(*route, random, odd=False) for route in ROUTES[start : start + MOST]]
            yield json.dumps(some).encode()
        for path in sorted(RECORDED.glob("*.jsonl")):
            calls = [json.loads(line) for line in path.read_text().splitlines()]
            with_body = [call for call in calls if "json" in call]
            for start in range(0, len(with_body), MOST):
                yield json.dumps([_recorded(call) for call in with_body[start : start + MOST]]).encode()

    def to_line(self, data: bytes) -> str:
        return data.decode()

    def of_line(self, line: str) -> bytes:
        return line.encode()


def _recorded(call: Any) -> Request:
    url = call["url"].replace("/t1/data/", "/ta/ns/").replace("/single", "/t")
    return [call["method"], url, json.dumps(call["json"]), {}]


def requests_of(data: bytes) -> list[Request]:
    """Return the requests of an input, or none if the input is not a list in JSON."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return []
    return [each for each in found if isinstance(each, list) and len(each) == 4] if isinstance(found, list) else []


def any_request(method: str, path: str, random: Random, *, odd: bool = True) -> Request:
    """Return a request on a route, mostly with names that exist in the broker."""
    parts = [_part(part, random, odd=odd) for part in path.split("/")]
    body = "" if method in ("GET", "DELETE") and random.random() < 0.9 else json.dumps(any_json(random))
    query = "&".join(
        f"{random.choice(QUERIES)}={quote(random.choice(VALUES))}"
        for _ in range(random.choice((0, 0, 1, 2)) if odd else 0)
    )
    return [method, "/".join(parts) + (f"?{query}" if query else ""), body, {}]


def _part(part: str, random: Random, *, odd: bool) -> str:
    if not part.startswith("{"):
        return part
    name = part.strip("{}").lower()
    known = next((found for key, found in NAMES.items() if name.startswith(key)), NUMBERS)
    found: str = random.choice((*ODD, *NUMBERS) if odd and random.random() < 0.1 else known)
    return quote(found, safe="%+.*") or "%20"


def any_json(random: Random, depth: int = 0) -> Any:
    kind = random.random()
    if depth > 2 or kind < 0.4:
        return random.choice(LEAVES)
    if kind < 0.8:
        return {random.choice(FIELDS): any_json(random, depth + 1) for _ in range(random.randint(0, 4))}
    return [any_json(random, depth + 1) for _ in range(random.randint(0, 3))]


def changed(request: Request, random: Random) -> Request:
    """Return a request with one change: another method, URL, body or header."""
    method, url, body, headers = (str(part) if index < 3 else part for index, part in enumerate(request))
    match random.randrange(8):
        case 0:
            method = random.choice(METHODS)
        case 1 | 2:
            url = _changed_url(url, random)
        case 3:
            body = random.choice(BROKEN)
        case 4:
            headers = {random.choice(("content_type", "accept", "host")): random.choice((*TYPES, "junk:99999", "\xe9"))}
        case _:
            try:
                body = json.dumps(changed_json(json.loads(body), random))
            except (ValueError, RecursionError):
                body = json.dumps(any_json(random))
    return [method, url, body, headers]


def _changed_url(url: str, random: Random) -> str:
    path, mark, query = url.partition("?")
    if random.random() < 0.4:
        name = random.choice(QUERIES)
        return f"{path}?{query}{'&' if query else ''}{name}={quote(random.choice(VALUES))}"
    parts = path.split("/")
    at = random.randrange(len(parts))
    if random.random() < 0.2:
        parts[at:at] = [""]
    else:
        parts[at] = quote(
            random.choice((*ODD, *NUMBERS, *(name for names in NAMES.values() for name in names))), safe="%+.*"
        )
    return "/".join(parts) + mark + query


def changed_json(value: Any, random: Random) -> Any:
    """Return a JSON value with one change."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        kind = random.random()
        if kind < 0.15:
            return {name: item for name, item in value.items() if name != key}
        if kind < 0.25:
            return {**value, random.choice(FIELDS): any_json(random, 1)}
        return {**value, key: changed_json(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.85:
        change: Callable[[Any], Any] = lambda item: changed_json(item, random)  # noqa: E731
        return mutations.list_of(value, [any_json(random, 1)], random, change)
    return any_json(random, 1)


# Seconds of the mock clock. So many, because the clock jumps while a thread writes a body to a file and the loop idles.
PATIENCE = 10_000_000


async def play(requests: Iterable[Request]) -> None:
    async with serving(CONFIG) as bed:
        rest = rest_of(bed)
        for method, url, value in PREPARED:
            await rest.call(method, url, value)
        wire = await bed.connect()
        await wire.producer("persistent://ta/ns/t")
        await wire.publish(plain(b"x", partition_key="k"), batch_of(b"y", b"z"), plain(b"x", deliver_at_time=2**62))
        for request in requests:
            with trio.fail_after(PATIENCE):
                await ask(rest, request)
        answer = await rest.call("GET", "/admin/v2/clusters")
        if answer.status != 200:
            raise Finding("no clusters any more", repr(answer))


async def ask(rest: Rest, request: Request) -> None:
    method, url, body, headers = request
    data = str(body).encode("latin-1", "replace")
    target = quote(str(url), safe="/?%&=+.*:@!$'(),;~-_#[]")
    given = {str(name): str(text).encode("utf-8", "replace").decode("latin-1") for name, text in dict(headers).items()}
    answer = await rest.call(str(method), target, body=data, **given)
    asked = Bad(str(method), "", target, data, given)
    if answer.status != 501 and not is_meant(asked, answer.status, answer.body):
        route = "/".join(part for part in target.partition("?")[0].split("/") if part.isalpha())
        raise Finding(f"{answer.status} {method} {route}", f"{asked}\n{answer.body[:2000]!r}")
