"""A broker opens its ports, and releases all resources at its end."""

from __future__ import annotations

import logging
import socket
import threading
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import trio
from trio.testing import MockClock

from pulsarium.broker.config import Config, ServeOptions
from pulsarium.broker.config.options import PortNumbers
from pulsarium.broker.net.accepting import PortInUse
from pulsarium.broker.server import open_broker
from pulsarium.broker.storage.interface import StorageError
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Earliest, Exclusive, Shared, Type, Wire, plain, serving

ANY_PORTS = Config(brokerServicePort=0, webServicePort=0)


async def dial(service_url: str) -> Wire:
    host, port = service_url.removeprefix("pulsar://").rsplit(":", 1)
    wire = Wire(await trio.open_tcp_stream(host, int(port)))
    await wire.connect()
    return wire


async def test_free_ports_are_taken_and_given_back() -> None:
    async with open_broker(ServeOptions(config=ANY_PORTS)) as running:
        wire = await dial(running.service_url)
        found = await wire.ask(Type.LOOKUP, topic=TOPIC)
        assert found.brokerServiceUrl == running.service_url.replace("127.0.0.1", "localhost")
        assert running.admin_url.startswith("http://127.0.0.1:")
        ports = [int(url.rsplit(":", 1)[1]) for url in (running.service_url, running.admin_url)]
        assert len({0, *ports}) == 3
        await wire.aclose()
    for port in ports:
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", port))


