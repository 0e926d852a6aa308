"""A proxy's ports, URLs, TLS and HTTP."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
import trio.testing

from pulsarium.broker.lab.faults import Drop, FaultError
from pulsarium.broker.lab.proxy.upstream import ProxyTls, Upstream, context_to_brokers, context_to_clients
from pulsarium.broker.testing.http import Http
from pulsarium.proto.framing import frame
from tests.broker.auth.secured import Authority
from tests.broker.lab.capture.capture import violations
from tests.broker.lab.proxy.behind import Behind, behind, in_front_of
from tests.broker.loopback import HANGS, until
from tests.broker.wire import TOPIC, Type, Wire, command, plain

PATH = "/lookup/v2/topic/persistent/public/default/t"


async def call(it: Behind, method: str, path: str, body: object = None) -> Any:
    return await trio.to_thread.run_sync(Http(it.proxy.admin_url).call, method, path, body)


async def test_a_capture_has_what_passed_and_the_linter_finds_nothing_wrong() -> None:
    async with behind() as it:
        it.lab.linter.start()
        capture = it.lab.captures.start()
        wire = await it.connect()
        await wire.producer(producer_name="p")
        await wire.subscribe()
        await wire.flow()
        [position] = await wire.publish(plain(b"hello", publish_time=it.proxy.broker.clock.now_ms()))
        assert (await wire.message()).payload == b"hello"
        await wire.ack(position)
        await wire.aclose()
        await until(lambda: not it.lab.taps.connections.all())
        assert violations(capture.records()) == []
        assert capture.frames == 12
        assert it.lab.linter.violations() == []


async def test_the_linter_finds_a_mistake_of_a_client() -> None:
    async with behind() as it:
        it.lab.linter.start()
        wire = await it.connect()
        await wire.flow(consumer_id=9)
        await wire.alive()
        assert sum(it.lab.linter.counts.values()) == 1


async def test_a_fault_is_added_and_awaited_over_http() -> None:
    async with behind() as it:
        wire = await it.sender(TOPIC)
        rule = await call(it, "POST", "/lab/faults", {"command": "SEND", "action": "drop", "topic": "t"})
        await wire.write(wire.sends(plain(b"lost")))
        assert (await call(it, "GET", f"/lab/faults/{rule['id']}/wait"))["hits"] == 1
        await call(it, "DELETE", "/lab/faults")
        assert await call(it, "GET", "/lab/faults") == []
        await wire.publish(plain(b"kept"))


async def test_a_part_of_the_lab_that_needs_a_broker_is_refused() -> None:
    async with behind() as it:
        with pytest.raises(Exception, match="only a broker of Pulsarium has its state"):
            await call(it, "GET", "/lab/clock")


async def test_http_goes_on_to_the_broker_and_lookups_lead_back_to_the_proxy() -> None:
    async with behind() as it:
        assert it.broker is not None
        direct = await trio.to_thread.run_sync(Http(it.broker.admin_url).call, "GET", "/admin/v2/tenants")
        assert await call(it, "GET", "/admin/v2/tenants") == direct
        found: Mapping[str, Any] = await call(it, "GET", PATH)
        assert found["httpUrl"] == it.proxy.admin_url
        wire = await it.dial(found["brokerUrl"])
        await wire.connect()
        assert len([*it.lab.taps.connections.all()]) == 1


@pytest.mark.parametrize("path", ["/lab/faults", "/admin/v2/tenants/stolen"])
@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}], ids=str
)
async def test_a_page_of_a_stranger_reaches_neither_the_lab_nor_the_broker(path: str, headers: dict[str, str]) -> None:
    async with behind() as it:
        assert await trio.to_thread.run_sync(status_of, it.proxy.admin_url, path, headers) == 403
        assert "stolen" not in await call(it, "GET", "/admin/v2/tenants")


async def test_a_name_of_the_proxy_that_is_allowed_is_answered() -> None:
    named = {"Host": "proxy.example"}
    async with behind(allowed_hosts=frozenset({"proxy.example"})) as it:
        assert await trio.to_thread.run_sync(status_of, it.proxy.admin_url, "/lab/nothing", named) == 501


def status_of(url: str, path: str, headers: dict[str, str]) -> int:
    """Return the status of a POST with these headers."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=HANGS)
    with closing(connection):
        connection.request("POST", path, b"{}", {"Content-Type": "application/json", **headers})
        return connection.getresponse().status


async def test_toxics_act_on_the_way_to_the_proxy() -> None:
    async with behind(toxiproxy_port=0) as it:
        api = Http(str(it.proxy.toxiproxy_url))
        made = {"name": "p", "upstream": it.proxy.service_url.removeprefix("pulsar://")}
        listen = (await trio.to_thread.run_sync(api.call, "POST", "/proxies", made))["listen"]
        wire = await it.dial(f"pulsar://{listen}")
        await wire.connect()
        await trio.to_thread.run_sync(api.call, "POST", "/proxies/p", {"enabled": False})
        with suppress(trio.BrokenResourceError):
            assert await wire.stream.receive_some(1) == b""


