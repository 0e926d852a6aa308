"""Toxiproxy's control API and its proxies, over plain HTTP on loopback."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import trio

from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing.starting import running
from pulsarium.broker.web.toxiproxy import MOST_TOXICS
from pulsarium.client import connect
from yardsticks.servers import free_port

Send = Callable[..., Awaitable[httpx.Response]]


@pytest.fixture
async def cluster() -> AsyncIterator[RunningCluster]:
    async with running(toxiproxy_port=0) as cluster:
        yield cluster


@pytest.fixture
async def send(cluster: RunningCluster) -> AsyncIterator[Send]:
    async with httpx.AsyncClient(base_url=str(cluster.toxiproxy_url), timeout=60) as client:
        yield client.request


@pytest.fixture
async def echo() -> AsyncIterator[str]:
    """Serve an echo server, and yield its address."""

    async def answer(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            async with stream:
                while data := await stream.receive_some(1 << 16):
                    await stream.send_all(data)

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, answer, [listener])
        yield f"127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def json_of(send: Send, method: str, path: str, body: object = None, status: int = 200) -> Any:
    answer = await send(method, path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def created(send: Send, upstream: str, name: str = "p", **more: Any) -> Any:
    body = {"name": name, "listen": "127.0.0.1:0", "upstream": upstream, **more}
    return await json_of(send, "POST", "/proxies", body, 201)


async def dial(proxy: Any) -> trio.SocketStream:
    host, _, port = proxy["listen"].rpartition(":")
    return await trio.open_tcp_stream(host, int(port))


async def all_of(stream: trio.SocketStream, size: int) -> bytes:
    """Return the next `size` bytes, or fewer when the connection ends first."""
    data = bytearray()
    while len(data) < size and (piece := await stream.receive_some(size)):
        data += piece
    return bytes(data)


async def test_a_proxy_forwards_until_it_is_deleted(send: Send, echo: str) -> None:
    proxy = await created(send, echo)
    assert proxy == {"name": "p", "listen": proxy["listen"], "upstream": echo, "enabled": True, "toxics": []}
    assert await json_of(send, "GET", "/proxies") == {"p": proxy}
    assert await json_of(send, "GET", "/proxies/p") == proxy
    async with await dial(proxy) as stream:
        await stream.send_all(b"hello")
        assert await all_of(stream, 5) == b"hello"
        assert await json_of(send, "DELETE", "/proxies/p", status=204) is None
        assert await all_of(stream, 1) == b""
    with pytest.raises(OSError, match="connect"):
        await dial(proxy)
    assert await json_of(send, "GET", "/proxies") == {}


async def test_a_disabled_proxy_keeps_its_port_number_and_comes_back(send: Send, echo: str) -> None:
    proxy = await created(send, echo)
    assert not (await json_of(send, "POST", "/proxies/p", {"enabled": False}))["enabled"]
    with pytest.raises(OSError, match="connect"):
        await dial(proxy)
    assert await json_of(send, "PATCH", "/proxies/p", {"enabled": True}) == proxy
    async with await dial(proxy) as stream:
        await stream.send_all(b"a")
        assert await all_of(stream, 1) == b"a"


async def test_a_proxy_moves_to_another_upstream(send: Send, echo: str) -> None:
    proxy = await created(send, "127.0.0.1:1")
    async with await dial(proxy) as stream:
        assert await all_of(stream, 1) == b""
    moved = await json_of(send, "PATCH", "/proxies/p", {"upstream": echo})
    assert (moved["listen"], moved["upstream"], moved["enabled"]) == (proxy["listen"], echo, True)
    async with await dial(moved) as stream:
        await stream.send_all(b"a")
        assert await all_of(stream, 1) == b"a"


async def test_a_toxic_is_added_shown_changed_and_removed(send: Send, echo: str) -> None:
    await created(send, echo)
    added = await json_of(send, "POST", "/proxies/p/toxics", {"type": "latency", "attributes": {"latency": 5}})
    assert added == {
        "attributes": {"latency": 5, "jitter": 0},
        "name": "latency_downstream",
        "type": "latency",
        "stream": "downstream",
        "toxicity": 1.0,
    }
    path = "/proxies/p/toxics/latency_downstream"
    assert await json_of(send, "GET", path) == added
    changed = await json_of(send, "POST", path, {"attributes": {"jitter": 2}, "toxicity": 0.5})
    assert changed == added | {"attributes": {"latency": 5, "jitter": 2}, "toxicity": 0.5}
    upstream = await json_of(send, "POST", "/proxies/p/toxics", {"name": "u", "type": "timeout", "stream": "UPSTREAM"})
    assert await json_of(send, "GET", "/proxies/p/toxics") == [upstream, changed]
    assert await json_of(send, "DELETE", path, status=204) is None
    assert (await json_of(send, "GET", "/proxies/p"))["toxics"] == [upstream]


async def test_toxics_act_on_open_connections_in_their_own_direction(send: Send, echo: str) -> None:
    proxy = await created(send, echo)
    async with await dial(proxy) as stream:
        await stream.send_all(b"a")
        assert await all_of(stream, 1) == b"a"
        limit = {"type": "limit_data", "attributes": {"bytes": 3}}
        await json_of(send, "POST", "/proxies/p/toxics", limit)
        await stream.send_all(b"bcdef")
        assert await all_of(stream, 10) == b"bcd"


async def test_no_bandwidth_cuts_a_connection_until_the_reset(send: Send, echo: str) -> None:
    proxy = await created(send, echo)
    for direction in ("upstream", "downstream"):
        cut = {"name": direction, "type": "bandwidth", "stream": direction, "attributes": {"rate": 0}}
        await json_of(send, "POST", "/proxies/p/toxics", cut)
    async with await dial(proxy) as stream:
        await stream.send_all(b"hello")
        with trio.move_on_after(0.05):
            raise AssertionError(await stream.receive_some())
        assert await json_of(send, "POST", "/reset", status=204) is None
        assert await all_of(stream, 5) == b"hello"
    assert (await json_of(send, "GET", "/proxies/p"))["toxics"] == []


async def test_a_reset_enables_all_proxies(send: Send, echo: str) -> None:
    await created(send, echo, enabled=False)
    await json_of(send, "POST", "/reset", status=204)
    assert (await json_of(send, "GET", "/proxies/p"))["enabled"]


async def test_a_reset_peer_sends_a_tcp_reset(send: Send, echo: str) -> None:
    proxy = await created(send, echo)
    await json_of(send, "POST", "/proxies/p/toxics", {"type": "reset_peer", "stream": "upstream"})
    async with await dial(proxy) as stream:
        await stream.send_all(b"a")
        with pytest.raises(trio.BrokenResourceError) as broken:
            await stream.receive_some()
        assert isinstance(broken.value.__cause__, ConnectionResetError)


async def test_populate_creates_and_replaces_and_keeps_the_same(send: Send, echo: str) -> None:
    kept = await created(send, echo, "kept")
    await json_of(send, "POST", "/proxies/kept/toxics", {"type": "latency"})
    wanted = [
        {"name": "kept", "listen": kept["listen"], "upstream": echo},
        {"name": "new", "listen": "127.0.0.1:0", "upstream": echo, "enabled": False},
    ]
    answer = await json_of(send, "POST", "/populate", wanted, 201)
    assert [(each["name"], each["enabled"], len(each["toxics"])) for each in answer["proxies"]] == [
        ("kept", True, 1),
        ("new", False, 0),
    ]
    replaced = await json_of(send, "POST", "/populate", [wanted[0] | {"upstream": "127.0.0.1:1"}], 201)
    assert replaced["proxies"][0]["toxics"] == []


async def test_a_failed_populate_shows_the_proxies_before_the_failure(send: Send, echo: str) -> None:
    good = {"name": "good", "listen": "127.0.0.1:0", "upstream": echo}
    answer = await json_of(send, "POST", "/populate", [good, good | {"name": "bad", "listen": "127.0.0.1"}], 400)
    assert answer["error"] == "bad request body: address 127.0.0.1: HOST:PORT is wanted"
    assert [each["name"] for each in answer["proxies"]] == ["good"]


async def test_a_taken_port_is_named(send: Send, echo: str) -> None:
    body = {"name": "p", "listen": echo, "upstream": echo}
    answer = await json_of(send, "POST", "/proxies", body, 500)
    assert answer["error"].startswith(f"listen tcp {echo}: Address already in use")
    assert await json_of(send, "GET", "/proxies") == {}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        ("GET", "/proxies/none", None, 404, "proxy not found"),
        ("DELETE", "/proxies/none", None, 404, "proxy not found"),
        ("POST", "/proxies", {"name": "p", "upstream": "a:1"}, 409, "proxy already exists"),
        ("POST", "/proxies", {"upstream": "a:1"}, 400, "missing required field: name"),
        ("POST", "/proxies", {"name": "q"}, 400, "missing required field: upstream"),
        ("POST", "/proxies", {"name": 5}, 400, "bad request body: name is 5; a text is wanted"),
        ("POST", "/proxies", {"name": "q", "upstream": "a:1", "enabled": 1}, 400, "bad request body: enabled is 1"),
        ("POST", "/proxies", [], 400, "bad request body: an object is wanted"),
        ("POST", "/populate", {}, 400, "bad request body: a list of proxies is wanted"),
        ("POST", "/populate", [{"name": "q"}], 400, "missing required field: upstream at proxy 1"),
        ("GET", "/proxies/p/toxics/none", None, 404, "toxic not found"),
        ("POST", "/proxies/p/toxics", {"type": "latency"}, 409, "toxic already exists"),
        ("POST", "/proxies/p/toxics", {"type": "poison"}, 400, "invalid toxic type"),
        ("POST", "/proxies/p/toxics", {"type": "latency", "stream": "side"}, 400, "stream was invalid, can be either"),
        ("POST", "/proxies/p/toxics", {"type": "slicer"}, 400, "bad request body: average_size is 0"),
        ("POST", "/proxies/p/toxics", {"type": "timeout", "toxicity": 2}, 400, "bad request body: toxicity is 2"),
        ("PATCH", "/proxies/p/toxics/latency_downstream", {"attributes": {"latency": -1}}, 400, "bad request body"),
        ("PUT", "/proxies", {}, 405, "/proxies has the methods GET, POST"),
        ("GET", "/metrics", None, 404, "no path /metrics"),
    ],
)
async def test_a_wrong_call_is_refused(
    send: Send, echo: str, method: str, path: str, body: object, status: int, error: str
) -> None:
    await created(send, echo)
    await json_of(send, "POST", "/proxies/p/toxics", {"type": "latency"})
    answer = await json_of(send, method, path, body, status)
    assert answer["status"] == status
    assert answer["error"].startswith(error)


async def test_a_body_that_is_no_json_is_refused(send: Send) -> None:
    answer = await send("POST", "/proxies", content=b"{")
    assert (answer.status_code, answer.json()["error"][:17]) == (400, "bad request body:")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
        {"User-Agent": "Mozilla/5.0"},
    ],
)
async def test_a_page_in_a_browser_controls_nothing(send: Send, echo: str, headers: dict[str, str]) -> None:
    body = {"name": "p", "listen": "127.0.0.1:0", "upstream": echo}
    assert (await send("POST", "/proxies", json=body, headers=headers)).status_code == 403
    assert await json_of(send, "GET", "/proxies") == {}


async def test_curl_needs_no_content_type(send: Send, echo: str) -> None:
    body = b'{"name": "p", "listen": "127.0.0.1:0", "upstream": "%s"}' % echo.encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "User-Agent": "curl/8.5"}
    assert (await send("POST", "/proxies", content=body, headers=headers)).status_code == 201


async def test_the_number_of_toxics_is_bounded(send: Send, echo: str) -> None:
    await created(send, echo)
    for number in range(MOST_TOXICS):
        await json_of(send, "POST", "/proxies/p/toxics", {"name": str(number), "type": "latency"})
    answer = await json_of(send, "POST", "/proxies/p/toxics", {"name": "more", "type": "latency"}, 400)
    assert answer["error"] == f"the proxy has {MOST_TOXICS} toxics already; remove some"


async def test_an_unknown_attribute_is_ignored_with_a_warning(
    send: Send, echo: str, caplog: pytest.LogCaptureFixture
) -> None:
    await created(send, echo)
    await json_of(send, "POST", "/proxies/p/toxics", {"type": "latency", "attributes": {"latancy": 5}})
    assert "ignored an attribute that the toxic does not have" in caplog.text


async def test_the_version_is_one_of_toxiproxy(send: Send) -> None:
    assert (await json_of(send, "GET", "/version"))["version"].startswith("2.")


async def test_the_ports_are_free_when_the_broker_has_closed(echo: str) -> None:
    async with (
        running(toxiproxy_port=0) as cluster,
        httpx.AsyncClient(base_url=str(cluster.toxiproxy_url), timeout=60) as client,
    ):
        proxy = await created(client.request, echo)
        stream = await dial(proxy)
    assert await all_of(stream, 1) == b""
    await stream.aclose()
    with pytest.raises(OSError, match="connect"):
        await dial(proxy)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", ""])
async def test_a_proxy_listens_on_every_kind_of_address(send: Send, echo: str, host: str) -> None:
    if host == "[::1]" and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    proxy = await created(send, echo, listen=f"{host}:0")
    to = "::1" if host == "[::1]" else "127.0.0.1"
    async with await trio.open_tcp_stream(to, int(proxy["listen"].rpartition(":")[2])) as stream:
        await stream.send_all(b"a")
        assert await all_of(stream, 1) == b"a"


async def test_an_upstream_that_resets_ends_the_client_s_connection(send: Send) -> None:
    async def reset(stream: trio.SocketStream) -> None:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, reset, [listener])
        proxy = await created(send, f"127.0.0.1:{listener.socket.getsockname()[1]}")
        async with await dial(proxy) as stream:
            assert await all_of(stream, 1) == b""
        nursery.cancel_scope.cancel()


async def test_a_pulsar_client_stays_behind_a_proxy_that_the_broker_advertises() -> None:
    listen = f"127.0.0.1:{free_port()}"
    async with (
        running(set={"advertisedListeners": f"proxied:pulsar://{listen}"}, toxiproxy_port=0) as cluster,
        httpx.AsyncClient(base_url=str(cluster.toxiproxy_url), timeout=60) as client,
    ):
        upstream = cluster.service_url.removeprefix("pulsar://")
        await created(client.request, upstream, listen=listen)
        slices = {"type": "slicer", "attributes": {"average_size": 3, "size_variation": 2}}
        await json_of(client.request, "POST", "/proxies/p/toxics", slices)
        async with (
            connect(f"pulsar://{listen}") as pulsar,
            pulsar.subscribe("t", "s") as consumer,
            pulsar.create_producer("t") as producer,
        ):
            await producer.send(b"hello")
            assert (await consumer.receive()).data() == b"hello"
            assert (await json_of(client.request, "PATCH", "/proxies/p", {"enabled": False}))["enabled"] is False
            await cluster.lab.changes.until(lambda: not cluster.broker.sessions)


# an API that other machines reach


@pytest.fixture
async def reached(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningCluster]:
    """Run a broker whose control API other machines seem to reach."""
    monkeypatch.setattr("pulsarium.broker.web.toxiproxy.is_loopback", lambda host: False)
    async with running(toxiproxy_port=0, brokers=2) as cluster:
        yield cluster


async def test_an_api_that_others_reach_leads_to_the_brokers_of_its_cluster_alone(
    reached: RunningCluster, echo: str
) -> None:
    port = urlsplit(reached.brokers[1].service_url).port
    async with httpx.AsyncClient(base_url=str(reached.toxiproxy_url), timeout=60) as client:
        ours = (f"localhost:{port}", f":{port}", f"127.0.0.1:{port}")
        proxies = [await created(client.request, upstream, str(number)) for number, upstream in enumerate(ours)]
        async with connect(f"pulsar://{proxies[0]['listen']}") as pulsar, pulsar.create_producer("t") as producer:
            await producer.send(b"x")
        for upstream in (echo, f"192.0.2.1:{port}", f"no.such.host.invalid:{port}"):
            body = {"name": "q", "listen": "127.0.0.1:0", "upstream": upstream}
            refused = await json_of(client.request, "POST", "/proxies", body, 400)
            assert f"upstream {upstream} is no port of this broker" in refused["error"]
        update = await json_of(client.request, "POST", "/proxies/0", {"upstream": echo}, 400)
        assert "other machines reach this API" in update["error"]


async def test_the_name_of_an_upstream_is_looked_up_again_for_each_connection(
    reached: RunningCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name may mean this machine when the proxy is made, and another machine later."""
    port = urlsplit(reached.brokers[0].service_url).port
    means = "127.0.0.1"

    async def resolve(host: str, *_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (means, 0))]

    monkeypatch.setattr(trio.socket, "getaddrinfo", resolve)
    async with httpx.AsyncClient(base_url=str(reached.toxiproxy_url), timeout=60) as client:
        proxy = await created(client.request, f"fickle.example:{port}")
    means = "192.0.2.1"
    async with await dial(proxy) as stream:
        assert await all_of(stream, 1) == b""
