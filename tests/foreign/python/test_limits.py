"""A consumer that holds too many messages gets no more until it acknowledges (B-06).

The official client with a broker that limits publish and dispatch rates (B-42).
"""

from __future__ import annotations

import time
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from .kinds import on_shared_types
from .traffic import assert_nothing_more, payloads, receive, send_all

LIMIT = 20


def work(consumer: Any, count: int) -> list[bytes]:
    """Receive and acknowledge the next `count` messages, one at a time, and return their payloads."""
    got = []
    for _ in range(count):
        (message,) = receive(consumer, 1)
        consumer.acknowledge(message)
        got.append(message.data())
    return got


@on_shared_types
@pytest.mark.req("B-06")
def test_a_consumer_stops_at_its_limit_and_goes_on(client: Any, admin: Admin, own_namespace: str, kind: Any) -> None:
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/maxUnackedMessagesPerConsumer", LIMIT)
    topic = f"persistent://{own_namespace}/limited"
    client.subscribe(topic, "s", kind).close()
    sent = payloads(100)
    send_all(client.create_producer(topic), sent)
    consumer = client.subscribe(topic, "s", kind)
    held = receive(consumer, LIMIT)
    assert_nothing_more(consumer)
    assert blocked(admin, topic)
    # The broker resumes only after acknowledgements of half of the limit.
    consumer.acknowledge(held[0])
    assert_nothing_more(consumer)
    for message in held[1 : LIMIT // 2]:
        consumer.acknowledge(message)
    held = held[LIMIT // 2 :] + receive(consumer, LIMIT // 2)
    got = [message.data() for message in held[-LIMIT // 2 :]]
    assert got == sent[LIMIT : LIMIT + LIMIT // 2]
    for message in held:
        consumer.acknowledge(message)
    assert work(consumer, 100 - LIMIT - LIMIT // 2) == sent[LIMIT + LIMIT // 2 :]
    eventually(lambda: admin.backlog(topic, "s") == 0, what="no backlog")
    assert not blocked(admin, topic)


def blocked(admin: Admin, topic: str) -> bool:
    (consumer,) = admin.stats(topic)["subscriptions"]["s"]["consumers"]
    return bool(consumer["blockedConsumerOnUnackedMsgs"])


@pytest.mark.req("B-06")
def test_the_others_go_on(client: Any, admin: Admin, own_namespace: str) -> None:
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/maxUnackedMessagesPerConsumer", LIMIT)
    topic = f"persistent://{own_namespace}/limited"
    holds = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    works = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    sent = payloads(200)
    send_all(client.create_producer(topic), sent)
    held = receive(holds, LIMIT)
    rest = work(works, 200 - LIMIT)
    assert sorted([*rest, *(message.data() for message in held)]) == sent
    holds.close()
    assert sorted(work(works, LIMIT)) == sorted(message.data() for message in held)


@pytest.mark.req("B-06")
def test_a_subscription_has_a_limit_too(client: Any, admin: Admin, own_namespace: str) -> None:
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/maxUnackedMessagesPerSubscription", LIMIT)
    topic = f"persistent://{own_namespace}/limited"
    consumers = [
        client.subscribe(topic, "s", pulsar.ConsumerType.Shared, receiver_queue_size=LIMIT // 2) for _ in range(4)
    ]
    producer = client.create_producer(topic)
    # One message at a time, because the broker checks the limit after it has dispatched all that it has read.
    sent = payloads(60)
    for payload in sent:
        producer.send(payload)
    subscription = admin.stats(topic)["subscriptions"]["s"]
    assert subscription["blockedSubscriptionOnUnackedMsgs"]
    assert LIMIT <= subscription["unackedMessages"] < 60
    got: list[bytes] = []
    while len(got) < 60:
        for consumer in consumers:
            try:
                message = consumer.receive(timeout_millis=20)
            except pulsar.Timeout:
                continue
            consumer.acknowledge(message)
            got.append(message.data())
    assert sorted(got) == sent


@pytest.mark.req("B-42")
def test_sends_take_the_time_that_the_rate_asks_for(client: Any, admin: Admin, own_namespace: str) -> None:
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/publishRate", {"publishThrottlingRateInMsg": 20})
    producer = client.create_producer(f"persistent://{own_namespace}/slow", batching_enabled=False)
    results: list[Any] = []
    began = time.monotonic()
    for payload in payloads(30):
        producer.send_async(payload, lambda result, _: results.append(result))
    producer.flush()
    assert time.monotonic() - began > 0.4
    assert results == [pulsar.Result.Ok] * 30  # the broker delays messages, and refuses none


@pytest.mark.req("B-42")
def test_messages_come_as_fast_as_the_rate_allows(client: Any, admin: Admin, own_namespace: str) -> None:
    topic = f"persistent://{own_namespace}/slow"
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/dispatchRate", {"dispatchThrottlingRateInMsg": 10})
    client.subscribe(topic, "s").close()
    sent = payloads(15)
    producer = client.create_producer(topic, batching_enabled=False)
    for payload in sent:
        producer.send(payload)
    began = time.monotonic()
    consumer = client.subscribe(topic, "s")
    got = receive(consumer, 15)
    assert [message.data() for message in got] == sent
    assert time.monotonic() - began > 0.9