async def test_clients_of_a_cluster_stay_on_the_proxy() -> None:
    """A broker that an answer names gets a port of the proxy."""
    answers = [
        command(Type.LOOKUP_RESPONSE, request_id=1, response=1, brokerServiceUrl="pulsar://far:1"),
        command(Type.TOPIC_MIGRATED, resource_id=1, resource_type=0, brokerServiceUrl="pulsar://far:1"),
        command(Type.CLOSE_PRODUCER, producer_id=1, request_id=0, assignedBrokerServiceUrl="pulsar://far:1"),
        command(Type.CLOSE_CONSUMER, consumer_id=1, request_id=0, assignedBrokerServiceUrl="pulsar://far:2"),
    ]

    async def talks(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(b"".join(frame(each.SerializeToString()) for each in answers))
            await stream.receive_some()

    with trio.fail_after(HANGS):
        async with trio.open_nursery() as nursery:
            [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, talks, [listener])
            url = f"pulsar://127.0.0.1:{listener.socket.getsockname()[1]}"
            async with in_front_of(url, None) as it:
                wire = await it.dial()
                await wire.send(Type.PING)
                looked, moved = await wire.expect(Type.LOOKUP_RESPONSE), await wire.expect(Type.TOPIC_MIGRATED)
                closed, other = await wire.expect(Type.CLOSE_PRODUCER), await wire.expect(Type.CLOSE_CONSUMER)
                ours = Upstream.of(looked.brokerServiceUrl)
                assert ours.host == "127.0.0.1"
                assert moved.brokerServiceUrl == closed.assignedBrokerServiceUrl == str(ours)
                assert Upstream.of(other.assignedBrokerServiceUrl).port not in (ours.port, 2)
            nursery.cancel_scope.cancel()


async def test_both_sides_may_use_tls(tmp_path: Path) -> None:
    """A client speaks TLS with a proxy, which speaks TLS with the proxy of a broker."""
    authority = Authority(tmp_path)
    files = authority.sign("server")
    to_clients, to_brokers = context_to_clients(files.certificate, files.key), context_to_brokers(authority.path)
    async with behind(tls=ProxyTls(to_clients=to_clients)) as near:
        assert near.proxy.service_url.startswith("pulsar+ssl://")
        async with in_front_of(near.proxy.service_url, None, tls=ProxyTls(to_brokers, to_clients)) as it:
            port = Upstream.of(it.proxy.service_url).port
            stream = await trio.open_ssl_over_tcp_stream("localhost", port, ssl_context=to_brokers)
            wire = Wire(stream)
            await wire.connect()
            await wire.producer()
            await wire.publish(plain(b"x"))
            await wire.subscribe(initialPosition=1)
            await wire.flow()
            assert (await wire.message()).payload == b"x"
            await trio.aclose_forcefully(stream)


async def test_a_broker_that_may_be_production_gets_no_fault_without_consent() -> None:
    async with in_front_of("pulsar://pulsar.example.com", None) as it:
        with pytest.raises(FaultError, match="start the proxy with --yes-not-production"):
            it.lab.faults.add(Drop(), "SEND")
        it.lab.faults.observe("SEND")
    async with in_front_of("pulsar://pulsar.example.com", None, sure=True) as it:
        it.lab.faults.add(Drop(), "SEND")


async def test_a_slow_client_holds_its_broker_back() -> None:
    """The proxy holds no more than its buffers: the broker's socket fills, and the rest stays in the broker."""
    sent = 0

    async def talks(stream: trio.SocketStream) -> None:
        nonlocal sent
        with suppress(trio.BrokenResourceError):
            while True:
                await stream.send_all(bytes(1 << 16))
                sent += 1 << 16

    with trio.fail_after(HANGS):
        async with trio.open_nursery() as nursery:
            [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, talks, [listener])
            url = f"pulsar://127.0.0.1:{listener.socket.getsockname()[1]}"
            async with in_front_of(url, None) as it:
                await it.dial()
                await until(lambda: sent > 1 << 16)
                await trio.testing.wait_all_tasks_blocked(0.2)
                assert sent < 64 << 20
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("pulsar://localhost", True),
        ("pulsar://10.1.2.3", True),
        ("pulsar://[::1]:1", True),
        ("pulsar://broker:1", True),
        ("pulsar+ssl://pulsar.staging.svc.cluster.local", True),
        ("pulsar://9.9.9.9", False),
        ("pulsar+ssl://pulsar.example.com:6651", False),
    ],
)
def test_which_brokers_look_like_those_of_a_test(url: str, private: bool) -> None:
    assert Upstream.of(url).looks_like_a_test is private
