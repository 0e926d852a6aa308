"""Producers: names, access modes, opening again, and refusals."""

from __future__ import annotations

import threading
from typing import Any

import pulsar
import pytest

from .traffic import assert_nothing_more, consume, payloads, send_all

EXCLUSIVE = pulsar.ProducerAccessMode.Exclusive
WAIT = pulsar.ProducerAccessMode.WaitForExclusive
FENCING = pulsar.ProducerAccessMode.ExclusiveWithFencing


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


def test_close_and_open_again(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    for number in range(5):
        producer = client.create_producer(topic, producer_name="p")
        producer.send(b"%d" % number)
        producer.close()
        with pytest.raises(pulsar.AlreadyClosed):
            producer.send(b"never")
    assert consume(consumer, 5) == [b"0", b"1", b"2", b"3", b"4"]
    assert_nothing_more(consumer)


def test_a_closing_producer_sends_what_it_holds(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=60_000)
    for payload in (sent := payloads(10)):
        producer.send_async(payload, lambda result, message_id: None)
    producer.flush()
    producer.close()
    assert consume(consumer, 10) == sent


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


def test_a_waiting_producer_gets_its_turn(client: Any, connect: Any, topic: str) -> None:
    owner = client.create_producer(topic, access_mode=EXCLUSIVE, producer_name="first")
    got: list[Any] = []
    other = connect()
    waiter = threading.Thread(
        target=lambda: got.append(other.create_producer(topic, access_mode=WAIT, producer_name="second")), daemon=True
    )
    waiter.start()
    waiter.join(0.3)
    assert waiter.is_alive()
    assert not got
    owner.send(b"first")
    owner.close()
    waiter.join(30)
    assert not waiter.is_alive()
    assert got[0].producer_name() == "second"
    got[0].send(b"second")


def test_fencing_takes_the_topic_over(client: Any, connect: Any, topic: str) -> None:
    # The consumer has its own client, because a send that crosses CLOSE_PRODUCER ends the producer's connection.
    consumer = connect().subscribe(topic, "s")
    owner = client.create_producer(topic, access_mode=EXCLUSIVE)
    owner.send(b"old")
    fencer = connect().create_producer(topic, access_mode=FENCING)
    fencer.send(b"new")
    with pytest.raises(pulsar.PulsarException):
        owner.send(b"fenced")
    fencer.send(b"newer")
    assert consume(consumer, 3) == [b"old", b"new", b"newer"]
    assert_nothing_more(consumer)
