"""Deduplication of messages that a producer sends again, in a namespace that enables it (B-27)."""

from __future__ import annotations

from typing import Any

import pytest

from ..admin import Admin
from ..deadline import eventually
from .traffic import assert_nothing_more, consume, number_of, payloads, send_all

pytestmark = pytest.mark.req("B-27")


@pytest.fixture
def deduplicated(admin: Admin, own_namespace: str) -> str:
    """Return a topic in a namespace that deduplicates."""
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/deduplication", True)
    return f"persistent://{own_namespace}/t"


def send(producer: Any, numbers: range) -> list[Any]:
    """Send each number as payload and as sequence id."""
    return [producer.send(payload, sequence_id=number_of(payload)) for payload in payloads(len(numbers), numbers.start)]


@pytest.mark.parametrize("unloaded", [False, True], ids=["still-there", "unloaded"])
def test_messages_sent_again_by_the_same_producer_name_are_dropped(
    client: Any, admin: Admin, deduplicated: str, unloaded: bool
) -> None:
    consumer = client.subscribe(deduplicated, "s")
    producer = client.create_producer(deduplicated, "p")
    send(producer, range(10))
    producer.close()
    assert consume(consumer, 10) == payloads(10)
    eventually(lambda: admin.backlog(deduplicated, "s") == 0, what="the acknowledgements")
    if unloaded:
        admin.unload(deduplicated)
    producer = client.create_producer(deduplicated, "p")
    assert producer.last_sequence_id() == 9
    ids = send(producer, range(5, 15))
    assert [message_id.entry_id() for message_id in ids[:5]] == [-1] * 5
    assert consume(consumer, 5) == payloads(5, 10)
    assert_nothing_more(consumer)


def test_another_name_and_another_namespace_are_not_looked_at(client: Any, deduplicated: str, topic: str) -> None:
    for where, names, stored in ((deduplicated, "pq", 20), (topic, "pp", 20)):
        consumer = client.subscribe(where, "s")
        for name in names:
            producer = client.create_producer(where, name)
            send(producer, range(10))
            producer.close()
        assert sorted(consume(consumer, stored)) == sorted(payloads(10) * 2)
        assert_nothing_more(consumer)


def test_batches_are_numbered_too(client: Any, deduplicated: str) -> None:
    consumer = client.subscribe(deduplicated, "s")
    for start in (-1, 4, 19):
        producer = client.create_producer(
            deduplicated,
            "p",
            initial_sequence_id=start,
            batching_enabled=True,
            batching_max_messages=5,
            batching_max_publish_delay_ms=60_000,
        )
        send_all(producer, payloads(20, start + 1))
        producer.close()
    # 0 to 19, then 5 to 24, of which 20 to 24 are new, then 20 to 39, of which 25 to 39 are new.
    assert consume(consumer, 40) == payloads(40)
    assert_nothing_more(consumer)
