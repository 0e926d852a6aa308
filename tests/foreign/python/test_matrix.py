"""Delivery of 10,000 messages in every way of publishing and consuming: none is lost, duplicated or out of order."""

from __future__ import annotations

from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..scenario import MESSAGES, Combination, matrix
from .traffic import Crowd, assert_all_once, assert_in_order, assert_nothing_more, payloads, position, send_all

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
