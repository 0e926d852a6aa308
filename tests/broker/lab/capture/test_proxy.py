"""A proxy between clients and brokers, over loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trio

from pulsarium.broker.config import Config, ServeOptions
from pulsarium.broker.lab.capture import Capture
from pulsarium.broker.lab.proxy.upstream import Upstream
from pulsarium.broker.proxying import ProxyOptions, recording
from pulsarium.broker.server import open_broker
from pulsarium.capture.file import CaptureReader, CaptureRecord, EventKind
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.lab.capture.capture import told, violations
from tests.broker.loopback import HANGS, until
from tests.broker.wire import TOPIC, Type, Wire, command, plain
from tests.client.refusing import refusing_port


async def dial(url: str) -> Wire:
    target = Upstream.of(url)
    return Wire(await trio.open_tcp_stream(target.host, target.port))


def proxying(target: Upstream, path: Path, host: str = "127.0.0.1") -> AbstractAsyncContextManager[tuple[Capture, str]]:
    return recording(ProxyOptions(upstream=target, host=host), path)


def read(path: Path) -> list[CaptureRecord]:
    return list(CaptureReader().feed(path.read_bytes()))


@asynccontextmanager
async def broker_that(talks: Callable[[trio.SocketStream], Awaitable[None]]) -> AsyncIterator[Upstream]:
    """Serve `talks` as a broker on loopback, and yield its address."""
    with trio.fail_after(HANGS):
        async with trio.open_nursery() as nursery:
            [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, talks, [listener])
            yield Upstream("127.0.0.1", listener.socket.getsockname()[1])
            nursery.cancel_scope.cancel()


async def test_a_broker_of_ours_through_the_proxy(tmp_path: Path) -> None:
    path = tmp_path / "run.pulscap"
    options = ServeOptions(config=Config(brokerServicePort=0, webServicePort=0))
    with trio.fail_after(HANGS):
        async with (
            open_broker(options) as running,
            proxying(Upstream.of(running.service_url), path) as (capture, url),
        ):
            wire = await dial(url)
            await wire.connect()
            await wire.producer(producer_name="p")
            await wire.subscribe()
            await wire.flow()
            [position] = await wire.publish(plain(b"hello", publish_time=running.broker.clock.now_ms()))
            assert (await wire.message()).payload == b"hello"
            await wire.ack(position)
            await wire.aclose()
            await until(lambda: not running.broker.sessions and capture.frames >= 12)
    records = read(path)
    assert violations(records) == []
    assert [each for each in told(records) if "client" in each] == [
        *("client opened", "client CONNECT", "client PRODUCER", "client SUBSCRIBE", "client FLOW", "client SEND"),
        *("client ACK", "client closed"),
    ]
    assert sum(each.kind is EventKind.FRAME for each in records) == 12


async def test_clients_of_a_cluster_stay_on_the_proxy(tmp_path: Path) -> None:
    """A broker that a lookup names gets a port of the proxy. The capture holds the answers as the broker sent them."""

    async def talks(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            fields = {"request_id": 1, "response": 1, "brokerServiceUrl": f"pulsar://localhost:{target.port}"}
            await stream.send_all(frame(command(Type.LOOKUP_RESPONSE, **fields).SerializeToString()))
            await stream.receive_some()

    path = tmp_path / "run.pulscap"
    async with broker_that(talks) as target, proxying(target, path) as (_, url):
        urls = {url}
        for _ in range(2):
            wire = await dial(url)
            await wire.send(Type.LOOKUP, topic=TOPIC, request_id=1)
            answer: pb.CommandLookupTopicResponse = await wire.expect(Type.LOOKUP_RESPONSE)
            await wire.aclose()
            url = answer.brokerServiceUrl
            urls.add(url)
        assert len(urls) == 2  # 127.0.0.1 and localhost are two brokers; the second lookup finds localhost known
        wire = await dial(url)
        await wire.send(Type.LOOKUP, topic=TOPIC, request_id=1)
        assert (await wire.expect(Type.LOOKUP_RESPONSE)).brokerServiceUrl == url
        await wire.aclose()
    answers = [each for each in read(path) if b"pulsar://localhost" in each.data]
    assert len(answers) == 3


async def test_a_proxy_on_all_addresses_names_itself_as_the_client_knows_it(tmp_path: Path) -> None:
    async def talks(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            fields = {"request_id": 1, "response": 1, "brokerServiceUrl": str(target)}
            await stream.send_all(frame(command(Type.LOOKUP_RESPONSE, **fields).SerializeToString()))
            await stream.receive_some()

    async with broker_that(talks) as target, proxying(target, tmp_path / "run.pulscap", host="0.0.0.0") as (_, url):
        port = Upstream.of(url).port
        wire = await dial(f"pulsar://127.0.0.1:{port}")
        await wire.send(Type.LOOKUP, topic=TOPIC, request_id=1)
        answer: pb.CommandLookupTopicResponse = await wire.expect(Type.LOOKUP_RESPONSE)
        assert answer.brokerServiceUrl == f"pulsar://127.0.0.1:{port}"
        await wire.aclose()


async def test_a_host_that_is_no_name(tmp_path: Path) -> None:
    path = tmp_path / "run.pulscap"
    with trio.fail_after(HANGS):
        async with proxying(Upstream.of("pulsar://a..b:1"), path) as (_, url):
            wire = await dial(url)
            await wire.closed()
            await wire.aclose()
    assert read(path)[1].note["reason"].startswith("cannot connect to pulsar://a..b:1: ")


async def test_a_broker_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "run.pulscap"
    with refusing_port() as port, trio.fail_after(HANGS):
        async with proxying(Upstream("127.0.0.1", port), path) as (_, url):
            wire = await dial(url)
            await wire.closed()
            await wire.aclose()
    opened, closed = read(path)
    assert opened.kind is EventKind.OPENED
    assert (closed.kind, closed.sender.value) == (EventKind.CLOSED, "broker")
    assert closed.note["reason"].startswith("cannot connect to pulsar://127.0.0.1:")


async def test_other_protocols_pass_the_proxy_and_are_not_captured(tmp_path: Path) -> None:
    said = b"GET /secret HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n"

    async def talks(stream: trio.SocketStream) -> None:
        async with stream:
            heard = b""
            while len(heard) < 2 * len(said):
                heard += await stream.receive_some()
            await stream.send_all(heard)

    path = tmp_path / "run.pulscap"
    async with broker_that(talks) as target, proxying(target, path) as (_, url):
        wire = await dial(url)
        await wire.write(said)
        await wire.write(said)
        back = b""
        while data := await wire.stream.receive_some():
            back += data
        await wire.aclose()
    assert back == said * 2
    assert [each.kind for each in read(path)] == [EventKind.OPENED, EventKind.CLOSED]


async def test_half_a_frame_goes_on_when_its_sender_has_ended(tmp_path: Path) -> None:
    whole = frame(command(Type.PING).SerializeToString())

    async def talks(stream: trio.SocketStream) -> None:
        async with stream:
            assert await stream.receive_some() == whole[:12]
            assert await stream.receive_some() == b""

    async with broker_that(talks) as target, proxying(target, tmp_path / "run.pulscap") as (_, url):
        wire = await dial(url)
        assert isinstance(wire.stream, trio.SocketStream)
        await wire.write(whole[:12])
        await wire.stream.send_eof()
        assert await wire.stream.receive_some() == b""
        await wire.aclose()


async def test_a_capture_that_cannot_go_on_does_not_stop_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def talks(stream: trio.SocketStream) -> None:
        async with stream:
            while data := await stream.receive_some():
                await stream.send_all(data)

    async with broker_that(talks) as target, proxying(target, tmp_path / "run.pulscap") as (capture, url):
        wire = await dial(url)
        capture._store.trouble = "No space left on device"
        for _ in range(2):
            await wire.send(Type.PING)
            await wire.expect(Type.PING)
        await wire.aclose()
    assert not capture.running
    assert "a capture ended early" in caplog.text


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("pulsar://h:1", ("h", 1)),
        ("pulsar://h", ("h", 6650)),
        ("pulsar://h/", ("h", 6650)),
        ("pulsar://h/path", ("h", 6650)),
        ("pulsar://h,i:7", ("h", 6650)),
        ("pulsar://[::1]:7", ("::1", 7)),
        ("pulsar://[::1]", ("::1", 6650)),
    ],
)
def test_the_target_of_a_proxy_is_the_first_host_of_its_url(url: str, target: tuple[str, int]) -> None:
    assert Upstream.of(url)[:2] == target
    assert Upstream.of(str(Upstream.of(url))) == Upstream.of(url)


@pytest.mark.parametrize("url", ["http://h:8080", "h:6650", "pulsar://:1", "pulsar://h:0", "pulsar://a@h:1", ""])
def test_a_target_without_a_port_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="pulsar://HOST:PORT or"):
        Upstream.of(url)
