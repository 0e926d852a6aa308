"""Acknowledgement of parts of a batch (PIP-54). tests/foreign/test_kept.py tests that they survive a restart."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..conftest import Launch
from ..deadline import eventually
from .traffic import assert_nothing_more, consume, number_of, payloads, receive, send_all

EARLIEST = pulsar.InitialPosition.Earliest
KINDS = [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared, pulsar.ConsumerType.KeyShared]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))


def subscribe(client: Any, topic: str, kind: Any, **options: Any) -> Any:
    return client.subscribe(topic, "s", kind, batch_index_ack_enabled=True, initial_position=EARLIEST, **options)


def publish_batches(client: Any, topic: str, batches: int, size: int = 10) -> list[bytes]:
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=size, batching_max_publish_delay_ms=60_000
    )
    sent = payloads(batches * size)
    ids = send_all(producer, sent)
    assert len({message_id.entry_id() for message_id in ids}) == batches
    return sent


@kinds
@pytest.mark.req("S54-01", "S54-02", "S54-07", "S54-12", "S54-13", "B-17")
def test_only_the_rest_of_a_batch_comes_again(client: Any, topic: str, kind: Any) -> None:
    consumer = subscribe(client, topic, kind)
    sent = publish_batches(client, topic, 2)
    for message in receive(consumer, 20):
        if number_of(message.data()) % 3 == 0:
            consumer.acknowledge(message)
    consumer.close()
    consumer = subscribe(client, topic, kind)
    assert consume(consumer, 13) == [payload for number, payload in enumerate(sent) if number % 3]
    assert_nothing_more(consumer)


@pytest.mark.req("S54-12", "S54-13")
def test_another_consumer_gets_the_rest_whether_it_opted_in_or_not(client: Any, topic: str) -> None:
    consumer = subscribe(client, topic, pulsar.ConsumerType.Shared)
    sent = publish_batches(client, topic, 1)
    for message in receive(consumer, 10)[:4]:
        consumer.acknowledge(message)
    consumer.close()
    assert consume(client.subscribe(topic, "s", pulsar.ConsumerType.Shared), 6) == sent[4:]


@pytest.mark.req("S54-21")
def test_cumulative_within_a_batch(client: Any, topic: str) -> None:
    consumer = subscribe(client, topic, pulsar.ConsumerType.Exclusive)
    sent = publish_batches(client, topic, 2)
    consumer.acknowledge_cumulative(receive(consumer, 20)[12])
    consumer.close()
    assert consume(subscribe(client, topic, pulsar.ConsumerType.Exclusive), 7) == sent[13:]


@pytest.mark.req("S54-15")
def test_a_batch_acknowledged_bit_by_bit_is_gone(client: Any, admin: Admin, topic: str) -> None:
    sent = publish_batches(client, topic, 1, size=5)
    for number in range(5):
        consumer = subscribe(client, topic, pulsar.ConsumerType.Shared)
        messages = receive(consumer, 5 - number)
        assert [message.data() for message in messages] == sent[number:]
        consumer.acknowledge(messages[0])
        consumer.close()
    eventually(lambda: admin.backlog(topic, "s") == 0, what="no backlog")
    assert_nothing_more(subscribe(client, topic, pulsar.ConsumerType.Shared))


@pytest.mark.req("S54-22")
def test_a_refused_rest_comes_again_with_a_count(client: Any, admin: Admin, topic: str) -> None:
    consumer = subscribe(client, topic, pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=100)
    sent = publish_batches(client, topic, 1)
    messages = receive(consumer, 10)
    for message in messages[:4]:
        consumer.acknowledge(message)
    eventually(lambda: admin.unacknowledged(topic, "s") == 6, what="the acknowledgements, which the client collects")
    # One negative acknowledgement redelivers the rest of the batch. For several, the client may send two requests.
    consumer.negative_acknowledge(messages[-1])
    again = receive(consumer, 6)
    assert [message.data() for message in again] == sent[4:]
    assert {message.redelivery_count() for message in again} == {1}
    assert_nothing_more(consumer)


@pytest.mark.req("S54-16", "S54-17")
def test_partial_acknowledgements_never_starve_a_small_queue(client: Any, admin: Admin, topic: str) -> None:
    """Permits would run out if the broker counted messages of a batch that it does not redeliver.

    Each round acknowledges one message of each batch.
    """
    consumer = subscribe(
        client, topic, pulsar.ConsumerType.Shared, receiver_queue_size=10, negative_ack_redelivery_delay_ms=100
    )
    left = set(publish_batches(client, topic, 20, size=5))
    while left:
        messages = receive(consumer, len(left))
        assert {message.data() for message in messages} == left
        last_of = {message.message_id().entry_id(): message for message in messages}
        first_of = {message.message_id().entry_id(): message for message in reversed(messages)}
        for message in first_of.values():
            consumer.acknowledge(message)
            left.discard(message.data())
        eventually(lambda: admin.unacknowledged(topic, "s") == len(left), what="the acknowledgements")
        for batch, message in first_of.items():
            if last_of[batch] is not message:
                consumer.negative_acknowledge(last_of[batch])
    assert_nothing_more(consumer)


@pytest.mark.req("S54-08", "S54-09", "S54-10", "S54-11", "S54-14")
def test_acknowledgements_of_one_long_batch_add_up(client: Any, topic: str) -> None:
    """The batch has more than two words of bits, and no consumer knows what the others acknowledged."""
    consumer = subscribe(client, topic, pulsar.ConsumerType.Shared)
    sent = publish_batches(client, topic, 1, 130)
    messages = receive(consumer, 130)
    consumer.close()
    left = set(range(130))
    for numbers in ({0, 63}, {64, 0, 129}, set(range(70, 100)), left - {1, 65, 128}):
        consumer = subscribe(client, topic, pulsar.ConsumerType.Shared)
        assert [number_of(each.data()) for each in receive(consumer, len(left))] == sorted(left)
        for number in sorted(numbers):
            consumer.acknowledge(messages[number].message_id())
        left -= numbers
        consumer.close()
    assert consume(subscribe(client, topic, pulsar.ConsumerType.Shared), 3) == [sent[1], sent[65], sent[128]]


@pytest.mark.req("S54-18", "S54-26")
def test_messages_are_counted_and_another_consumer_may_acknowledge_them(client: Any, admin: Admin, topic: str) -> None:
    holder = subscribe(client, topic, pulsar.ConsumerType.Shared, consumer_name="holder")
    publish_batches(client, topic, 1, 5)
    messages = receive(holder, 5)
    assert admin.unacknowledged(topic, "s") == 5
    other = subscribe(client, topic, pulsar.ConsumerType.Shared, consumer_name="other")
    for message in messages:
        other.acknowledge(message.message_id())
    eventually(lambda: admin.backlog(topic, "s") == 0, what="that all is acknowledged")


@pytest.mark.req("S54-06", "S54-20")
def test_without_the_setting_a_batch_comes_again_as_a_whole(launch: Launch) -> None:
    address = launch("--set", "acknowledgmentAtBatchIndexLevelEnabled=false").address
    with closing(pulsar.Client(address.service_url)) as client:
        consumer = subscribe(client, "t", pulsar.ConsumerType.Shared)
        sent = publish_batches(client, "t", 1, 4)
        for message in receive(consumer, 4)[:3]:
            consumer.acknowledge(message)
        consumer.close()
        assert consume(subscribe(client, "t", pulsar.ConsumerType.Shared), 4) == sent
