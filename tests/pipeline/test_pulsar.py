"""The blocking client, for code that cannot await."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from pulsarium.client import MessageId, PulsarError
from pulsarium.pipeline.options import ConnectionOptions
from pulsarium.pipeline.pulsar import Pulsar
from tests.foreign.broker_process import Address

NOBODY = ConnectionOptions("pulsar://127.0.0.1:1", connection_timeout=0.2, operation_timeout=0.2)


def test_to_a_broker_and_back(broker: Address, topic: str) -> None:
    before = set(threading.enumerate())
    with Pulsar(ConnectionOptions(broker.service_url)) as pulsar:
        producer = pulsar.enter(lambda: pulsar.client.create_producer(topic))
        pulsar.call(producer.send, b"a", partition_key="k")
        pulsar.call(producer.send, b"b", partition_key=b"\xff")
        reader = pulsar.enter(lambda: pulsar.client.create_reader(topic, start_message_id=MessageId.earliest))
        found = [pulsar.call(reader.read_next) for _ in range(2)]
        assert [(each.data(), each.key_bytes()) for each in found] == [(b"a", b"k"), (b"b", b"\xff")]
    assert set(threading.enumerate()) <= before


def test_managers_are_left_last_one_first() -> None:
    left = []

    @asynccontextmanager
    async def manager(name: str) -> AsyncIterator[str]:
        yield name
        left.append(name)

    with Pulsar(NOBODY) as pulsar:
        assert [pulsar.enter(partial(manager, name)) for name in "abc"] == ["a", "b", "c"]
        assert left == []
    assert left == ["c", "b", "a"]


def test_errors_come_out_and_nothing_stays() -> None:
    before = set(threading.enumerate())

    async def failing() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError, match="x"), Pulsar(NOBODY) as pulsar:
        pulsar.call(failing)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("url", ["nonsense", "ftp://host:1", "pulsar://", ""])
def test_a_wrong_url(url: str) -> None:
    before = set(threading.enumerate())
    with pytest.raises(PulsarError), Pulsar(ConnectionOptions(url)):
        pass
    assert set(threading.enumerate()) <= before


def test_no_thread_stays_where_nobody_listens(topic: str) -> None:
    before = set(threading.enumerate())
    with pytest.raises(PulsarError), Pulsar(NOBODY) as pulsar:
        pulsar.enter(lambda: pulsar.client.create_producer(topic))
    assert set(threading.enumerate()) <= before


def test_calls_of_the_rest_api_use_a_connection_of_their_own(broker: Address) -> None:
    own = ConnectionOptions(broker.service_url, broker.admin_url)
    with Pulsar(ConnectionOptions(broker.service_url, "http://127.0.0.1:1", admin=own)) as pulsar:
        assert "public" in pulsar.call(pulsar.client.admin.tenants.get_tenants)
