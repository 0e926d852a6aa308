"""A proxy's ports, URLs, TLS and HTTP."""

from __future__ import annotations

import errno
import http.client
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
import trio
import trio.testing

from pulsarium.broker.auth.tls import context_of
from pulsarium.broker.config import Config, LoadedConfig
from pulsarium.broker.lab.faults import Drop, Duplicate, FaultError
from pulsarium.broker.lab.proxy import proxy
from pulsarium.broker.lab.proxy.proxy import ONLY_PLAIN, ONLY_TLS
from pulsarium.broker.lab.proxy.upstream import Upstream, context_to_brokers
from pulsarium.broker.net.accepting import NO_LINGER
from pulsarium.broker.testing.http import Http, RemoteRefusal
from pulsarium.broker.web.proxy_page import MOST_ROWS
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.auth.secured import Authority, bearer, by_token
from tests.broker.lab.capture.capture import violations
from tests.broker.lab.proxy.behind import Behind, behind, in_front_of, two_sides
from tests.broker.loopback import HANGS, MB, until
from tests.broker.web.websocket.talk import CONSUMER, PRODUCER, Talk, message, text_of
from tests.broker.wire import TOPIC, Type, Wire, command, frame_of, plain

PING = frame_of(Type.PING)
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
        with pytest.raises(Exception, match="its state: the time of another broker cannot be set"):
            await call(it, "GET", "/lab/clock")


async def test_a_broker_without_a_console_has_the_page_of_the_proxy_in_its_place() -> None:
    async with behind() as it:
        assert it.broker is not None
        shown = await trio.to_thread.run_sync(page_of, it.proxy.admin_url)
        assert "Pulsarium proxy in front of" not in shown  # the broker has a console
        async with without_routes() as url, in_front_of(it.broker.service_url, url) as other:
            await other.connect(client_version="<wire>")
            other.lab.faults.add(Drop(), "SEND", topic="<t>")
            shown = await trio.to_thread.run_sync(page_of, other.proxy.admin_url)
            assert f"Pulsarium proxy in front of {url}" in shown
            assert f"Clients connect to <code>{other.proxy.service_url}</code>. Commands find it with" in shown
            assert f"<code>--admin-url</code> <code>{other.proxy.admin_url}</code>." in shown
            assert "<td>&lt;wire&gt;</td>" in shown
            assert "<td>drop SEND of &lt;t&gt;</td>" in shown
            with pytest.raises(Exception, match=r"/pulsarium/overview is not here.*ask `pulsarium admin topics stats"):
                await call(other, "GET", "/pulsarium/overview")


async def test_a_broker_that_has_died_leaves_the_page_of_the_proxy() -> None:
    with socket.socket() as closed:  # bound, and nobody listens
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        async with in_front_of("pulsar://127.0.0.1:1", url) as it:
            shown = await trio.to_thread.run_sync(page_of, it.proxy.admin_url)
    assert f"Pulsarium proxy in front of {url}, which does not answer (" in shown


async def test_the_page_of_a_proxy_has_the_first_rows_of_a_long_table() -> None:
    async with in_front_of("pulsar://127.0.0.1:1", None) as it:
        for _ in range(MOST_ROWS + 1):
            it.lab.faults.observe("SEND")
        shown = await trio.to_thread.run_sync(page_of, it.proxy.admin_url)
        assert shown.partition("<h2>Faults</h2>")[2].count("<tr><td>") == MOST_ROWS
        assert f"Only the first {MOST_ROWS} are shown." in shown


def page_of(url: str) -> str:
    with urlopen(url) as answer:
        text: str = answer.read().decode()
    return text


@asynccontextmanager
async def without_routes() -> AsyncIterator[str]:
    """Serve HTTP that knows no path, and yield its URL."""

    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, answer, [listener])
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


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


async def test_a_websocket_reaches_the_broker() -> None:
    async with behind() as it, websocket(it) as (producer, consumer):
        await consumer.open()
        await producer.open()
        await producer.send(message("hello"))
        received = await consumer.frame()
        assert text_of(received) == "hello"
        await trio.aclose_forcefully(producer.stream)
        await trio.aclose_forcefully(consumer.stream)


