"""Dead letters: the client's use of the broker's redelivery counts and initial subscriptions (B-23)."""

from __future__ import annotations

from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from .kinds import on_shared_types
from .traffic import assert_nothing_more, consume, payloads, receive, send_all

pytestmark = pytest.mark.req("B-23")


def refuse(consumer: Any, times: int) -> None:
    """Receive one message `times` times, and negatively acknowledge each delivery."""
    for count in range(times):
        (message,) = receive(consumer, 1)
        assert message.redelivery_count() == count
        consumer.negative_acknowledge(message)


@on_shared_types
@pytest.mark.req("P-08")
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
