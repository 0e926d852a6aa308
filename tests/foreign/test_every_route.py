"""Calls of every route of the admin API by a plain HTTP client, with the answers of a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarium.broker.web.http.pulsar_routes import anonymous
from pulsarium.broker.web.http.registry import Route

from .broker_process import COMMAND, BrokerProcess, given_address, is_pulsarium
from .every_route import NO_ANSWER, STATUSES, call_all, routes
from .java_admin import CONFIG

pytestmark = pytest.mark.timeout(600)

INVENTORY = Path(__file__).with_name("inventory.tsv")

NON_PERSISTENT = "/admin/v2/non-persistent/{tenant}/{namespace}/{topic}"
PERSISTENT = "/admin/v2/persistent/{tenant}/{namespace}/{topic}"
OURS = "a real broker has no such route"
FAILS = "a real broker fails with a 500"
NO_LOCAL_POLICIES = "a real broker has no place for what was never set"

OTHERWISE = {
    "GET /": (200, OURS),
    "GET /pulsarium/topics": (200, OURS),
    "GET /pulsarium/overview": (200, OURS),
    "GET /pulsarium/samples": (200, OURS),
    "GET /pulsarium/connections": (200, OURS),
    "GET /pulsarium/find": (200, OURS),
    "GET /pulsarium/form/{domain}/{tenant}/{namespace}/{topic}": (200, OURS),
    "POST /pulsarium/preview/{domain}/{tenant}/{namespace}/{topic}": (400, OURS),
    "POST /pulsarium/publish/{domain}/{tenant}/{namespace}/{topic}": (400, OURS),
    "GET /pulsarium/topic/{domain}/{tenant}/{namespace}/{topic}": (200, OURS),
    "GET /pulsarium/messages/{domain}/{tenant}/{namespace}/{topic}": (200, OURS),
    "GET /pulsarium/policies/{tenant}/{namespace}": (200, OURS),
    "GET /pulsarium/policies/{domain}/{tenant}/{namespace}/{topic}": (200, OURS),
    "GET /console/{file}": (200, OURS),
    "GET /admin/v2/proxy-stats/stats": (200, OURS),
    "GET /status.html": (200, "no file of that name makes a broker unready"),
    f"POST {PERSISTENT}/subscription/{{subscription}}/skipByMessageIds": (204, OURS),
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/antiAffinity": (204, NO_LOCAL_POLICIES),
    "DELETE /admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}": (204, NO_LOCAL_POLICIES),
    "GET /admin/v2/namespaces/{tenant}/{namespace}/scanOffloadedLedgers": (400, FAILS),
    "POST /admin/v2/brokers/shutdown": (204, "a real broker answers when it has ended, or not at all"),
    f"GET {PERSISTENT}/backlog": (200, "takes a minute there"),
    f"GET {PERSISTENT}/subscriptionTypesEnabled": (200, "204 there as long as a topic has no policy at all"),
    f"GET {NON_PERSISTENT}/subscriptionTypesEnabled": (200, "204 there as long as a topic has no policy at all"),
    f"GET {NON_PERSISTENT}/getMessageIdByIndex": (406, "as PIP-415 has it; 405 with --profile pulsar-4.2"),
    f"POST {NON_PERSISTENT}/terminate/partitions": (406, FAILS),
} | {
    f"{method} {NON_PERSISTENT}/{rest}": (405, FAILS)
    for method, rest in (
        ("PUT", "backlogSize"),
        ("GET", "compaction"),
        ("PUT", "compaction"),
        ("GET", "internal-info"),
        ("GET", "ledger/{ledger}/entry/{entry}"),
        ("GET", "offload"),
        ("PUT", "offload"),
        ("POST", "subscription/{subscription}/expireMessages"),
        ("POST", "subscription/{subscription}/resetcursor"),
        ("POST", "subscription/{subscription}/skip/{count}"),
        ("POST", "subscription/{subscription}/skip_all"),
    )
}
"""Routes whose status differs from a real broker's: the status here, and the reason."""

ABSENT = {
    "DELETE /admin/v2/persistent/{t}/{n}/{topic}/schemaValidationEnforced": "no broker has it: 405",
}
"""Calls of clients for which this broker has no route, and the reason."""


def table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


@pytest.fixture(scope="module")
def statuses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """Call all routes on one broker, the shutdown last, and yield the status of each route."""
    if given_address() is not None:
        pytest.skip(f"needs a broker of its own: {COMMAND} can start it")
    process = BrokerProcess(tmp_path_factory.mktemp("every-route"), ["--config", str(CONFIG)])
    try:
        yield {name_of(route): status for route, status in call_all(process.address, routes())}
    finally:
        if process.running:  # the last route may have stopped the broker
            process.stop(40)


RECORDED = {f"{method} {path}": int(status) for method, path, status in table(STATUSES)}
WANTED = RECORDED | {name: status for name, (status, _) in OTHERWISE.items()}


# The everyday suite replays conformance/rest, which calls all but five of these routes.
@pytest.mark.heavy
def test_every_route_answers_as_a_real_broker_does(statuses: dict[str, int]) -> None:
    wanted = WANTED if is_pulsarium() else RECORDED
    names = [name_of(route) for route in routes()]
    assert [f"{name}: {statuses[name]}, not {wanted[name]}" for name in names if statuses[name] != wanted[name]] == []


@pytest.mark.heavy
@pytest.mark.skipif(not is_pulsarium(), reason="a real broker fails on some routes")
def test_no_route_fails_in_the_broker(statuses: dict[str, int]) -> None:
    assert [name for name, status in statuses.items() if status >= 500 or status == NO_ANSWER] == []


def test_each_was_recorded_and_nothing_else() -> None:
    assert set(RECORDED) == set(WANTED) == {name_of(route) for route in routes()}


def test_every_call_of_other_clients_has_a_route() -> None:
    built = [(route.method, anonymous(route.path).split("/")) for route in routes()]
    missing = []
    for method, path in table(INVENTORY):
        parts = anonymous(path).split("/")  # the inventory has {role} for any part after /permissions
        if not any(known == method and _fits(template, parts) for known, template in built):
            missing.append(f"{method} {path}")
    assert missing == list(ABSENT)


def _fits(template: list[str], parts: list[str]) -> bool:
    return len(template) == len(parts) and all(
        name == part or "{}" in (name, part) for name, part in zip(template, parts, strict=True)
    )
