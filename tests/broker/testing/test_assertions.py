"""Assertions of tests about topics, and the texts of their failures."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pulsar
import pytest

from pulsarium.broker.lab.expectations import OfSubscription
from pulsarium.broker.testing import PulsarBroker

SOON = 0.02  # seconds to wait in assertions that must fail


def fails(said: Callable[..., None], *args: object) -> str:
    with pytest.raises(AssertionError) as failed:
        said(*args, timeout=SOON)
    return str(failed.value)


def test_the_number_and_payloads_of_published_messages_are_asserted(
    broker: PulsarBroker, client: Any, topic: str
) -> None:
    broker.assert_produced(topic, 0)
    producer = client.create_producer(topic, producer_name="till", batching_enabled=False)
    for each in ("a", "b"):
        producer.send(each.encode())
    broker.assert_produced(topic, 2)
    broker.assert_produced(topic, ["a", b"b"])
    broker.assert_produced(topic.removeprefix("persistent://"), 2)
    text = fails(broker.assert_produced, topic, 3)
    assert text == f"{topic} has 2 messages, not 3: b'a', b'b'; connected producers: till"
    assert (
        fails(broker.assert_produced, topic, ["a", "c"]) == f"message 1 of {topic} is b'b', not b'c'; it has b'a', b'b'"
    )


def test_more_than_expected_fails_at_once(broker: PulsarBroker, client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    for number in range(12):
        producer.send(b"%02d" % number * 40)
    with pytest.raises(AssertionError, match=r"has 12 messages, not 1: b'(00){30}\.\.\.', .*, and 2 more; conn"):
        broker.assert_produced(topic, 1, timeout=1000)


def test_values_are_those_of_the_producer(broker: PulsarBroker, client: Any, topic: str) -> None:
    """The broker unpacks batches, decompresses messages, and joins chunks."""
    compression = {"compression_type": pulsar.CompressionType.ZLib}
    batches = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=10, **compression)
    for each in (b"a", b"b", b"c"):
        batches.send_async(each, lambda result, message_id: None)
    batches.flush()
    large = bytes(range(256)) * 4096 * 6
    chunks = client.create_producer(topic, batching_enabled=False, chunking_enabled=True)
    chunks.send(large)
    broker.assert_produced(topic, [b"a", b"b", b"c", large])


def test_values_of_partitions_have_no_order(broker: PulsarBroker, client: Any, topic: str) -> None:
    assert broker.create_topic(topic, partitions=3) == topic
    producer = client.create_producer(topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution)
    for each in (b"c", b"b", b"a"):
        producer.send(each)
    broker.assert_produced(topic, [b"a", b"b", b"c"])
    assert "is b'c', not b'd'" in fails(broker.assert_produced, topic, [b"a", b"b", b"d"])


def test_a_topic_that_is_not_there(broker: PulsarBroker, client: Any, topic: str) -> None:
    other = topic.replace("/topic", "/other")
    assert fails(broker.assert_produced, topic, 1) == f"there is no topic {topic}; its namespace has none"
    broker.create_topic(other)
    assert fails(broker.assert_delivered, topic, "s") == f"there is no topic {topic}; its namespace has {other}"
    text = f"{other} has no subscription s, but none at all"
    assert fails(broker.assert_acked, other, "s") == text
    client.subscribe(other, "t")
    assert fails(broker.assert_delivered, other, "s") == f"{other} has no subscription s, but t"


def test_assertions_wait_for_messages_that_come_later(broker: PulsarBroker, client: Any, topic: str) -> None:
    with ThreadPoolExecutor() as other:
        produced = other.submit(broker.assert_produced, topic, [b"late"])
        delivered = other.submit(broker.assert_delivered, topic, "s", 1)
        acked = other.submit(broker.assert_acked, topic, "s", 1)
        consumer = client.subscribe(topic, "s")
        client.create_producer(topic).send(b"late")
        consumer.acknowledge(consumer.receive(30_000))
        consumer.close()
        produced.result()
        delivered.result()
        acked.result()


def test_a_delivered_message_is_asserted(broker: PulsarBroker, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", receiver_queue_size=1, consumer_name="slow")
    producer = client.create_producer(topic, batching_enabled=False)
    producer.send(b"a")
    broker.assert_delivered(topic, "s")
    producer.send(b"b")
    text = fails(broker.assert_delivered, topic, "s", 2)
    begin = f"s of {topic} was delivered 1 message, not 2, of 2 messages in the topic; "
    assert text.startswith(begin)
    assert ":1: slow has no permits left: its client sent no FLOW; slow holds 1 unacknowledged entry; cons" in text
    consumer.close()
    broker.assert_delivered(topic, "s")
    assert fails(broker.assert_delivered, topic, "s", 2).endswith("consumers: none")


def test_acknowledged_messages_are_asserted(broker: PulsarBroker, client: Any, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=False)
    producer.send(b"before")
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared, consumer_name="c")
    for each in (b"a", b"b", b"c"):
        producer.send(each)
    a, b, c = (consumer.receive(30_000) for _ in range(3))
    consumer.acknowledge(c)
    broker.assert_acked(topic, "s", 1)
    consumer.acknowledge(a)
    broker.assert_acked(topic, "s", 2)
    text = fails(broker.assert_acked, topic, "s")
    begin = f"s of {topic} has 2 messages acknowledged, not all, of 4 messages in the topic; "
    assert text.startswith(begin)
    assert ":2: c has it and has not acknowledged it; " in text
    assert "; consumers: c (permits" in text
    with pytest.raises(AssertionError, match="has 2 messages acknowledged, not 1"):
        broker.assert_acked(topic, "s", 1, timeout=1000)
    consumer.acknowledge(b)
    broker.assert_acked(topic, "s")
    broker.assert_acked(topic, "s", 3)


def test_acked_after_a_seek_to_before_its_begin(broker: PulsarBroker, client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    producer.send(b"earlier")
    consumer = client.subscribe(topic, "s")
    producer.send(b"later")
    consumer.acknowledge(consumer.receive(30_000))
    broker.assert_acked(topic, "s", 1)
    consumer.seek(pulsar.MessageId.earliest)
    for _ in range(2):
        consumer.acknowledge(consumer.receive(30_000))
    broker.assert_acked(topic, "s", 2)


def test_of_many_partitions_a_reason_is_said_once(broker: PulsarBroker, client: Any, topic: str) -> None:
    broker.create_topic(topic, partitions=3)
    client.subscribe(topic, "s")
    assert fails(broker.assert_delivered, topic, "s").count("the topic has no messages") == 1


def test_of_many_messages_only_those_that_are_shown_are_explained(
    broker: PulsarBroker, client: Any, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    why = OfSubscription.why

    def counted(self: OfSubscription, *about: Any) -> str:
        asked.append(about)
        return why(self, *about)

    monkeypatch.setattr(OfSubscription, "why", counted)
    client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    for _ in range(12):
        producer.send(b"a")
    assert "; and 2 more; " in fails(broker.assert_acked, topic, "s")
    assert len(asked) == 10


def test_messages_that_a_seek_passed_are_not_acknowledged(broker: PulsarBroker, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    sent = [client.create_producer(topic).send(b"%d" % number) for number in range(3)]
    consumer.seek(pulsar.MessageId.latest)
    text = fails(broker.assert_acked, topic, "s", 3)
    assert text.startswith(f"s of {topic} has 0 messages acknowledged, not 3, of 3 messages in the topic; ")
    assert f"{sent[0].ledger_id()}:0: a seek or a reset of the cursor went past it, through " in text
    broker.assert_acked(topic, "s", 0)


def test_acked_in_a_batch(broker: PulsarBroker, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", batch_index_ack_enabled=True, receiver_queue_size=1)
    producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=1000)
    for each in (b"a", b"b"):
        producer.send_async(each, lambda result, message_id: None)
    producer.flush()
    consumer.acknowledge(consumer.receive(30_000))
    broker.assert_acked(topic, "s", 1)
    assert " has not acknowledged it; " in fails(broker.assert_acked, topic, "s")


def test_topics_that_keep_nothing(broker: PulsarBroker, client: Any, topic: str) -> None:
    topic = topic.replace("persistent", "non-persistent")
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"a")
    consumer.receive(30_000)
    broker.assert_produced(topic, 1)
    broker.assert_delivered(topic, "s")
    assert fails(broker.assert_produced, topic, 2).startswith(f"{topic} has 1 message, not 2")
    with pytest.raises(ValueError, match="not persistent"):
        broker.assert_produced(topic, [b"a"])
    with pytest.raises(ValueError, match="not persistent"):
        broker.assert_acked(topic, "s")