@pytest.mark.parametrize(("key", "option"), [("brokerServicePort", "--port"), ("webServicePort", "--http-port")])
async def test_a_busy_port_is_named_with_what_helps(key: str, option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ports = {"brokerServicePort": 0, "webServicePort": 0, key: port}
        with pytest.raises(PortInUse, match=f"port {port} is in use; choose another with {option} N"):
            async with open_broker(ServeOptions(config=Config(**ports))):
                raise AssertionError("it must not open")


async def test_http_may_wait_until_somebody_asks() -> None:
    options = ServeOptions(config=ANY_PORTS, brokers=2)
    async with open_broker(options, web_when_asked=True) as running:
        port = running.broker.http_port
        await running.brokers[1].kill()  # its HTTP port has never been used
        async with await trio.open_tcp_stream("127.0.0.1", port) as web:
            await web.send_all(b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b"".join([part async for part in web])
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b'["standalone"]')


async def test_clients_of_the_binary_port_do_not_wait_for_the_import_of_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP is a third of what a start imports. An HTTP client that comes during the import is answered after it."""
    begun, may_end = threading.Event(), threading.Event()

    def held(name: str) -> ModuleType:
        begun.set()
        assert may_end.wait(30)
        return import_module(name)

    monkeypatch.setattr("pulsarium.broker.server.import_module", held)
    async with open_broker(ServeOptions(config=ANY_PORTS)) as running:
        try:
            wire = await dial(running.service_url)
            await wire.ask(Type.LOOKUP, topic=TOPIC)
            await wire.aclose()
            assert await trio.to_thread.run_sync(begun.wait, 30)
            web = await trio.open_tcp_stream("127.0.0.1", running.broker.http_port)
            await web.send_all(b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        finally:
            may_end.set()
        assert b"".join([part async for part in web]).endswith(b'["standalone"]')
        await web.aclose()


async def test_two_brokers_in_one_process() -> None:
    options = ServeOptions(config=ANY_PORTS)
    async with open_broker(options) as one, open_broker(options) as two:
        wires = [await dial(running.service_url) for running in (one, two)]
        await wires[0].producer()
        assert one.broker.topics.names("public/default") == [TOPIC]
        assert two.broker.topics.names("public/default") == []
        for wire in wires:
            await wire.aclose()


async def test_a_cluster_has_ports_for_each_broker() -> None:
    async with open_broker(ServeOptions(config=ANY_PORTS, brokers=3)) as running:
        assert len({url for each in running.brokers for url in (each.service_url, each.admin_url)}) == 6
        for each in running.brokers:
            wire = await dial(each.service_url)
            await wire.ask(Type.LOOKUP, topic=TOPIC)
            await wire.aclose()


def test_fixed_ports_count_up_and_free_ones_stay_free() -> None:
    fixed = PortNumbers(6650, 8080, None, 6651)
    assert [fixed.nth(index) for index in range(2)] == [fixed, (6651, 8081, None, 6652)]
    free = PortNumbers(0, 0, 0)
    assert [free.nth(index) for index in range(2)] == [free, free]


async def test_a_broker_is_killed_and_brought_back_on_its_ports() -> None:
    async with open_broker(ServeOptions(config=ANY_PORTS, brokers=2)) as running:
        first, second = running.brokers
        wire = await dial(first.service_url)
        await wire.ask(Type.LOOKUP, topic=TOPIC)
        await wire.producer()
        await wire.publish(plain(b"kept"))
        await first.kill()
        await wire.closed()
        await wire.aclose()
        with pytest.raises(OSError):  # noqa: PT011
            await dial(first.service_url)
        other = await dial(second.service_url)
        found = await other.ask(Type.LOOKUP, topic=TOPIC)
        assert found.brokerServiceUrl.endswith(f":{second.broker.port}")
        await other.subscribe(initialPosition=Earliest)
        await other.flow()
        assert await other.payloads(1) == [b"kept"]
        url = first.service_url
        await first.bring_back()
        assert first.service_url == url
        back = await dial(url)
        assert (await back.ask(Type.LOOKUP, topic=TOPIC)).brokerServiceUrl == found.brokerServiceUrl
        for each in (other, back):
            await each.aclose()


async def test_a_broker_with_clients_attached_ends_at_once(mock_clock: MockClock, tmp_path: Path) -> None:
    """The clock stands still meanwhile, so the broker waits for no client."""
    threads = threading.active_count()
    async with open_broker(ServeOptions(config=ANY_PORTS, data=tmp_path)) as running:
        wires = [await dial(running.service_url) for _ in range(10)]
        for number, wire in enumerate(wires):
            await wire.producer(producer_name=f"p{number}")
            await wire.subscribe(type=Shared)
            await wire.flow()
        await wires[0].publish(plain(b"x"))
    for wire in wires:
        await wire.closed()
        await wire.aclose()
    assert threading.active_count() <= threads + 1  # trio keeps a thread of its own for a while


async def test_a_data_directory_is_for_one_broker(tmp_path: Path) -> None:
    async with serving(data=tmp_path):
        with pytest.raises(StorageError, match=r"in use|used by|lock"):
            async with serving(data=tmp_path):
                raise AssertionError("it must not open")


@pytest.mark.req("B-13", "B-15")
async def test_everything_outlives_an_orderly_end(tmp_path: Path) -> None:
    """The test uses the real clock and a real disk."""
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        names = [(await wire.producer(producer_id=i)).producer_name for i in range(2)]
        await wire.subscribe()
        await wire.flow()
        positions = await wire.publish(*[plain(b"%d" % i) for i in range(10)])
        await wire.messages(10)
        for position in (positions[0], positions[4]):  # ACKs without a request id, which are not answered
            ids = [{"ledgerId": position.ledger_id, "entryId": position.entry_id}]
            await wire.send(Type.ACK, consumer_id=0, ack_type=0, message_id=ids)
        await wire.alive()
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.subscribe(type=Exclusive)
        await wire.flow()
        remaining = [position for position in positions if position not in (positions[0], positions[4])]
        assert [message.position for message in await wire.messages(8)] == remaining
        names += [(await wire.producer(producer_id=i)).producer_name for i in range(2)]
        assert len(set(names)) == 4  # no name comes twice: clients that outlive a broker reuse their names
        await wire.subscribe(name="new", consumer_id=1, initialPosition=Earliest)
        await wire.flow(consumer_id=1)
        assert [message.position for message in await wire.messages(10)] == positions


async def test_one_line_for_each_connection_producer_subscription_and_refusal(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="pulsarium")
    async with serving(storage=HeldStorage()) as bed:
        caplog.clear()
        wire = await bed.connect()
        await wire.producer(producer_name="me")
        await wire.subscribe(consumer_name="you")
        await wire.flow()
        await wire.publish(*[plain(b"x")] * 100)
        await wire.ack(*[message.position for message in await wire.messages(100)])
        await wire.refused(Type.UNSUBSCRIBE, consumer_id=9)
        lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 4
    for line, words in zip(
        lines,
        (["/test:1", "wire"], ["me", TOPIC], ["you", TOPIC, "sub"], ["refused", "Consumer not found"]),
        strict=True,
    ):
        assert all(word in line for word in words), line
