"""The proxy in front of a real broker, with raw clients and with the official Python client."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pulsar
import pytest
import trio

from pulsarium.broker.lab.proxy.upstream import Upstream
from pulsarium.broker.proxying import ProxyOptions, RunningProxy, open_proxy
from pulsarium.broker.testing.proxy import proxying
from pulsarium.broker.testing.thread import LoopThread
from tests.broker.auth.secured import Authority
from tests.broker.lab.proxy import actions
from tests.broker.lab.proxy.behind import Behind, in_front_of
from tests.broker.loopback import HANGS
from tests.examples.explored import explore, through

from .admin import Admin
from .broker_process import PULSAR, Address, BrokerProcess, is_pulsarium


@pytest.fixture(scope="module")
def real(broker: Address, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Start a real broker, or take the one that the environment names."""
    if not is_pulsarium():
        yield broker
        return
    process = BrokerProcess(tmp_path_factory.mktemp("real"), command=PULSAR)
    yield process.address
    process.stop()


@pytest.fixture
def topic(real: Address) -> str:
    """Return a topic whose bundle the broker owns: a raw client looks nothing up."""
    name = uuid.uuid4().hex
    with urlopen(f"{real.admin_url}/lookup/v2/topic/persistent/public/default/{name}"):
        return f"persistent://public/default/{name}"


@pytest.mark.parametrize("case", actions.CASES, ids=lambda case: case.__name__)
def test_an_action_in_front_of_a_real_broker(
    real: Address, topic: str, case: Callable[[Behind, str], Awaitable[None]]
) -> None:
    async def run() -> None:
        with trio.fail_after(HANGS):
            async with in_front_of(real.service_url, real.admin_url) as it:
                await case(it, topic)

    trio.run(run)


@contextmanager
def proxied(real: Address, **options: Any) -> Iterator[RunningProxy]:
    asked = ProxyOptions(upstream=Upstream.of(real.service_url), admin_url=real.admin_url, **options)
    opened: Callable[[], AbstractAsyncContextManager[RunningProxy]] = partial(open_proxy, asked)
    thread = LoopThread(opened, "proxy")
    yield thread.start()
    thread.stop()


@pytest.fixture
def proxy(real: Address) -> Iterator[RunningProxy]:
    with proxied(real) as running:
        yield running


@pytest.mark.parametrize("url", ["service_url", "admin_url"])
def test_the_official_client_works_through_the_proxy(proxy: RunningProxy, topic: str, url: str) -> None:
    passes_messages(topic, getattr(proxy, url))


@pytest.mark.parametrize("url", ["service_url_tls", "admin_url_tls"])
def test_the_official_client_works_over_tls_of_the_proxy(real: Address, topic: str, url: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.sign("server")
    with proxied(real, tls_port=0, https_port=0, tls_cert=files.certificate, tls_key=files.key) as running:
        passes_messages(topic, getattr(running, url), tls_trust_certs_file_path=str(authority.path))


def passes_messages(topic: str, url: str, **options: Any) -> None:
    """Publish and receive through the proxy."""
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn), **options)
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic, batching_enabled=True)
    for number in range(100):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    received = [consumer.receive(30_000) for _ in range(100)]
    assert [each.data() for each in received] == [b"%d" % number for number in range(100)]
    for each in received:
        consumer.acknowledge(each)
    client.close()


@pytest.mark.timeout(600)
def test_an_exploration_finds_a_bug_in_front_of_a_real_broker(real: Address, tmp_path: Path) -> None:
    options = through(real.service_url, real.admin_url)
    assert explore("no_idempotence", tmp_path, runs=200, seed=1, mended=False, options=options).failure
    assert not explore("no_idempotence", tmp_path, runs=5, seed=1, mended=True, options=options).failure


def test_a_lost_receipt_makes_no_duplicate(proxy: RunningProxy, real: Address) -> None:
    """Do what README's test_payments.py does. Deduplication is set through the proxy, too."""
    admin, namespace = Admin(proxy.admin_url), f"public/{uuid.uuid4().hex}"
    admin.create_namespace(namespace)
    admin.call("POST", f"/admin/v2/namespaces/{namespace}/deduplication", True)
    topic = f"persistent://{namespace}/payments"
    with proxying(real.service_url, real.admin_url) as other:
        client = pulsar.Client(other.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        lost = other.faults.add("close", "SEND", stage="after", topic=topic)
        client.create_producer(topic).send(b"paid")
        assert lost.hits == 1
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        assert reader.read_next(30_000).data() == b"paid"
        assert not reader.has_message_available()
        client.close()
