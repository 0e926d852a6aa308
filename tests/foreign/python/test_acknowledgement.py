"""Acknowledgements, and the position that a subscription keeps."""

from __future__ import annotations

from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from .traffic import assert_nothing_more, consume, payloads, receive, send_all

EARLIEST = pulsar.InitialPosition.Earliest


def batches(client: Any, topic: str) -> Any:
    """Open a producer whose batches end at ten messages or at a flush, however slowly the messages come."""
    return client.create_producer(
        topic, batching_enabled=True, batching_max_messages=10, batching_max_publish_delay_ms=60_000
    )


def test_cumulative_over_batches(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    sent = payloads(30)
    send_all(batches(client, topic), sent)
    consumer.acknowledge_cumulative(receive(consumer, 20)[-1])
    consumer.close()
    assert consume(client.subscribe(topic, "s"), 10) == sent[20:]


@pytest.mark.req("B-15")
def test_holes_are_kept_on_exclusive(client: Any, admin: Admin, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    sent = payloads(20)
    send_all(client.create_producer(topic), sent)
    for message in receive(consumer, 20)[1::3]:
        consumer.acknowledge(message)
    consumer.close()
    left = [payload for place, payload in enumerate(sent) if place % 3 != 1]
    eventually(lambda: admin.backlog(topic, "s") == len(left), what="a backlog of the holes alone")
    admin.unload(topic)
    assert consume(client.subscribe(topic, "s"), len(left)) == left


def test_a_batch_stays_until_all_of_it_is_acknowledged(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    sent = payloads(10)
    send_all(batches(client, topic), sent)
    for message in receive(consumer, 10)[:9]:
        consumer.acknowledge(message)
    consumer.close()
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    assert consume(consumer, 10) == sent
    consumer.close()
    assert_nothing_more(client.subscribe(topic, "s", pulsar.ConsumerType.Shared))


@pytest.mark.req("B-50")
def test_clients_survive_an_unload_of_all_partitions(client: Any, admin: Admin, topic: str) -> None:
    """The broker closes producers and consumers, which reconnect by themselves. Consumers keep their position."""
    admin.create_partitioned(topic, 3)
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    send_all(producer, payloads(30))
    consume(consumer, 30)
    parts = client.get_topic_partitions(topic)
    eventually(lambda: not any(admin.backlog(part, "s") for part in parts), what="the acknowledgements to arrive")
    for part in parts:
        admin.unload(part)
    after = payloads(30, start=30)
    send_all(producer, after)
    assert sorted(consume(consumer, 30)) == after
    assert_nothing_more(consumer)


@pytest.mark.req("B-01", "C-04")
def test_a_second_exclusive_consumer_is_refused(client: Any, connect: Any, topic: str) -> None:
    client.subscribe(topic, "s")
    for other in (client, connect()):
        with pytest.raises(pulsar.ConsumerBusy):
            other.subscribe(topic, "s")
    client.subscribe(topic, "another")


@pytest.mark.req("C-05")
def test_another_kind_than_the_attached_one_is_refused(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "s", pulsar.ConsumerType.Failover)
    consumer.close()
    client.subscribe(topic, "s", pulsar.ConsumerType.Failover)


@pytest.mark.req("S429-07", "S429-33")
def test_the_last_message_id(client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    consumer = client.subscribe(topic, "s")
    assert consumer.get_last_message_id().entry_id() == -1
    ids = send_all(producer, payloads(5))
    last = consumer.get_last_message_id()
    assert (last.ledger_id(), last.entry_id()) == (ids[-1].ledger_id(), ids[-1].entry_id())
    consume(consumer, 5)
    assert consumer.get_last_message_id() == last
    batch = send_all(batches(client, topic), payloads(4))
    last = consumer.get_last_message_id()
    assert (last.entry_id(), last.batch_index()) == (batch[-1].entry_id(), 3)


@pytest.mark.req("B-05")
def test_a_small_receiver_queue_gets_everything(client: Any, topic: str) -> None:
    sent = payloads(500)
    for size in (0, 1, 3):
        consumer = client.subscribe(topic, f"s{size}", receiver_queue_size=size, initial_position=EARLIEST)
        if size == 0:
            send_all(client.create_producer(topic), sent)
            # Without a queue the client cannot wait with a timeout.
            assert [consumer.receive().data() for _ in range(500)] == sent
        else:
            assert consume(consumer, 500) == sent
        consumer.close()


def test_a_listener_is_called_for_each_message(client: Any, topic: str) -> None:
    got: list[bytes] = []

    def listen(consumer: Any, message: Any) -> None:
        got.append(message.data())
        consumer.acknowledge(message)

    client.subscribe(topic, "s", message_listener=listen)
    sent = payloads(200)
    send_all(client.create_producer(topic), sent)
    eventually(lambda: len(got) >= 200, what="200 calls")
    assert got == sent
