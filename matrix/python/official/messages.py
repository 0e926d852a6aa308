"""Scenarios of messages between producer and consumer."""

from __future__ import annotations

import os
import time
from functools import partial

import pulsar

from pulsarium.matrix.python.lines import Lines, Scenario, equal, texts, that
from pulsarium.matrix.python.official.support import (
    KeyShared,
    Shared,
    client,
    consume,
    nothing_more,
    receive,
    send,
    single,
    subscribe,
    text,
)


def produce_consume(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        send(single(ours, cell.topic), texts(0, 10), partition_key="k", properties={"p": "v"})
        for wanted, message in zip(texts(0, 10), receive(consumer, 10), strict=True):
            equal((text(message), message.partition_key(), message.properties()), (wanted, "k", {"p": "v"}))
            consumer.acknowledge(message)
        consumer.close()
        nothing_more(subscribe(ours, cell.topic))


def batching(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        send(batches(ours, cell.topic), texts(0, 10))
        messages = receive(consumer, 10)
        equal([text(message) for message in messages], texts(0, 10))
        ids = [message.message_id() for message in messages]
        equal({one.entry_id() for one in ids}, {ids[0].entry_id()}, "entries")
        equal([one.batch_index() for one in ids], list(range(10)), "batch indexes")


def batches(ours: pulsar.Client, topic: str) -> pulsar.Producer:
    return ours.create_producer(
        topic, batching_enabled=True, batching_max_messages=10, batching_max_publish_delay_ms=10_000
    )


def compression(kind: pulsar.CompressionType, cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        sent = [each * 1000 for each in texts(0, 10)]
        send(single(ours, cell.topic, compression_type=kind), sent)
        equal(consume(consumer, 10), sent)


def chunking(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        producer = single(ours, cell.topic, chunking_enabled=True)
        sent = [b"before", os.urandom(6_000_000), b"behind"]
        for each in sent:
            producer.send(each)
        that([message.data() for message in receive(consumer, 3)] == sent, "other messages came back")


def delayed(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic, consumer_type=Shared)
        producer = single(ours, cell.topic)
        start = time.monotonic()
        producer.send(b"later", deliver_at=int(time.time() * 1000) + 1000)
        producer.send(b"now")
        equal(consume(consumer, 2), ["now", "later"])
        that(time.monotonic() - start > 0.9, "too early")


def non_persistent(cell: Lines) -> None:
    topic = cell.topic.replace("persistent://", "non-persistent://")
    with client(cell) as ours:
        consumer = subscribe(ours, topic)
        send(single(ours, topic), texts(0, 10))
        equal(consume(consumer, 10), texts(0, 10))


def encryption(cell: Lines) -> None:
    keys = pulsar.CryptoKeyReader(cell.public_key, cell.private_key)
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic, crypto_key_reader=keys)
        without = ours.subscribe(
            cell.topic,
            "t",
            initial_position=pulsar.InitialPosition.Earliest,
            crypto_failure_action=pulsar.ConsumerCryptoFailureAction.CONSUME,
        )
        send(single(ours, cell.topic, encryption_key="k", crypto_key_reader=keys), texts(0, 3))
        equal(consume(consumer, 3), texts(0, 3))
        that(not {message.data() for message in receive(without, 3)} & {b"a0000", b"a0001", b"a0002"}, "in the clear")


def batch_receive(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic, batch_receive_policy=pulsar.ConsumerBatchReceivePolicy(10, -1, 10_000))
        send(single(ours, cell.topic), texts(0, 10))
        equal([text(message) for message in consumer.batch_receive()], texts(0, 10))


def key_shared(cell: Lines) -> None:
    with client(cell) as ours:
        consumers = [subscribe(ours, cell.topic, consumer_type=KeyShared) for _ in range(2)]
        producer = single(ours, cell.topic)
        for number in range(10):
            for each in range(5):
                producer.send_async(b"%d" % number, None, partition_key=f"key-{each}")
        producer.flush()
        found: dict[str, list[tuple[int, str]]] = {}
        end = time.monotonic() + 15
        while sum(map(len, found.values())) < 50 and time.monotonic() < end:
            for place, consumer in enumerate(consumers):
                try:
                    while True:
                        message = consumer.receive(50)
                        consumer.acknowledge(message)
                        found.setdefault(message.partition_key(), []).append((place, text(message)))
                except pulsar.Timeout:
                    continue
        equal(sum(map(len, found.values())), 50, "messages")
        for key, arrivals in found.items():
            equal("".join(sent for _, sent in arrivals), "0123456789", f"order of {key}")
            equal(len({place for place, _ in arrivals}), 1, f"consumers of {key}")


MESSAGES: dict[str, Scenario] = {
    "produce-consume": produce_consume,
    "batching": batching,
    **{
        f"compression-{kind.name.lower()}": partial(compression, kind)
        for kind in (
            pulsar.CompressionType.LZ4,
            pulsar.CompressionType.ZLib,
            pulsar.CompressionType.ZSTD,
            pulsar.CompressionType.SNAPPY,
        )
    },
    "chunking": chunking,
    "delayed": delayed,
    "non-persistent": non_persistent,
    "encryption": encryption,
    "batch-receive": batch_receive,
    "key-shared": key_shared,
}
