"""Redelivery: of negatively acknowledged messages, on request, and after a consumer has left.

Dead letters: the client's use of the broker's redelivery counts and initial subscriptions (B-23).
"""

from __future__ import annotations

from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from .kinds import on_shared_types
from .traffic import assert_nothing_more, consume, payloads, receive, send_all


def test_a_refused_message_comes_again_on_failover(client: Any, admin: Admin, topic: str) -> None:
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Failover, negative_ack_redelivery_delay_ms=100)
    sent = payloads(10)
    send_all(client.create_producer(topic), sent)
    messages = receive(consumer, 10)
    refused = messages.pop(4)
    for message in messages:
        consumer.acknowledge(message)
    # The client collects acknowledgements. Failover redelivers all that the broker does not know of.
    eventually(lambda: admin.backlog(topic, "s") == 1, what="the acknowledgements")
    consumer.negative_acknowledge(refused)
    assert consume(consumer, 1) == [sent[4]]
    assert_nothing_more(consumer)


def test_the_count_stays_zero_on_exclusive(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", negative_ack_redelivery_delay_ms=50)
    client.create_producer(topic).send(b"again")
    for _ in range(3):
        (message,) = receive(consumer, 1)
        assert message.redelivery_count() == 0
        consumer.negative_acknowledge(message)


def test_a_refused_batch_comes_again(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=100)
    sent = payloads(10)
    send_all(client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=60_000), sent)
    for message in receive(consumer, 10):
        consumer.negative_acknowledge(message)
    again = receive(consumer, 10)
    assert [message.data() for message in again] == sent
    assert {message.redelivery_count() for message in again} == {1}


@pytest.mark.parametrize(
    "kind", [pulsar.ConsumerType.Shared, pulsar.ConsumerType.Failover], ids=lambda kind: str(kind.name)
)
def test_all_that_was_not_acknowledged_comes_again_on_request(client: Any, admin: Admin, topic: str, kind: Any) -> None:
    consumer = client.subscribe(topic, "s", kind)
    sent = payloads(20)
    send_all(client.create_producer(topic), sent)
    messages = receive(consumer, 20)
    for message in messages[::2]:
        consumer.acknowledge(message)
    eventually(lambda: admin.backlog(topic, "s") == 10, what="the acknowledgements, which the client collects")
    consumer.redeliver_unacknowledged_messages()
    assert sorted(consume(consumer, 10)) == sent[1::2]
    assert_nothing_more(consumer)


@pytest.mark.req("B-04")
def test_the_other_shared_consumer_gets_what_one_leaves(client: Any, topic: str) -> None:
    stays = client.subscribe(topic, "s", pulsar.ConsumerType.Shared, consumer_name="stays")
    leaves = client.subscribe(topic, "s", pulsar.ConsumerType.Shared, consumer_name="leaves")
    sent = payloads(100)
    send_all(client.create_producer(topic), sent)
    (held,) = receive(leaves, 1)
    leaves.close()
    got = receive(stays, 100)
    assert sorted(message.data() for message in got) == sent
    # The redelivery count does not include deliveries to a consumer that left (B-19).
    assert {message.redelivery_count() for message in got if message.data() == held.data()} == {0}


def test_a_lost_connection_gives_messages_to_the_others(client: Any, connect: Any, topic: str) -> None:
    other = connect()
    leaves = other.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    sent = payloads(10)
    send_all(client.create_producer(topic), sent)
    receive(leaves, 10)
    other.shutdown()
    stays = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    assert sorted(consume(stays, 10)) == sent


def refuse(consumer: Any, times: int) -> None:
    """Receive one message `times` times, and negatively acknowledge each delivery."""
    for count in range(times):
        (message,) = receive(consumer, 1)
        assert message.redelivery_count() == count
        consumer.negative_acknowledge(message)


@on_shared_types
@pytest.mark.req("P-08")
@pytest.mark.req("B-23")
def test_an_initial_subscription_keeps_letters_that_nobody_waits_for(
    client: Any, admin: Admin, topic: str, kind: Any
) -> None:
    policy = pulsar.ConsumerDeadLetterPolicy(3, initial_subscription_name="morgue")
    consumer = client.subscribe(topic, "s", kind, negative_ack_redelivery_delay_ms=50, dead_letter_policy=policy)
    client.create_producer(topic).send(b"poison", partition_key="k", properties={"mine": "1"})
    refuse(consumer, 4)
    dead_topic = f"{topic}-s-DLQ"
    eventually(lambda: admin.backlog(topic, "s") == 0, what="the poison to be acknowledged")
    dead = client.subscribe(dead_topic, "morgue")
    (letter,) = receive(dead, 1)
    assert (letter.data(), letter.partition_key()) == (b"poison", "k")
    assert letter.properties()["mine"] == "1"
    assert letter.properties()["REAL_TOPIC"] == topic
    assert_nothing_more(dead)
    assert_nothing_more(consumer)


@pytest.mark.req("B-23")
def test_nacked_messages_of_a_batch_become_dead_letters(client: Any, admin: Admin, topic: str) -> None:
    policy = pulsar.ConsumerDeadLetterPolicy(2, f"{topic}-dead", "morgue")
    consumer = client.subscribe(
        topic,
        "s",
        pulsar.ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=50,
        dead_letter_policy=policy,
        batch_index_ack_enabled=True,
    )
    sent = payloads(10)
    send_all(client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=60_000), sent)
    messages = receive(consumer, 10)
    for message in messages[:3] + messages[5:]:
        consumer.acknowledge(message)
    eventually(lambda: admin.unacknowledged(topic, "s") == 2, what="the acknowledgements, which the client collects")
    consumer.negative_acknowledge(messages[4])  # the broker redelivers the unacknowledged message before it too
    for count in (1, 2):
        messages = receive(consumer, 2)
        assert [(message.data(), message.redelivery_count()) for message in messages] == [
            (payload, count) for payload in sent[3:5]
        ]
        consumer.negative_acknowledge(messages[1])
    eventually(lambda: admin.backlog(topic, "s") == 0, what="the batch to be acknowledged")
    # This client makes dead letters of the whole batch, the acknowledged messages too.
    assert sorted(consume(client.subscribe(f"{topic}-dead", "morgue"), 10)) == sent
    assert_nothing_more(consumer)