async def test_a_page_of_a_stranger_opens_no_websocket() -> None:
    async with behind() as it, websocket(it, Origin="https://evil.example") as (producer, _):
        await producer.open()
        assert producer.status == 403


@asynccontextmanager
async def websocket(it: Behind, **headers: str) -> AsyncIterator[list[Talk]]:
    """Yield a producer and a consumer that have not sent their requests yet."""
    place = urlsplit(it.proxy.admin_url)
    async with AsyncExitStack() as stack:
        yield [
            Talk(
                await stack.enter_async_context(await trio.open_tcp_stream(place.hostname or "", place.port or 0)),
                path,
                headers,
                "localhost",
            )
            for path in (PRODUCER, CONSUMER)
        ]


async def test_a_name_of_the_proxy_that_is_allowed_is_answered() -> None:
    named = {"Host": "proxy.example"}
    async with behind(allowed_hosts=frozenset({"proxy.example"})) as it:
        assert await trio.to_thread.run_sync(status_of, it.proxy.admin_url, "/lab/nothing", named) == 501


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        (
            {"Host": "evil.example"},
            "not this proxy's; if you trust it, allow it: pulsarium proxy --allow-host evil.example",
        ),
        (
            {"Origin": "https://evil.example"},
            "may not call this proxy; if you trust it, allow it: pulsarium proxy --allow",
        ),
        ({"Origin": "null"}, "a page that --allow-host names, or let all pages call: pulsarium proxy --allow-host '*'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("of", ["admin_url", "toxiproxy_url"])
async def test_a_refusal_of_a_page_names_the_option_of_the_proxy(of: str, headers: dict[str, str], words: str) -> None:
    async with in_front_of("pulsar://localhost:1", None, toxiproxy_port=0) as it:
        assert words in await trio.to_thread.run_sync(refusal_of, getattr(it.proxy, of), headers)


def refusal_of(url: str, headers: dict[str, str]) -> str:
    """Return the body of the answer to a POST with these headers."""
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{url}/version", b"{}", headers))
    return refused.value.read().decode()


def status_of(url: str, path: str, headers: dict[str, str]) -> int:
    """Return the status of a POST with these headers."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=HANGS)
    with closing(connection):
        connection.request("POST", path, b"{}", {"Content-Type": "application/json", **headers})
        return connection.getresponse().status


async def test_a_proxy_with_authentication_asks_callers_of_its_lab_for_a_role() -> None:
    """The broker judges the callers of its own paths."""
    async with behind(keys=LoadedConfig(by_token())) as it:

        def status(path: str, headers: Mapping[str, str]) -> int:
            try:
                Http(it.proxy.admin_url, headers=headers).send("GET", path)
            except RemoteRefusal as refused:
                return refused.status
            return 200

        for path, headers, found in (
            ("/lab/faults", {}, 401),
            ("/lab/faults", bearer("stranger"), 401),
            ("/lab/faults", bearer("admin"), 200),
            ("/admin/v2/tenants", {}, 200),
            ("/", {}, 200),
        ):
            assert await trio.to_thread.run_sync(status, path, headers) == found, path


async def test_the_limit_of_a_brokers_http_requests_is_not_one_of_the_proxy() -> None:
    """The keys may be those of a cluster, each of whose brokers has the limit."""
    keys = LoadedConfig(Config(httpRequestsLimitEnabled=True, httpRequestsMaxPerSecond=0.001))
    async with behind(keys=keys) as it:
        assert await call(it, "GET", "/admin/v2/tenants")


async def test_the_page_of_a_proxy_with_authentication_shows_no_client() -> None:
    async with in_front_of("pulsar://127.0.0.1:1", None, keys=LoadedConfig(by_token())) as it:
        shown = await trio.to_thread.run_sync(page_of, it.proxy.admin_url)
    assert "The lab of this proxy asks for a role" in shown
    assert "Connections" not in shown


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
    own, to_brokers = secured_by(tmp_path)
    async with (
        behind(**own) as near,
        in_front_of(str(near.proxy.service_url_tls), None, tls=to_brokers, **own) as it,
    ):
        stream = await secured(str(it.proxy.service_url_tls), to_brokers)
        wire = Wire(stream)
        await wire.connect()
        await wire.producer()
        await wire.publish(plain(b"x"))
        await wire.subscribe(initialPosition=1)
        await wire.flow()
        assert (await wire.message()).payload == b"x"
        await trio.aclose_forcefully(stream)


async def test_a_broker_with_tls_alone_is_reached_through_the_proxy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first broker has a port without TLS. Its answers name the second one, twice."""
    own, to_brokers = secured_by(tmp_path)
    async with behind(**own) as far:
        url = str(far.proxy.service_url_tls)
        async with (
            answering(None, {"brokerServiceUrlTls": url}) as first,
            in_front_of(first, None, tls=to_brokers, **own) as it,
        ):
            found = await asked_twice(it)
            await (await it.dial(found.brokerServiceUrl)).connect()
            page = await trio.to_thread.run_sync(page_of, it.proxy.admin_url)
    assert caplog.text.count(ONLY_TLS) == 1
    assert f"<td>{url}</td><td>{ONLY_TLS}" in page


async def test_a_broker_without_tls_is_not_connected_to_where_tls_is_wanted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own, to_brokers = secured_by(tmp_path)
    keys = Config(tlsCertificateFilePath=str(own["tls_cert"]), tlsKeyFilePath=str(own["tls_key"]))
    async with behind() as far:
        answers = answering(context_of(keys), {"brokerServiceUrl": far.proxy.service_url})
        async with answers as first, in_front_of(first, None, tls=to_brokers, **own) as it:
            found = await asked_twice(it)
            assert await (await it.dial(found.brokerServiceUrl)).closed() == []
            page = await trio.to_thread.run_sync(page_of, it.proxy.admin_url)
        assert not far.lab.taps.connections.all()
    assert caplog.text.count(ONLY_PLAIN) == 1
    assert f"<td>{far.proxy.service_url}</td><td>{ONLY_PLAIN}" in page


def secured_by(folder: Path) -> tuple[dict[str, Any], ssl.SSLContext]:
    """Return the options of a side that has a port with TLS, and the context that trusts it."""
    authority = Authority(folder)
    files = authority.sign("server")
    return {"tls_port": 0, "tls_cert": files.certificate, "tls_key": files.key}, context_to_brokers(authority.path)


async def asked_twice(it: Any) -> Any:
    """Ask the broker of `answering` for a topic twice, and return the second answer, which leads to the proxy."""
    wire = await it.dial()
    await wire.send(Type.PING)
    await wire.expect(Type.LOOKUP_RESPONSE)
    await wire.send(Type.PING)
    found = await wire.expect(Type.LOOKUP_RESPONSE)
    assert Upstream.of(found.brokerServiceUrlTls).secure
    return found


async def test_a_broker_that_gets_no_port_of_the_proxy_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async with answering(None, {"brokerServiceUrl": "pulsar://far:1"}) as url, in_front_of(url, None) as it:
        wire = await it.dial()
        monkeypatch.setattr(proxy, "bind", full)
        for _ in range(2):
            await wire.send(Type.PING)
            assert (await wire.expect(Type.LOOKUP_RESPONSE)).brokerServiceUrl == "pulsar://far:1"
        assert (
            "pulsar://far:1</td><td>no port for a broker: its clients bypass the proxy"
            in await trio.to_thread.run_sync(page_of, it.proxy.admin_url)
        )
        monkeypatch.undo()
        await wire.send(Type.PING)
        assert Upstream.of((await wire.expect(Type.LOOKUP_RESPONSE)).brokerServiceUrl).host == "127.0.0.1"
        assert "bypass the proxy" not in await trio.to_thread.run_sync(page_of, it.proxy.admin_url)
    assert caplog.text.count("its clients bypass the proxy") == 1


@asynccontextmanager
async def answering(tls: ssl.SSLContext | None, urls: Mapping[str, Any]) -> AsyncIterator[str]:
    """Run a broker that answers each read with a lookup's answer, and yield its URL."""
    answer = frame_of(Type.LOOKUP_RESPONSE, request_id=1, response=1, **urls)

    async def talks(stream: trio.abc.Stream) -> None:
        with suppress(trio.BrokenResourceError):
            while await stream.receive_some(1000):
                await stream.send_all(answer)

    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    place = f"127.0.0.1:{listener.socket.getsockname()[1]}"
    served: trio.abc.Listener[Any] = listener if tls is None else trio.SSLListener(listener, tls)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, talks, [served])
        yield f"pulsar://{place}" if tls is None else f"pulsar+ssl://{place}"
        nursery.cancel_scope.cancel()


