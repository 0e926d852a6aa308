"""Delayed messages: late on Shared, at once on other types, and never a delay for other messages."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from .kinds import on_shared_types
from .traffic import consume, payloads, receive, send_all

TICK = 1.02
"""Seconds by which a message may come before its time: one tick of delayedDeliveryTickTimeMillis (B-21).

The 0.02 s are for the difference between the clocks of the producer and the test.
"""

pytestmark = pytest.mark.req("B-21")


def arrivals(consumer: Any, count: int) -> list[tuple[bytes, float]]:
    """Receive and acknowledge the next messages, and return (payload, time of arrival) of each."""
    got = []
    for _ in range(count):
        (message,) = receive(consumer, 1)
        got.append((message.data(), time.monotonic()))
        consumer.acknowledge(message)
    return got


@pytest.mark.heavy
@on_shared_types
def test_in_the_order_of_their_times_and_not_before(client: Any, admin: Admin, topic: str, kind: Any) -> None:
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic)
    sent = time.monotonic()
    producer.send(b"later", deliver_after=timedelta(seconds=10))
    producer.send(b"sooner", deliver_after=timedelta(seconds=1.5))
    now = payloads(100)
    send_all(producer, now)
    came = arrivals(consumer, 102)
    # Plain messages wait for no delayed one. A slow machine may deliver some of them after the first delayed one.
    assert [payload for payload, _ in came if payload != b"sooner"] == [*now, b"later"]
    times = dict(came)
    assert times[b"sooner"] - sent >= 1.5 - TICK
    assert times[b"later"] - sent >= 10 - TICK
    eventually(lambda: admin.backlog(topic, "s") == 0, what="no backlog")


def test_at_once_on_failover(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Failover)
    producer = client.create_producer(topic)
    producer.send(b"delayed", deliver_after=timedelta(hours=1))
    producer.send(b"plain")
    assert consume(consumer, 2) == [b"delayed", b"plain"]


def test_a_time_that_has_passed_is_now(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic)
    producer.send(b"past", deliver_at=int(time.time() * 1000) - 5000)
    assert consume(consumer, 1) == [b"past"]


@pytest.mark.heavy
def test_waiting_messages_are_backlog_and_wait_for_the_next_consumer(client: Any, admin: Admin, topic: str) -> None:
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic)
    sent = time.monotonic()
    for number in range(10):
        producer.send(b"%d" % number, deliver_after=timedelta(seconds=2))
    assert admin.backlog(topic, "s") == 10
    consumer.close()
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    assert sorted(payload for payload, _ in arrivals(consumer, 10)) == [b"%d" % number for number in range(10)]
    assert time.monotonic() - sent >= 2 - TICK


def test_a_second_subscription_has_its_own_wait(client: Any, topic: str) -> None:
    shared = client.subscribe(topic, "shared", pulsar.ConsumerType.Shared)
    exclusive = client.subscribe(topic, "exclusive")
    sent = time.monotonic()
    client.create_producer(topic).send(b"delayed", deliver_after=timedelta(seconds=1.5))
    assert consume(exclusive, 1) == [b"delayed"]
    assert consume(shared, 1) == [b"delayed"]
    assert time.monotonic() - sent >= 1.5 - TICK
