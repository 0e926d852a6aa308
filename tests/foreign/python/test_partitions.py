"""Partitioned topics, and creation of topics on first use.

Consumers of several topics: of a list, or of a pattern.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from .traffic import assert_nothing_more, consume, payloads, receive, send_all

EARLIEST = pulsar.InitialPosition.Earliest


def test_a_topic_is_made_on_first_use(client: Any, admin: Admin, own_namespace: str) -> None:
    produced, consumed = (f"persistent://{own_namespace}/{name}" for name in ("produced", "consumed"))
    assert admin.topics(own_namespace) == []
    client.create_producer(produced)
    client.subscribe(consumed, "s")
    assert sorted(admin.topics(own_namespace)) == [consumed, produced]


def test_short_names_are_in_public_default(client: Any, topic: str) -> None:
    short = topic.rsplit("/", 1)[1]
    consumer = client.subscribe(f"persistent://public/default/{short}", "s")
    producer = client.create_producer(short)
    assert producer.topic() == f"persistent://public/default/{short}"
    producer.send(b"one")
    assert consume(consumer, 1) == [b"one"]


def test_the_official_client_keeps_to_a_single_partition(client: Any, admin: Admin, topic: str) -> None:
    admin.create_partitioned(topic, 3)
    producer = client.create_producer(topic, message_routing_mode=pulsar.PartitionsRoutingMode.UseSinglePartition)
    assert len({message_id.partition() for message_id in send_all(producer, payloads(30))}) == 1


@pytest.mark.parametrize(
    "kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Failover], ids=lambda k: str(k.name)
)
def test_each_key_keeps_its_order_and_partition(client: Any, admin: Admin, topic: str, kind: Any) -> None:
    admin.create_partitioned(topic, 3)
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic, batching_enabled=True)
    for number in range(300):
        producer.send_async(b"%d" % number, lambda result, message_id: None, partition_key=f"key-{number % 10}")
    producer.flush()
    numbers: dict[str, list[int]] = defaultdict(list)
    places: dict[str, set[str]] = defaultdict(set)
    for message in receive(consumer, 300):
        numbers[message.partition_key()].append(int(message.data()))
        places[message.partition_key()].add(message.topic_name())
    assert numbers == {f"key-{key}": list(range(key, 300, 10)) for key in range(10)}
    assert all(len(used) == 1 for used in places.values())
    assert len(set().union(*places.values())) > 1


def test_one_partition_is_a_topic_like_any_other(client: Any, admin: Admin, topic: str) -> None:
    admin.create_partitioned(topic, 2)
    consumer = client.subscribe(topic, "s")
    client.create_producer(f"{topic}-partition-1").send(b"to one")
    (message,) = receive(consumer, 1)
    assert message.topic_name() == f"{topic}-partition-1"


def test_a_topic_grows(client: Any, connect: Any, admin: Admin, topic: str) -> None:
    admin.create_partitioned(topic, 2)
    consumer = client.subscribe(topic, "s")
    before = payloads(20)
    send_all(client.create_producer(topic), before)
    assert sorted(consume(consumer, 20)) == before
    consumer.close()
    admin.grow(topic, 5)
    grown = connect()
    assert len(grown.get_topic_partitions(topic)) == 5
    consumer = grown.subscribe(topic, "s")
    after = payloads(50, start=20)
    ids = send_all(grown.create_producer(topic), after)
    assert {message_id.partition() for message_id in ids} == set(range(5))
    assert sorted(consume(consumer, 50)) == after
    assert_nothing_more(consumer)


def test_growing_makes_the_old_subscription_on_the_new_partitions(client: Any, admin: Admin, topic: str) -> None:
    """A message is not lost when it comes to a new partition before the consumer knows the partition."""
    admin.create_partitioned(topic, 1)
    client.subscribe(topic, "s").close()
    admin.grow(topic, 2)
    client.create_producer(f"{topic}-partition-1").send(b"early")
    assert consume(client.subscribe(topic, "s"), 1) == [b"early"]


def test_an_unknown_partition_is_refused(client: Any, admin: Admin, topic: str) -> None:
    admin.create_partitioned(topic, 2)
    with pytest.raises(pulsar.PulsarException):
        client.create_producer(f"{topic}-partition-7")


def test_a_deleted_topic_starts_anew(client: Any, admin: Admin, topic: str) -> None:
    producer = client.create_producer(topic)
    send_all(producer, payloads(5))
    producer.close()
    admin.delete(topic)
    client.create_producer(topic).send(b"new")
    assert consume(client.subscribe(topic, "s", initial_position=EARLIEST), 1) == [b"new"]


def test_a_list_of_topics(client: Any, admin: Admin, topic: str) -> None:
    topics = [f"{topic}-{name}" for name in "abc"]
    admin.create_partitioned(topics[2], 2)
    consumer = client.subscribe(topics, "s")
    sent = [b"%s %d" % (name.encode(), number) for name in topics for number in range(10)]
    for name in topics:
        send_all(client.create_producer(name), [payload for payload in sent if payload.startswith(name.encode())])
    assert sorted(consume(consumer, 30)) == sorted(sent)
    assert_nothing_more(consumer)
    consumer.close()
    assert_nothing_more(client.subscribe(topics, "s"))


@pytest.mark.req("B-38")
def test_a_pattern_takes_what_matches(client: Any, admin: Admin, own_namespace: str) -> None:
    base = f"persistent://{own_namespace}"
    admin.create_partitioned(f"{base}/red-parts", 2)
    producers = {name: client.create_producer(f"{base}/{name}") for name in ("red-1", "red-2", "blue", "red-parts")}
    consumer = client.subscribe(re.compile(f"{base}/red-.*"), "s")
    for name, producer in producers.items():
        send_all(producer, [name.encode()] * 5)
    assert sorted(consume(consumer, 15)) == [b"red-1"] * 5 + [b"red-2"] * 5 + [b"red-parts"] * 5
    assert_nothing_more(consumer)


def test_a_pattern_over_both_domains(client: Any, own_namespace: str) -> None:
    names = [f"{domain}://{own_namespace}/{domain}" for domain in ("persistent", "non-persistent")]
    producers = [client.create_producer(name) for name in names]
    consumer = client.subscribe(
        re.compile(f"{own_namespace}/.*"), "s", regex_subscription_mode=pulsar.RegexSubscriptionMode.AllTopics
    )
    for producer in producers:
        producer.send(b"one")
    assert sorted(message.topic_name() for message in receive(consumer, 2)) == sorted(names)


def test_unsubscribing_from_a_pattern(client: Any, admin: Admin, own_namespace: str) -> None:
    base = f"persistent://{own_namespace}"
    names = [f"{base}/{name}" for name in "ab"]
    producers = [client.create_producer(name) for name in names]
    consumer = client.subscribe(re.compile(f"{base}/.*"), "s", pulsar.ConsumerType.Shared)
    for producer in producers:
        producer.send(b"one")
    consume(consumer, 2)
    consumer.unsubscribe()
    eventually(lambda: not any(admin.stats(name)["subscriptions"] for name in names), what="no subscription left")
