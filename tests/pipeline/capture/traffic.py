"""Traffic of an application with the official Python client: everyday commands, and a few refused ones."""

from __future__ import annotations

import contextlib
from uuid import uuid4

import pulsar

QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


def everyday(url: str, messages: int = 50) -> None:
    """Produce with and without batches, consume on each subscription type, seek, read, and get two refusals."""
    client = pulsar.Client(url, operation_timeout_seconds=30, logger=QUIET)
    topic = f"persistent://public/default/capture-{uuid4().hex[:8]}"
    types = {
        "exclusive": pulsar.ConsumerType.Exclusive,
        "shared": pulsar.ConsumerType.Shared,
        "failover": pulsar.ConsumerType.Failover,
        "key-shared": pulsar.ConsumerType.KeyShared,
    }
    consumers = {
        name: client.subscribe(topic, name, consumer_type=kind, negative_ack_redelivery_delay_ms=100)
        for name, kind in types.items()
    }
    batched = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=5)
    plain = client.create_producer(topic, batching_enabled=False, chunking_enabled=True)
    for number in range(messages):
        batched.send_async(b"batched %d" % number, lambda result, message_id: None, partition_key=str(number % 7))
    batched.flush()
    for number in range(messages // 5):
        plain.send(b"plain %d" % number, properties={"n": str(number)})
    for name, consumer in consumers.items():
        for number in range(messages + messages // 5):
            message = consumer.receive(30_000)
            if name == "shared" and number == 3:
                consumer.negative_acknowledge(message)
                message = consumer.receive(30_000)
            if name == "exclusive" and number % 10 == 9:
                consumer.acknowledge_cumulative(message)
            elif name != "exclusive":
                consumer.acknowledge(message)
    consumers["failover"].seek(pulsar.MessageId.earliest)
    consumers["failover"].receive(30_000)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    while reader.has_message_available():
        reader.read_next(10_000)
    with contextlib.suppress(pulsar.PulsarException):
        client.subscribe(topic, "exclusive")
    with contextlib.suppress(pulsar.PulsarException):
        client.create_producer("persistent://no-tenant/none/topic")
    consumers["key-shared"].unsubscribe()
    client.close()
