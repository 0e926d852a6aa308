"""Seek by message id and by time, on every kind of subscription."""

from __future__ import annotations

import time
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from .traffic import assert_nothing_more, consume, payloads, receive, receive_among, send_all

KINDS = [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared, pulsar.ConsumerType.Failover]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


def later_than(moment: int) -> int:
    """Wait until the clock has passed `moment`, so that messages before and after have different publish times."""
    return eventually(lambda: (now := milliseconds()) > moment + 2 and now, what="the clock to go on")


@kinds
@pytest.mark.req("B-34")
def test_to_a_message(client: Any, topic: str, kind: Any) -> None:
    consumer = client.subscribe(topic, "s", kind)
    sent = payloads(20)
    ids = send_all(client.create_producer(topic), sent)
    assert consume(consumer, 20) == sent
    consumer.seek(ids[10])
    assert consume(consumer, 9) == sent[11:]
    assert_nothing_more(consumer)


@kinds
def test_to_a_message_inclusive(client: Any, topic: str, kind: Any) -> None:
    consumer = client.subscribe(topic, "s", kind, start_message_id_inclusive=True)
    sent = payloads(20)
    ids = send_all(client.create_producer(topic), sent)
    assert consume(consumer, 20) == sent
    consumer.seek(ids[10])
    assert consume(consumer, 10) == sent[10:]
    assert_nothing_more(consumer)


@kinds
@pytest.mark.req("B-34")
def test_a_consumer_seeks_to_a_time(client: Any, topic: str, kind: Any) -> None:
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic)
    before = payloads(10)
    send_all(producer, before)
    moment = later_than(milliseconds())
    after = payloads(10, start=10)
    send_all(producer, after)
    assert consume(consumer, 20) == before + after
    consumer.seek(moment)
    assert consume(consumer, 10) == after
    assert_nothing_more(consumer)
    consumer.seek(moment - 3_600_000)
    assert consume(consumer, 20) == before + after
    consumer.seek(milliseconds() + 3_600_000)
    assert_nothing_more(consumer)


@kinds
def test_to_the_ends(client: Any, topic: str, kind: Any) -> None:
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic)
    sent = payloads(10)
    send_all(producer, sent)
    assert consume(consumer, 5) == sent[:5]
    consumer.seek(pulsar.MessageId.latest)
    assert_nothing_more(consumer)
    producer.send(b"new")
    assert consume(consumer, 1) == [b"new"]
    consumer.seek(pulsar.MessageId.earliest)
    assert consume(consumer, 11) == [*sent, b"new"]


def test_forward_skips_and_acknowledges_what_lies_between(client: Any, admin: Admin, topic: str) -> None:
    consumer = client.subscribe(topic, "s", start_message_id_inclusive=True)
    ids = send_all(client.create_producer(topic), payloads(20))
    consumer.seek(ids[14])
    consume(consumer, 6)
    consumer.close()
    eventually(lambda: admin.backlog(topic, "s") == 0, what="a backlog of 0")


def test_with_two_shared_consumers(client: Any, topic: str) -> None:
    consumers = [client.subscribe(topic, "s", pulsar.ConsumerType.Shared) for _ in range(2)]
    sent = payloads(100)
    send_all(client.create_producer(topic), sent)
    first = [message.data() for share in receive_among(consumers, 100) for message in share]
    assert sorted(first) == sent
    consumers[0].seek(pulsar.MessageId.earliest)
    again = [message.data() for share in receive_among(consumers, 100) for message in share]
    assert sorted(again) == sent


def test_a_consumer_seeks_over_partitions(client: Any, admin: Admin, topic: str) -> None:
    admin.create_partitioned(topic, 3)
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    before = payloads(30)
    send_all(producer, before)
    moment = later_than(milliseconds())
    after = payloads(30, start=30)
    send_all(producer, after)
    assert sorted(consume(consumer, 60)) == before + after
    consumer.seek(moment)
    assert sorted(consume(consumer, 30)) == after
    consumer.seek(pulsar.MessageId.earliest)
    assert sorted(message.data() for message in receive(consumer, 60)) == before + after


def test_into_a_batch(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    sent = payloads(20)
    producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=60_000)
    ids = send_all(producer, sent)
    assert {message_id.entry_id() for message_id in ids} == {ids[0].entry_id()}
    assert consume(consumer, 20) == sent
    consumer.seek(ids[12])
    assert consume(consumer, 7) == sent[13:]
    assert_nothing_more(consumer)
