"""Requests of other sites' pages are refused. Programs, proxies and the broker's own page may do everything."""

from __future__ import annotations

import json
import socket

import pytest

from pulsarium.broker.config import Config
from tests.broker.web.admin.rest import TOPICS, Rest, rest_of
from tests.broker.wire import serving

EVIL = "https://evil.example"


async def status(rest: Rest, method: str = "POST", path: str = "/lab/reset", **headers: str) -> int:
    return (await rest.call(method, path, **{"host": "localhost:8080", **headers})).status


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": EVIL},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site", "origin": "http://localhost:3000"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"},
    ],
)
@pytest.mark.parametrize("path", ["/lab/reset", "/admin/v2/brokers/shutdown", "/lab/seed", "/no-such-path"])
async def test_a_page_of_another_site_changes_nothing(rest: Rest, path: str, headers: dict[str, str]) -> None:
    assert await status(rest, "POST", path, **headers) == 403


async def test_the_refusal_names_the_page_and_the_key(rest: Rest) -> None:
    answer = await rest.call("POST", "/lab/reset", host="localhost:8080", origin=EVIL)
    assert answer.reason == (
        "a page of https://evil.example may not call this broker; "
        "if you trust it, allow it: pulsarium serve --set httpAllowedHosts=evil.example"
    )
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize(
    ("method", "headers"), [("GET", {"sec_fetch_mode": "no-cors"}), ("POST", {}), ("POST", {"origin": "null"})]
)
async def test_the_refusal_of_a_page_without_a_name_asks_to_allow_no_host(
    rest: Rest, method: str, headers: dict[str, str]
) -> None:
    answer = await rest.call(method, "/lab/faults", host="localhost:8080", sec_fetch_site="cross-site", **headers)
    assert answer.status == 403
    assert answer.reason == (
        "a page of another site may not call this broker, and the request has no Origin that names the site; open the "
        "address in the browser itself, call with fetch() from a page that httpAllowedHosts names, or let all pages "
        "call: pulsarium serve --set httpAllowedHosts='*'"
    )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://localhost:8080"},
        {"host": "broker.internal", "origin": "https://broker.internal"},  # behind a proxy that ends TLS
        {"host": "[::1]:8080", "origin": "http://[::1]:8080"},
        {"sec_fetch_site": "same-origin", "origin": "https://front.example"},  # behind a proxy that renames the host
        {"sec_fetch_site": "none"},
    ],
)
async def test_programs_and_the_brokers_own_page_may_change_things(rest: Rest, headers: dict[str, str]) -> None:
    assert await status(rest, **headers) == 204


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example"]
)
async def test_a_strangers_name_that_resolves_to_this_machine_reads_nothing(rest: Rest, host: str) -> None:
    assert await status(rest, "GET", "/admin/v2/tenants", host=host) == 403
    assert await status(rest, "POST", "/lab/snapshot", host=host) == 403
    assert await status(rest, "GET", "/", host=host) == 403


@pytest.mark.parametrize(
    "host",
    [
        *(
            "localhost",
            "LOCALHOST:8080",
            "localhost.",
            "127.0.0.1:18080",
            "[::1]:8080",
            "[fe80::1]",
            "",
        ),
        *("192.168.1.5:8080", "pulsar:8080", "host.docker.internal:8080", "pulsar.default.svc.cluster.local"),
    ],
)
async def test_names_that_no_stranger_can_have_are_answered(rest: Rest, host: str) -> None:
    assert await status(rest, "GET", "/admin/v2/tenants", host=host) == 200


async def test_of_the_names_in_local_only_the_machines_own_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger in the local network can take a name in .local, and let the name resolve to this machine."""
    monkeypatch.setattr(socket, "gethostname", lambda: "Laptop.lan")
    async with serving() as bed:
        for host, answer in (
            *(("laptop.local", 200), ("LAPTOP.local.:8080", 200), ("laptop.lan", 200)),
            *(("evil.local", 403), ("laptop.evil.local", 403), ("local", 200)),
        ):
            assert await status(rest_of(bed), "GET", "/admin/v2/tenants", host=host) == answer, host


@pytest.mark.parametrize(
    "config",
    [
        Config(advertisedAddress="Broker.Example"),
        Config(advertisedListeners="out:pulsar://broker.example:6650"),
        Config(httpAllowedHosts=frozenset({"broker.example"})),
        Config(httpAllowedHosts=frozenset({"*"})),
    ],
)
async def test_names_that_the_configuration_gives_are_answered(config: Config) -> None:
    async with serving(config) as bed:
        assert await status(rest_of(bed), "GET", "/admin/v2/tenants", host="broker.example:8080") == 200


@pytest.mark.serving(Config(httpAllowedHosts=frozenset({"localhost:3000"})))
async def test_a_site_that_the_configuration_allows_may_call(rest: Rest) -> None:
    assert await status(rest, origin="http://localhost:3000", sec_fetch_site="same-site") == 204
    assert await status(rest, origin="http://localhost:3001", sec_fetch_site="same-site") == 403


async def test_a_link_to_the_console_is_followed_and_an_embedded_call_is_not_answered(rest: Rest) -> None:
    foreign = {"sec_fetch_site": "cross-site"}
    assert await status(rest, "GET", "/", **foreign, sec_fetch_mode="navigate") == 200
    assert await status(rest, "GET", "/admin/v2/tenants", **foreign, sec_fetch_mode="no-cors") == 403
    for mode in ("no-cors", "cors", "websocket"):  # a page that embeds or calls the console follows no link
        assert await status(rest, "GET", "/", **foreign, sec_fetch_mode=mode) == 403
    assert await status(rest, "GET", "/", **foreign) == 403


async def test_no_link_of_another_site_leads_to_what_makes_things(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    peek, foreign = f"{TOPICS}/t/subscription/s/position/1", {"sec_fetch_site": "cross-site"}
    assert await status(rest, "GET", peek, **foreign, sec_fetch_mode="navigate") == 403
    assert await rest.get(f"{TOPICS}/t/subscriptions") == []


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "Text/Plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data"],
)
@pytest.mark.parametrize("path", ["/lab/faults", "/lab/seed", "/lab/restore", "/lab/captures"])
async def test_the_lab_takes_no_body_that_any_page_may_send(rest: Rest, path: str, content_type: str) -> None:
    body = json.dumps({"command": "SEND", "action": {"kind": "drop"}}).encode()
    answer = await rest.call("POST", path, body=body, host="localhost", content_type=content_type)
    assert answer.status == 415
    assert "send Content-Type: application/json" in answer.reason


async def test_the_lab_takes_json_of_programs(rest: Rest) -> None:
    body = json.dumps({"command": "SEND", "action": {"kind": "drop"}}).encode()
    answer = await rest.call("POST", "/lab/faults", body=body, content_type="application/json; charset=utf-8")
    assert answer.status == 200
