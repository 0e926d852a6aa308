"""The official Python client with a broker that looks older, to all clients or to this one, and after a reset."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pulsar
import pytest

from .broker_process import BrokerProcess, is_pulsarium
from .conftest import Launch

pytestmark = pytest.mark.skipif(not is_pulsarium(), reason="masks are ours")


def lab(broker: BrokerProcess, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{broker.address.admin_url}/lab/{path}", data, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        content = answer.read()
    return json.loads(content) if content else None


def client_of(broker: BrokerProcess) -> pulsar.Client:
    return pulsar.Client(broker.address.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def there_and_back(client: pulsar.Client, topic: str) -> None:
    """Publish, receive, acknowledge, ask for the last message id, and read."""
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic)
    for number in range(5):
        producer.send(b"%d" % number)
    for number in range(5):
        message = consumer.receive(30_000)
        assert message.data() == b"%d" % number
        consumer.acknowledge(message)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert reader.has_message_available()
    assert reader.read_next(30_000).data() == b"0"


def test_profiles_and_masks(launch: Launch) -> None:
    broker = launch("--profile", "pulsar-2.8")
    client = client_of(broker)
    there_and_back(client, "whole")
    client.close()

    worn = lab(broker, "POST", "masks", {"clientVersion": "Pulsar-CPP*", "maxProtocolVersion": 12})
    client = client_of(broker)
    there_and_back(client, "masked")
    assert lab(broker, "GET", f"masks/{worn['id']}")["hits"] >= 1
    client.close()


def test_a_producer_lives_on_after_a_reset(launch: Launch) -> None:
    broker = launch()
    client = client_of(broker)
    producer = client.create_producer("t")
    before = producer.send(b"1")
    lab(broker, "POST", "reset")
    after = producer.send(b"2")
    assert after.ledger_id() > before.ledger_id()
    consumer = client.subscribe("t", "s", initial_position=pulsar.InitialPosition.Earliest)
    assert consumer.receive(30_000).data() == b"2"
    client.close()
