"""Fields and sizes of messages, which arrive as they were sent.

Delivery of 10,000 messages in every way of publishing and consuming: none is lost, duplicated or out of order.
"""

from __future__ import annotations

import os
import time
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..scenario import MESSAGES, Combination, matrix
from .traffic import (
    Crowd,
    assert_all_once,
    assert_in_order,
    assert_nothing_more,
    consume,
    payloads,
    position,
    receive,
    receive_among,
    send_all,
)

LIMIT = 5 * 1024 * 1024
"""The broker's maxMessageSize in bytes, from CONNECTED. The client limits payload and metadata to this size."""

OVERHEAD = 1024


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_all_fields_of_a_message(client: Any, topic: str, batched: bool) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, producer_name="me", batching_enabled=batched)
    before = time.time_ns() // 1_000_000
    message_id = producer.send(
        b"\0\xff payload",
        properties={"a": "1", "empty": "", "ü": "ключ"},
        partition_key="key",
        ordering_key="order",
        event_timestamp=1_234_567_890_123,
        sequence_id=77,
    )
    (message,) = receive(consumer, 1)
    assert message.data() == b"\0\xff payload"
    assert message.properties() == {"a": "1", "empty": "", "ü": "ключ"}
    assert message.partition_key() == "key"
    assert message.ordering_key() == "order"
    assert message.event_timestamp() == 1_234_567_890_123
    assert before <= message.publish_timestamp() <= time.time_ns() // 1_000_000
    assert message.topic_name() == topic
    assert message.producer_name() == "me"
    assert message.redelivery_count() == 0
    assert message.message_id() == message_id
    assert producer.last_sequence_id() == 77


def test_empty_payloads_and_tombstones(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"", partition_key="k")
    producer.send(None, partition_key="k")
    empty, tombstone = receive(consumer, 2)
    assert (empty.data(), empty.has_null_value()) == (b"", False)
    assert (tombstone.data(), tombstone.has_null_value()) == (b"", True)


def test_a_message_keeps_a_thousand_properties(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    properties = {f"name {number}": "v" * number for number in range(1000)}
    client.create_producer(topic).send(b"x", properties=properties)
    assert receive(consumer, 1)[0].properties() == properties


@pytest.mark.parametrize("size", [100_000, 1_000_000, LIMIT - OVERHEAD])
@pytest.mark.req("W-05")
def test_large_messages_arrive_whole(client: Any, topic: str, size: int) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    sent = [os.urandom(size) for _ in range(3)]
    send_all(producer, sent)
    assert consume(consumer, 3) == sent


def test_a_compressible_message_over_the_limit(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    sent = b"0123456789" * (LIMIT // 5)
    client.create_producer(topic, compression_type=pulsar.CompressionType.ZSTD).send(sent)
    assert consume(consumer, 1) == [sent]


@pytest.mark.req("B-37")
def test_non_persistent_topics(client: Any, topic: str) -> None:
    name = topic.replace("persistent://", "non-persistent://")
    consumers = [client.subscribe(name, place) for place in ("one", "two")]
    shared = [client.subscribe(name, "shared", pulsar.ConsumerType.Shared) for _ in range(2)]
    producer = client.create_producer(name)
    sent = [b"%d" % number for number in range(20)]
    for payload in sent:
        producer.send(payload)
    for consumer in consumers:
        assert consume(consumer, 20) == sent
    got = [message.data() for share in receive_among(shared, 20) for message in share]
    assert sorted(got) == sorted(sent)


def test_a_non_persistent_topic_keeps_nothing(client: Any, topic: str) -> None:
    name = topic.replace("persistent://", "non-persistent://")
    producer = client.create_producer(name)
    producer.send(b"to nobody")
    consumer = client.subscribe(name, "s", initial_position=pulsar.InitialPosition.Earliest)
    producer.send(b"to one")
    assert consume(consumer, 1) == [b"to one"]


COMPRESSION = {
    "NONE": pulsar.CompressionType.NONE,
    "LZ4": pulsar.CompressionType.LZ4,
    "ZLIB": pulsar.CompressionType.ZLib,
    "ZSTD": pulsar.CompressionType.ZSTD,
    "SNAPPY": pulsar.CompressionType.SNAPPY,
}


@pytest.mark.parametrize("combination", matrix())
@pytest.mark.req("W-01", "W-02")
def test_python_publishes_and_consumes_ten_thousand_messages(
    client: Any, admin: Admin, topic: str, combination: Combination
) -> None:
    if combination.partitions > 1:
        admin.create_partitioned(topic, combination.partitions)
    kind = getattr(pulsar.ConsumerType, combination.subscription)
    consumers = [
        client.subscribe(topic, "matrix", kind, consumer_name=f"c{place}") for place in range(combination.consumers)
    ]
    producer = client.create_producer(
        topic,
        compression_type=COMPRESSION[combination.compression],
        batching_enabled=combination.batched,
        max_pending_messages=MESSAGES,
    )
    crowd = Crowd(consumers, MESSAGES)
    crowd.start()
    sent = payloads(MESSAGES)
    receipts = [position(message_id) for message_id in send_all(producer, sent)]
    arrivals = crowd.join()

    assert_all_once(arrivals, sent)
    if combination.subscription != "Shared":
        assert_in_order(arrivals)
    assert len({arrival.topic for arrival in arrivals}) == combination.partitions
    assert sorted(arrival.position for arrival in arrivals) == sorted(receipts)
    # The next consumer receives no acknowledged message.
    for consumer in consumers:
        consumer.close()
    assert_nothing_more(client.subscribe(topic, "matrix", kind))
