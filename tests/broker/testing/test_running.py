"""`running`: a broker for the time of a block, in plain code and in code on trio."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import subprocess
import sys
import threading
import unittest
import urllib.request
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio

import pulsarium.broker
from pulsarium.broker.net.accepting import PortInUse
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.testing import ConfigError, PulsarBroker, names, running
from pulsarium.client import connect
from pulsarium.client.errors import TransactionCoordinatorNotFoundError
from tests.broker.testing.conftest import client_of
from tests.broker.wire import Wire
from yardsticks.servers import free_port


def send_and_receive(broker: PulsarBroker, topic: str = "hello", data: bytes = b"hi") -> None:
    client = client_of(broker)
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(data)
    assert consumer.receive(30_000).data() == data
    client.close()


def is_answered(url: str) -> bool:
    """Return whether a server listens at the URL."""
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0


def test_the_package_offers_it() -> None:
    assert pulsarium.broker.running is running
    with pytest.raises(AttributeError, match="no attribute 'walking'"):
        _ = pulsarium.broker.walking  # type: ignore[attr-defined]


def test_clients_use_it_while_the_block_runs() -> None:
    with running() as broker:
        send_and_receive(broker)
        assert broker.call(lambda running: list(running.broker.topics.loaded)) == ["persistent://public/default/hello"]
        assert repr(broker) == f"<Pulsarium at {broker.service_url} and {broker.admin_url}>"
    assert broker.service_url_tls is broker.admin_url_tls is None


def test_clients_need_one_connection() -> None:
    with running() as broker:
        client = client_of(broker)
        client.create_producer("hello")
        assert broker.call(lambda running: len(running.broker.sessions)) == 1
        client.close()


def test_http_answers_when_it_is_asked() -> None:
    with running() as broker, urllib.request.urlopen(f"{broker.admin_url}/admin/v2/clusters") as answer:
        assert json.load(answer) == ["standalone"]


def test_nothing_is_left_behind() -> None:
    """A socket that is not closed fails the test, because it warns when it is collected."""
    with running() as broker:
        send_and_receive(broker)
        urls = (broker.service_url, broker.admin_url)
        assert [is_answered(url) for url in urls] == [True, True]
        assert any(thread.name == "pulsarium broker" for thread in threading.enumerate())
    del broker
    gc.collect()
    assert [is_answered(url) for url in urls] == [False, False]
    assert not any(thread.name == "pulsarium broker" for thread in threading.enumerate())


def test_an_error_of_the_block_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError), running():
        _ = 1 / 0


@pytest.mark.parametrize(
    ("options", "on"),
    [({}, True), ({"profile": "pulsar-4.2"}, False), ({"set": {"transactionCoordinatorEnabled": False}}, False)],
    ids=["as it is", "as the release", "as it is set"],
)
def test_transactions_work_unless_the_release_or_a_key_says_otherwise(options: dict[str, Any], on: bool) -> None:
    async def begin(url: str) -> bool:
        async with connect(url) as client:
            try:
                await (await client.begin_transaction()).commit()
            except TransactionCoordinatorNotFoundError:
                return False
            return True

    with running(**options) as broker:
        assert anyio.run(begin, broker.service_url) is on


def test_several_at_once() -> None:
    with running() as one, running(brokers=2) as two:
        assert one.service_url != two.service_url
        assert two.call(lambda running: len(running.brokers)) == 2
        send_and_receive(one)
        send_and_receive(two)


def test_one_broker_can_be_killed_and_brought_back() -> None:
    with running(brokers=2) as broker:
        assert broker.service_urls[0] == broker.service_url
        client = client_of(broker)
        producer = client.create_producer("hello")
        producer.send(b"a")
        broker.kill(0)
        assert [is_answered(url) for url in broker.service_urls] == [False, True]
        broker.bring_back(0)
        producer.send(b"b")
        broker.assert_produced("hello", [b"a", b"b"])
        client.close()


def test_its_options_are_those_of_serve(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("maxMessageSize=2048\nbrokerServicePort=6650\nadvertisedAddress=localhost\n")
    with running(
        config=conf,
        set={"brokerDeduplicationEnabled": True, "defaultNumberOfNamespaceBundles": 2},
        profile="pulsar-4.2",
        max_protocol_version=19,
        separate_publish_times=False,
        data=tmp_path / "data",
    ) as broker:
        config = broker.call(lambda running: running.broker.config)
        assert (config.maxMessageSize, config.brokerDeduplicationEnabled) == (2048, True)
        assert (config.defaultNumberOfNamespaceBundles, config.advertisedAddress) == (2, "localhost")
        profile = broker.call(lambda running: running.broker.profile)
        assert (profile.name, profile.max_protocol_version) == ("pulsar-4.2", 19)
        assert not profile.separate_publish_times
        assert not broker.service_url.endswith(":6650")
        send_and_receive(broker)
    with running(data=tmp_path / "data", durability="none") as broker:
        broker.assert_produced("hello", [b"hi"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"profile": "pulsar-1"}, "'pulsar-1' is not one of pip, pulsar-5.0"),
        ({"profile": "pulsar-4.2", "max_protocol_version": 22}, "22 is not between 0 and 21"),
        ({"set": {"maxMesageSize": 1}}, "did you mean maxMessageSize"),
        ({"set": {"authorizationEnabled": True}}, "needs authenticationEnabled"),
    ],
)
def test_a_broker_of_a_test_refuses_options_that_cannot_be(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        running(**options)


def test_ports_may_be_said_as_keys_too() -> None:
    port = free_port()
    with running(set={"brokerServicePort": port}) as broker:
        assert broker.service_url.endswith(f":{port}")
        assert not broker.admin_url.endswith(":8080")


def test_errors_that_prevent_the_start_are_raised_unchanged(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} is in use"), running(port=port):
            raise AssertionError("it must not open")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError), running(data=tmp_path / "file"):
        raise AssertionError("it must not open")


async def test_on_trio_it_is_in_the_same_loop() -> None:
    threads = threading.active_count()
    async with running() as broker:
        assert threading.active_count() <= threads  # an idle thread of trio may end meanwhile
        port = int(broker.service_url.rpartition(":")[2])
        wire = Wire(await trio.open_tcp_stream("127.0.0.1", port))
        await wire.connect()
        assert broker.lab.cluster is broker.broker.cluster
        await wire.aclose()
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", port)


def test_on_asyncio_it_says_what_to_do() -> None:
    async def main() -> None:
        async with running():
            raise AssertionError("it must not open")

    with pytest.raises(RuntimeError, match="works on trio only: use `with running"):
        asyncio.run(main())


async def test_on_trio_it_may_be_in_a_thread() -> None:
    with running() as broker:
        wire = Wire(await trio.open_tcp_stream("127.0.0.1", int(broker.service_url.rpartition(":")[2])))
        await wire.connect()
        assert broker.call(lambda running: len(running.broker.sessions)) == 1
        await wire.aclose()


class OfUnittest(unittest.TestCase):
    """A test case as users of unittest write it."""

    broker: PulsarBroker

    @classmethod
    def setUpClass(cls) -> None:
        cls.broker = cls.enterClassContext(running())

    def test_hello(self) -> None:
        topic = f"{self.broker.create_namespace(self.id())}/topic"
        self.broker.assert_produced(topic, 0)
        send_and_receive(self.broker, topic)
        self.broker.assert_produced(topic, [b"hi"])


def test_the_plugin_imports_nothing_but_itself() -> None:
    """Users import it in every run of pytest."""
    code = """
import sys
import pytest
before = set(sys.modules)
import pulsarium.broker.testing.pytest_plugin
print(*sorted(set(sys.modules) - before))
"""
    run = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True)
    plugin = "pulsarium.broker.testing.pytest_plugin"
    parents = ["pulsarium", "pulsarium.broker", "pulsarium.broker.testing"]
    assert run.stdout.split() == [*parents, plugin, f"{plugin}.explore", f"{plugin}.marks"]


def test_every_name_for_tests_is_there() -> None:
    here: dict[str, object] = {}
    exec("from pulsarium.broker.testing import *", here)
    assert here.keys() - {"__builtins__"} == {*names.__all__}
    assert here["running"] is pulsarium.broker.running
    with pytest.raises(ImportError):
        exec("from pulsarium.broker.testing import missing", here)


def test_a_program_that_forgets_it_can_end() -> None:
    code = """
import pulsarium.broker
pulsarium.broker.running().__enter__()
print("done", flush=True)
"""
    run = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, timeout=30)
    assert run.stdout == b"done\n"
