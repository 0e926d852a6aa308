"""Scenarios of topics: access, consumers of a subscription, partitions, lookup and security."""

from __future__ import annotations

import re
import threading
import time
from contextlib import suppress

import pulsar

from pulsarium.matrix.python.lines import PATIENCE, Failure, Lines, equal, texts, that
from pulsarium.matrix.python.official.support import (
    Failover,
    Shared,
    client,
    consume,
    nothing_more,
    receive,
    refused,
    send,
    single,
    subscribe,
    text,
)


def exclusive_busy(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        refused(pulsar.ConsumerBusy, lambda: subscribe(ours, cell.topic))
        consumer.close()
        subscribe(ours, cell.topic)


def failover(cell: Lines) -> None:
    with client(cell) as ours:
        first, second = (subscribe(ours, cell.topic, consumer_type=Failover, consumer_name=name) for name in "ab")
        producer = single(ours, cell.topic)
        send(producer, texts(0, 10))
        # A hash of the consumers' names and the topic's name decides which consumer is active.
        active, standby, message = second, first, None
        end = time.monotonic() + PATIENCE
        while message is None and time.monotonic() < end:
            active, standby = standby, active
            with suppress(pulsar.Timeout):
                message = active.receive(100)
        that(message, "no consumer is active")
        active.acknowledge(message)
        equal([text(message), *consume(active, 9)], texts(0, 10))
        nothing_more(standby)
        active.close()
        send(producer, texts(10, 20))
        equal(consume(standby, 10), texts(10, 20))


def shared(cell: Lines) -> None:
    with client(cell) as ours:
        consumers = [subscribe(ours, cell.topic, consumer_type=Shared, receiver_queue_size=5) for _ in range(2)]
        send(single(ours, cell.topic), texts(0, 20))
        found: list[list[str]] = [[], []]
        end = time.monotonic() + PATIENCE
        while sum(map(len, found)) < 20 and time.monotonic() < end:
            for mine, consumer in zip(found, consumers, strict=True):
                try:
                    message = consumer.receive(100)
                except pulsar.Timeout:
                    continue
                consumer.acknowledge(message)
                mine.append(text(message))
        equal(sorted(found[0] + found[1]), texts(0, 20))
        that(all(found), "one consumer got everything")


def partitioned(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        send(single(ours, cell.topic), texts(0, 30))
        messages = receive(consumer, 30)
        equal(sorted(map(text, messages)), texts(0, 30))
        equal(len({message.topic_name() for message in messages}), 3, "partitions")


def pattern(cell: Lines) -> None:
    base = f"persistent://{cell.namespace}/"
    with client(cell) as ours:
        for name in ("red-1", "red-2", "blue"):
            send(single(ours, base + name), [name])
        consumer = subscribe(ours, re.compile(f"{base}red-.*"))
        equal(sorted(consume(consumer, 2)), ["red-1", "red-2"])
        nothing_more(consumer)


def multi_topics(cell: Lines) -> None:
    topics = [f"{cell.topic}-{number}" for number in range(2)]
    with client(cell) as ours:
        consumer = subscribe(ours, topics)
        for topic in topics:
            send(single(ours, topic), [topic])
        equal(sorted(consume(consumer, 2)), topics)


def unload(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        producer = single(ours, cell.topic)
        send(producer, texts(0, 5))
        equal(consume(consumer, 5), texts(0, 5))
        cell.do("unload")
        send(producer, texts(5, 10))
        # Acknowledgements in flight may have been lost with the old consumer.
        found: set[str] = set()
        while not found >= set(texts(5, 10)):
            found |= set(consume(consumer, 1))


def brokers(cell: Lines) -> None:
    topics = [f"{cell.topic}-{number}" for number in range(8)]
    for url in cell.service_urls:
        with client(cell, url) as ours:
            for topic in topics:
                consumer = subscribe(ours, topic)
                send(single(ours, topic), [topic])
                equal(consume(consumer, 1), [topic])


def http_lookup(cell: Lines) -> None:
    with client(cell, cell.http_url) as ours:
        consumer = subscribe(ours, cell.topic)
        send(single(ours, cell.topic), texts(0, 5))
        equal(consume(consumer, 5), texts(0, 5))


def token(cell: Lines) -> None:
    with client(cell, authentication=pulsar.AuthenticationToken(cell.token)) as ours:
        consumer = subscribe(ours, cell.topic)
        send(single(ours, cell.topic), texts(0, 5))
        equal(consume(consumer, 5), texts(0, 5))
    with client(cell, authentication=pulsar.AuthenticationToken(cell.wrong_token)) as theirs:
        refused(pulsar.PulsarException, lambda: single(theirs, cell.topic))


def tls(cell: Lines) -> None:
    options = {"tls_trust_certs_file_path": cell.authority, "tls_validate_hostname": True}
    with client(cell, cell.tls_url, authentication=pulsar.AuthenticationToken(cell.token), **options) as ours:
        consumer = subscribe(ours, cell.topic)
        send(single(ours, cell.topic), texts(0, 5))
        equal(consume(consumer, 5), texts(0, 5))


def zero_queue(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic, receiver_queue_size=0)
        send(single(ours, cell.topic), texts(0, 10))
        # This queue size allows no timeout.
        equal([text(consumer.receive()) for _ in range(10)], texts(0, 10))


def producer_name(cell: Lines) -> None:
    with client(cell) as ours:
        producer = single(ours, cell.topic, producer_name="p")
        equal(producer.producer_name(), "p")
        refused(pulsar.ProducerBusy, lambda: single(ours, cell.topic, producer_name="p"))
        producer.close()
        single(ours, cell.topic, producer_name="p")


def exclusive_producer(cell: Lines) -> None:
    with client(cell) as ours:
        owner = single(ours, cell.topic, access_mode=pulsar.ProducerAccessMode.Exclusive)
        refused(pulsar.PulsarException, lambda: single(ours, cell.topic))
        send(owner, ["mine"])


def wait_for_exclusive(cell: Lines) -> None:
    with client(cell) as ours:
        owner = single(ours, cell.topic, access_mode=pulsar.ProducerAccessMode.Exclusive)
        found: list[pulsar.Producer] = []

        def wait() -> None:
            found.append(single(ours, cell.topic, access_mode=pulsar.ProducerAccessMode.WaitForExclusive))

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        waiting.join(0.5)
        that(not found, "the producer did not wait")
        owner.close()
        waiting.join(PATIENCE)
        that(found, "the waiting producer never opened")
        send(found[0], ["mine now"])


def terminated(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        producer = single(ours, cell.topic, send_timeout_millis=5000)
        send(producer, texts(0, 5))
        cell.do("terminate")
        equal(consume(consumer, 5), texts(0, 5))
        try:
            producer.send(b"too late")
        except pulsar.PulsarException:
            return
        raise Failure("the message was accepted")


TOPICS = {
    "exclusive-busy": exclusive_busy,
    "failover": failover,
    "shared": shared,
    "partitioned": partitioned,
    "pattern": pattern,
    "multi-topics": multi_topics,
    "unload": unload,
    "brokers": brokers,
    "http-lookup": http_lookup,
    "token": token,
    "tls": tls,
    "zero-queue": zero_queue,
    "producer-name": producer_name,
    "exclusive-producer": exclusive_producer,
    "wait-for-exclusive": wait_for_exclusive,
    "terminated": terminated,
}
