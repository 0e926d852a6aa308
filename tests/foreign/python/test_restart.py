"""Restarts of the broker, on the same port and with its data, while clients stay open."""

from __future__ import annotations

from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..broker_process import BrokerProcess, is_pulsarium
from ..conftest import Launch
from ..deadline import eventually
from .traffic import Outbox, assert_nothing_more, consume, payloads, receive, send_all

NAME = "persistent://public/default/t"


def restart(launch: Launch, broker: BrokerProcess, *options: str) -> BrokerProcess:
    return launch(*options, port=broker.address.port, http_port=broker.address.http_port)


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_clients_reconnect_and_lose_nothing(launch: Launch, data: str, how: str) -> None:
    broker = launch("--data", data)
    client = pulsar.Client(broker.address.service_url)
    consumer = client.subscribe(NAME, "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer(NAME, send_timeout_millis=120_000)  # more than a slow start of the broker
    sent = payloads(100)
    send_all(producer, sent)
    for message in receive(consumer, 100)[:60]:
        consumer.acknowledge(message)
    settled(broker, left=40)

    if how == "stopped":
        broker.stop()
    else:
        if is_pulsarium():
            Admin(broker.address.admin_url).keep_acknowledgements()
        else:
            assert_nothing_more(consumer, milliseconds=1100)  # a kill may lose acknowledgements of the last second
        broker.kill()
    outbox = Outbox(producer)
    while_away = payloads(10, start=100)
    for payload in while_away:
        outbox.send(payload)
    broker = restart(launch, broker, "--data", data)
    outbox.wait()
    after = payloads(10, start=110)
    send_all(producer, after)

    assert sorted(consume(consumer, 60)) == sent[60:] + while_away + after
    assert_nothing_more(consumer)
    settled(broker, left=0)
    client.close()


def settled(broker: BrokerProcess, left: int) -> None:
    """Wait until the broker has the acknowledgements, which clients collect for a moment before they send them."""
    admin = Admin(broker.address.admin_url)
    eventually(lambda: admin.backlog(NAME, "s") == left, what=f"a backlog of {left}")


def test_everything_is_back_after_a_restart(launch: Launch, data: str) -> None:
    broker = launch("--data", data)
    admin = Admin(broker.address.admin_url)
    admin.create_namespace("public/kept")
    admin.create_partitioned("persistent://public/kept/parts", 3)
    client = pulsar.Client(broker.address.service_url)
    sent = payloads(30)
    consumer = client.subscribe("persistent://public/kept/parts", "s")
    ids = send_all(client.create_producer("persistent://public/kept/parts"), sent)
    got = {message.data(): message for message in receive(consumer, 30)}
    for payload in sent[::2]:
        consumer.acknowledge(got[payload])
    consumer.close()
    client.close()
    broker.stop()

    broker = restart(launch, broker, "--data", data)
    admin = Admin(broker.address.admin_url)
    assert "public/kept" in admin.call("GET", "/admin/v2/namespaces/public")
    client = pulsar.Client(broker.address.service_url)
    assert len(client.get_topic_partitions("persistent://public/kept/parts")) == 3
    reader = client.create_reader(
        "persistent://public/kept/parts-partition-1", pulsar.MessageId.earliest, start_message_id_inclusive=True
    )
    first = next(message_id for message_id in ids if message_id.partition() == 1)
    message = reader.read_next(timeout_millis=30_000)
    assert (message.message_id().ledger_id(), message.message_id().entry_id()) == (first.ledger_id(), first.entry_id())
    consumer = client.subscribe("persistent://public/kept/parts", "s")
    assert sorted(consume(consumer, 15)) == sent[1::2]
    assert_nothing_more(consumer)
    client.close()
    broker.stop()


def test_without_data_a_restart_forgets(launch: Launch) -> None:
    broker = launch()
    client = pulsar.Client(broker.address.service_url)
    send_all(client.create_producer(NAME), payloads(3))
    client.close()
    broker.stop()
    broker = restart(launch, broker)
    client = pulsar.Client(broker.address.service_url)
    reader: Any = client.create_reader(NAME, pulsar.MessageId.earliest)
    assert not reader.has_message_available()
    client.close()
    broker.stop()
