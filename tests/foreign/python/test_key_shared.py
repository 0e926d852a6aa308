"""Key_Shared: a key has one consumer at a time, while others join and leave."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import mmh3
import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from ..key_order import KEYED_MESSAGES, STEPS, assert_ordered_by_key, seeds
from .churn import Churn
from .traffic import Outbox, assert_nothing_more, consume, number_of, payloads, receive, receive_among

KEY_SHARED = pulsar.ConsumerType.KeyShared
KEYS = [f"key-{number}" for number in range(100)]


def subscribe(client: Any, topic: str, name: str, policy: Any = None) -> Any:
    return client.subscribe(topic, "s", KEY_SHARED, consumer_name=name, key_shared_policy=policy)


def sticky(*ranges: tuple[int, int]) -> Any:
    return pulsar.ConsumerKeySharedPolicy(pulsar.KeySharedMode.Sticky, sticky_ranges=list(ranges))


def sticky_hash(key: str) -> int:
    """Return the hash of a key that decides in which range of a consumer the key is (B-08, B-10)."""
    return ((mmh3.hash(key.encode(), signed=False) & 0x7FFFFFFF) % 65536) or 1


def publish(producer: Any, rounds: int, start: int = 0) -> None:
    """Publish `rounds` messages of each key, with the keys in turn."""
    outbox = Outbox(producer)
    for number, payload in enumerate(payloads(rounds * len(KEYS), start)):
        outbox.send(payload, partition_key=KEYS[number % len(KEYS)])
    outbox.wait()


def by_key(messages: list[Any]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for message in messages:
        numbers[message.partition_key()].append(number_of(message.data()))
    return numbers


def key_batches(client: Any, topic: str) -> Any:
    return client.create_producer(
        topic, batching_enabled=True, batching_type=pulsar.BatchingType.KeyBased, max_pending_messages=10_000
    )


@pytest.mark.parametrize(("seed", "batched"), seeds("1-single"))
@pytest.mark.req("B-11")
def test_order_is_kept_while_consumers_come_and_go(
    client: Any, admin: Admin, topic: str, seed: int, batched: bool
) -> None:
    churn = Churn(client, topic, seed)
    producer = key_batches(client, topic) if batched else client.create_producer(topic, max_pending_messages=10_000)
    churn.run(producer, KEYED_MESSAGES, len(KEYS), STEPS)
    eventually(lambda: admin.backlog(topic, "churn") == 0, what="everything acknowledged")
    churn.close()
    assert_ordered_by_key(churn.events)
    received = {event.number for event in churn.events if event.what == "received"}
    assert received == set(range(KEYED_MESSAGES))


@pytest.mark.req("B-07")
def test_each_key_of_batches_by_key_has_one_of_four_consumers(client: Any, topic: str) -> None:
    consumers = [subscribe(client, topic, f"c{place}") for place in range(4)]
    publish(key_batches(client, topic), 10)
    places: dict[str, int] = {}
    for place, messages in enumerate(receive_among(consumers, 10 * len(KEYS))):
        share = by_key(messages)
        assert share, f"c{place} has no key"
        assert not share.keys() & places.keys()
        places |= dict.fromkeys(share, place)
        assert all(numbers == sorted(numbers) and len(numbers) == 10 for numbers in share.values())
    assert places.keys() == set(KEYS)


@pytest.mark.req("B-08", "B-10")
def test_chosen_ranges_get_their_keys_and_a_gap_waits_for_its_consumer(client: Any, topic: str) -> None:
    low = subscribe(client, topic, "low", sticky((0, 19_999)))
    both = subscribe(client, topic, "both", sticky((20_000, 29_999), (50_000, 65_535)))
    publish(client.create_producer(topic), 2)

    def gets_both_messages_of_each_key(consumer: Any, *ranges: tuple[int, int]) -> None:
        keys = {key for key in KEYS if any(first <= sticky_hash(key) <= last for first, last in ranges)}
        messages = receive(consumer, 2 * len(keys))
        share = by_key(messages)
        assert share.keys() == keys
        assert all(len(numbers) == 2 and numbers == sorted(numbers) for numbers in share.values())
        assert_nothing_more(consumer)
        for message in messages:
            consumer.acknowledge(message)

    gets_both_messages_of_each_key(low, (0, 19_999))
    gets_both_messages_of_each_key(both, (20_000, 29_999), (50_000, 65_535))
    gap = subscribe(client, topic, "gap", sticky((30_000, 49_999)))
    gets_both_messages_of_each_key(gap, (30_000, 49_999))


@pytest.mark.req("B-10", "C-10")
def test_a_range_that_overlaps_is_refused(client: Any, topic: str) -> None:
    stays = subscribe(client, topic, "stays", sticky((0, 100), (200, 65_535)))
    with pytest.raises(pulsar.PulsarException):
        subscribe(client, topic, "overlaps", sticky((100, 150)))
    subscribe(client, topic, "fits", sticky((101, 199)))
    client.create_producer(topic).send(b"000000", partition_key="key-0")
    assert consume(stays, 1) == [b"000000"]


@pytest.mark.req("B-18")
def test_nacked_messages_of_a_key_return_to_the_same_consumer(client: Any, topic: str) -> None:
    names = ["a", "b"]
    consumers = [
        client.subscribe(topic, "s", KEY_SHARED, consumer_name=name, negative_ack_redelivery_delay_ms=100)
        for name in names
    ]
    publish(client.create_producer(topic), 1)
    shares = receive_among(consumers, 100)
    for consumer, share in zip(consumers, shares, strict=True):
        for message in share:
            consumer.negative_acknowledge(message)
    for consumer, share in zip(consumers, shares, strict=True):
        again = receive(consumer, len(share))
        assert {message.partition_key() for message in again} == {message.partition_key() for message in share}
        assert {message.redelivery_count() for message in again} == {1}
