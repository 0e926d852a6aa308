"""Messages larger than a frame, in chunks (B-28)."""

from __future__ import annotations

import random
import time
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from .traffic import SECONDS, assert_nothing_more, receive

pytestmark = pytest.mark.req("B-28")
SIZES = (12_000_000, 10, 6_000_000)
KINDS = [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared]


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def chunking(client: Any, topic: str) -> Any:
    return client.create_producer(topic, chunking_enabled=True, batching_enabled=False)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
def test_large_messages_come_whole(client: Any, admin: Admin, topic: str, kind: Any) -> None:
    consumer = client.subscribe(topic, "s", kind)
    producer = chunking(client, topic)
    for size in SIZES:
        producer.send(content(size))
    messages = receive(consumer, len(SIZES))
    assert [message.data() for message in messages] == [content(size) for size in SIZES]
    for message in messages:
        consumer.acknowledge(message)
    eventually(lambda: admin.backlog(topic, "s") == 0, what="all chunks acknowledged")


def test_chunks_of_one_message_go_to_one_of_several_consumers(client: Any, admin: Admin, topic: str) -> None:
    consumers = [client.subscribe(topic, "s", pulsar.ConsumerType.Shared, receiver_queue_size=2) for _ in range(3)]
    producers = [chunking(client, topic) for _ in range(2)]
    sizes = [5_300_000 + number for number in range(8)]
    for number, size in enumerate(sizes):
        producers[number % 2].send_async(content(size), None)
    for producer in producers:
        producer.flush()
    got: list[int] = []
    end = time.monotonic() + SECONDS
    while len(got) < len(sizes) and time.monotonic() < end:
        for consumer in consumers:
            try:
                message = consumer.receive(timeout_millis=50)
            except pulsar.Timeout:
                continue
            assert message.data() == content(len(message.data()))
            consumer.acknowledge(message)
            got.append(len(message.data()))
    assert sorted(got) == sizes
    eventually(lambda: admin.backlog(topic, "s") == 0, what="all chunks acknowledged")
    for consumer in consumers:
        assert_nothing_more(consumer, milliseconds=50)