def test_a_proxy_takes_certificates_as_other_clients_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 and later want extensions that many private authorities do not write."""
    made = ssl.create_default_context()
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    monkeypatch.setattr(ssl, "create_default_context", lambda **named: made)
    assert not context_to_brokers().verify_flags & ssl.VERIFY_X509_STRICT


async def secured(url: str, trust: ssl.SSLContext) -> trio.SSLStream[trio.SocketStream]:
    place = Upstream.of(url)
    return await trio.open_ssl_over_tcp_stream(place.host, place.port, ssl_context=trust)


async def test_lookups_lead_to_https_and_to_both_ports_of_the_proxy(tmp_path: Path) -> None:
    """The certificate and its key are one file."""
    authority = Authority(tmp_path)
    files = authority.sign("server")
    files.certificate.write_bytes(files.certificate.read_bytes() + files.key.read_bytes())
    trust = context_to_brokers(authority.path)
    async with behind(tls_port=0, https_port=0, tls_cert=files.certificate) as it:

        def asked(url: str | None) -> Mapping[str, Any]:
            with urlopen(f"{url}{PATH}", context=trust if str(url).startswith("https") else None) as answer:
                found: Mapping[str, Any] = json.load(answer)
            return found

        secure = await trio.to_thread.run_sync(asked, it.proxy.admin_url_tls)
        assert (secure["httpUrl"], secure["httpUrlTls"]) == (it.proxy.admin_url, it.proxy.admin_url_tls)
        assert await trio.to_thread.run_sync(asked, it.proxy.admin_url) == secure
        stream = await secured(secure["brokerUrlTls"], trust)
        await Wire(stream).connect()
        await trio.aclose_forcefully(stream)
        await (await it.dial(secure["brokerUrl"])).connect()


async def test_a_lookup_names_the_proxy_as_its_client_does() -> None:
    async with behind() as it:
        url = it.proxy.admin_url.replace("127.0.0.1", "localhost")
        found = await trio.to_thread.run_sync(Http(url).call, "GET", PATH)
        assert (found["httpUrl"], Upstream.of(found["brokerUrl"]).host) == (url, "localhost")


async def test_a_proxy_without_https_names_none() -> None:
    async with behind() as it:
        assert (await call(it, "GET", PATH))["httpUrlTls"] is None


async def test_a_broker_that_may_be_production_gets_no_fault_without_consent() -> None:
    async with in_front_of("pulsar://pulsar.example.com", None) as it:
        with pytest.raises(FaultError, match="start the proxy with --yes-not-production"):
            it.lab.faults.add(Drop(), "SEND")
        it.lab.faults.observe("SEND")
    async with in_front_of("pulsar://pulsar.example.com", None, sure=True) as it:
        it.lab.faults.add(Drop(), "SEND")


@pytest.mark.parametrize("by", ["client", "broker"])
async def test_a_reset_is_passed_on_as_a_reset(by: str) -> None:
    async with two_sides() as sides:
        one, other = (sides.client, sides.broker) if by == "client" else (sides.broker, sides.client)
        await one.send_all(PING)
        assert await other.receive_some() == PING
        await reset(one)
        assert await met_reset(other)


async def test_a_reset_that_a_write_meets_is_passed_on() -> None:
    """The client is read no more, because it does not read. After the write, a read meets a plain end."""
    async with two_sides() as sides:
        copied = sides.it.lab.faults.add(Duplicate(100), "MESSAGE")
        place = pb.MessageIdData(ledgerId=1, entryId=1)
        await sides.broker.send_all(frame_of(Type.MESSAGE, bytes(MB), consumer_id=1, message_id=place))
        await until(lambda: copied.hits)
        await sides.client.send_all(PING)
        assert await sides.broker.receive_some() == PING
        await reset(sides.client)
        assert await met_reset(sides.broker)


async def reset(side: trio.SocketStream) -> None:
    side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    await side.aclose()


async def met_reset(side: trio.SocketStream) -> bool:
    """Read to the end of a connection, and return whether it is a reset."""
    try:
        while await side.receive_some():
            pass
    except trio.BrokenResourceError as error:
        return isinstance(error.__cause__, ConnectionResetError)
    return False


async def test_a_proxy_without_a_file_descriptor_for_brokers_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def full(*_: object) -> None:
        each = OSError(errno.EMFILE, "Too many open files")
        raise OSError("all attempts failed") from ExceptionGroup("all attempts failed", [each])

    async with behind() as it:
        monkeypatch.setattr(proxy, "dial", full)
        for _ in range(2):
            wire = await it.dial()
            assert await wire.stream.receive_some(1) == b""
        monkeypatch.undo()
        await it.connect()
    [warning] = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "raise the limit of open files, or close connections" in warning


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


async def test_a_client_at_the_wrong_port_of_another_broker_is_told_of_that_port(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with behind() as near:
        assert near.broker is not None
        other_name = near.broker.service_url.replace("127.0.0.1", "localhost")
        async with in_front_of(other_name, near.broker.admin_url) as it:
            url = (await call(it, "GET", PATH))["brokerUrl"]
            assert url != it.proxy.service_url
            stream = (await it.dial(url)).stream
            await stream.send_all(b"\x16\x03\x01\x00\x05hello")
            await stream.aclose()
            await until(lambda: f"TLS came to {url}, " in caplog.text)


WRONG_PORTS = {
    "the broker's port is for TLS": (b"\x15\x03\x03\x00\x02\x02\x50", b"", "name it as pulsar+ssl://HOST:PORT"),
    "the broker's port is for HTTP": (b"HTTP/1.1 400 \r\n\r\n", b"", "HTTP answers there; name the port of Pulsar's"),
    "no broker is there": (
        b"SSH-2.0-OpenSSH\r\n",
        b"",
        "no Pulsar broker answers there: the answer begins with b'SSH-",
    ),
    "the broker says nothing": (b"", b"", "name it as pulsar+ssl://HOST:PORT"),
    "the client uses TLS": (b"", b"\x16\x03\x01\x00\x05hello", "TLS came to pulsar://127.0.0.1:"),
    "the client speaks HTTP": (b"", b"GET / HTTP/1.1\r\n\r\n", "HTTP is answered at http://127.0.0.1:"),
}


@pytest.mark.parametrize(("of_broker", "of_client", "said"), WRONG_PORTS.values(), ids=WRONG_PORTS)
async def test_a_side_at_a_wrong_port_is_told_of_once(
    of_broker: bytes, of_client: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def broker(stream: trio.SocketStream) -> None:
        await stream.receive_some(1000)
        await stream.send_all(of_broker)

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, broker, [listener])
        async with in_front_of(f"pulsar://127.0.0.1:{listener.socket.getsockname()[1]}", None) as it:
            for _ in range(2):
                stream = (await it.dial()).stream
                await stream.send_all(of_client or frame_of(Type.CONNECT, client_version="test"))
                with suppress(trio.BrokenResourceError):
                    while await stream.receive_some(1000):
                        pass
                await trio.aclose_forcefully(stream)
            await until(lambda: not it.lab.taps.connections.all())
        nursery.cancel_scope.cancel()
    assert caplog.text.count("a connection ended before the broker answered") == 1
    assert said in caplog.text
