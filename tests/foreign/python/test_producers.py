"""Producers: names, access modes and refusals.

Terminated topics, which accept no more messages. Deduplication of messages that a producer sends again, in a namespace
that enables it (B-27).
"""

from __future__ import annotations

import threading
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..deadline import eventually
from .traffic import assert_nothing_more, consume, number_of, payloads, receive, send_all

EXCLUSIVE = pulsar.ProducerAccessMode.Exclusive


@pytest.mark.req("P-02")
def test_the_broker_gives_names_of_its_own(client: Any, topic: str) -> None:
    producers = [client.create_producer(topic) for _ in range(3)]
    names = {producer.producer_name() for producer in producers}
    assert len(names) == 3
    assert all(names)


@pytest.mark.req("P-02")
def test_a_name_in_use_is_refused(client: Any, connect: Any, topic: str) -> None:
    producer = client.create_producer(topic, producer_name="p")
    assert producer.producer_name() == "p"
    for other in (client, connect()):
        with pytest.raises(pulsar.ProducerBusy):
            other.create_producer(topic, producer_name="p")
    producer.close()
    connect().create_producer(topic, producer_name="p").send(b"mine now")


def test_two_producers_keep_their_own_order(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producers = {name: client.create_producer(topic, producer_name=name) for name in ("a", "b")}
    threads = [
        threading.Thread(target=send_all, args=(producer, payloads(500)), daemon=True)
        for producer in producers.values()
    ]
    for thread in threads:
        thread.start()
    got: dict[str, list[bytes]] = {"a": [], "b": []}
    for _ in range(1000):
        message = consumer.receive(timeout_millis=30_000)
        consumer.acknowledge(message)
        got[message.producer_name()].append(message.data())
    for thread in threads:
        thread.join()
    assert got == {"a": payloads(500), "b": payloads(500)}


def test_initial_sequence_id(client: Any, topic: str) -> None:
    producer = client.create_producer(topic, producer_name="p", initial_sequence_id=41)
    assert producer.last_sequence_id() == 41
    producer.send(b"one")
    assert producer.last_sequence_id() == 42


def test_exclusive_is_refused_beside_another(client: Any, connect: Any, topic: str) -> None:
    shared = client.create_producer(topic)
    with pytest.raises(pulsar.ProducerFenced):
        connect().create_producer(topic, access_mode=EXCLUSIVE)
    shared.close()
    owner = client.create_producer(topic, access_mode=EXCLUSIVE)
    with pytest.raises(pulsar.ProducerFenced):
        connect().create_producer(topic, access_mode=EXCLUSIVE)
    with pytest.raises(pulsar.ProducerBusy):
        connect().create_producer(topic)
    owner.send(b"still mine")
    owner.close()
    connect().create_producer(topic).send(b"free again")


@pytest.mark.req("B-33", "W-10")
def test_messages_of_a_terminated_topic_are_still_read(client: Any, admin: Admin, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    sent = payloads(20)
    ids = send_all(producer, sent)
    last = admin.terminate(topic)
    assert (last["ledgerId"], last["entryId"]) == (ids[-1].ledger_id(), ids[-1].entry_id())
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(topic)
    messages = receive(consumer, 20)
    assert [message.data() for message in messages] == sent
    for message in messages:
        consumer.acknowledge(message)
    assert_nothing_more(consumer)  # the connection stays open without messages
    assert consumer.is_connected()
    again = client.subscribe(topic, "late", initial_position=pulsar.InitialPosition.Earliest)
    assert [message.data() for message in receive(again, 20)] == sent
    assert admin.terminate(topic) == last


@pytest.fixture
def deduplicated(admin: Admin, own_namespace: str) -> str:
    """Return a topic in a namespace that deduplicates."""
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/deduplication", True)
    return f"persistent://{own_namespace}/t"


def send(producer: Any, numbers: range) -> list[Any]:
    """Send each number as payload and as sequence id."""
    return [producer.send(payload, sequence_id=number_of(payload)) for payload in payloads(len(numbers), numbers.start)]


@pytest.mark.parametrize("unloaded", [False, True], ids=["still-there", "unloaded"])
@pytest.mark.req("B-27")
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


@pytest.mark.req("B-27")
def test_another_name_and_another_namespace_are_not_looked_at(client: Any, deduplicated: str, topic: str) -> None:
    for where, names, stored in ((deduplicated, "pq", 20), (topic, "pp", 20)):
        consumer = client.subscribe(where, "s")
        for name in names:
            producer = client.create_producer(where, name)
            send(producer, range(10))
            producer.close()
        assert sorted(consume(consumer, stored)) == sorted(payloads(10) * 2)
        assert_nothing_more(consumer)


@pytest.mark.req("B-27")
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
