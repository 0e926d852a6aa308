"""Consumers of several topics: of a list, or of a pattern."""

from __future__ import annotations

import re
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from .traffic import assert_nothing_more, consume, receive, send_all


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
