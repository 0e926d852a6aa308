"""Programs on the official Python client (whose core is the C++ client), written as an application would be."""

from __future__ import annotations

from typing import Any

import pulsar

from yardsticks.bench.work import Done, Timed, Work, one_by_one

SUBSCRIPTION = "bench"


def client(work: Work) -> Any:
    return pulsar.Client(work.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def producer(of: Any, work: Work, *, batched: bool) -> Any:
    """Return a producer with the client's defaults: 1000 messages in flight, batches of up to 128 KiB or 10 ms."""
    return of.create_producer(work.topic, batching_enabled=batched, block_if_queue_full=True)


def send_all(through: Any, work: Work) -> None:
    """Send `count` messages without waiting for each, then wait for all.

    Raise `RuntimeError` when the last message was not stored. Callbacks are not used, because in Python they cost the
    client twice the sending, and the client would be the limit.
    """
    payload = b"x" * work.size
    for _ in range(work.count):
        through.send_async(payload, None)
    through.flush()
    if through.last_sequence_id() != work.count - 1:
        raise RuntimeError(f"the last stored message is {through.last_sequence_id()} of {work.count}")


def publish(work: Work, *, batched: bool) -> Timed:
    through = producer(client(work), work, batched=batched)

    def timed() -> Done:
        send_all(through, work)
        return Done(work.count)

    return timed


def consume(work: Work, *, kind: str, batched: bool) -> Timed:
    """Receive a backlog of `count` messages, and acknowledge each.

    Closing the consumer sends the last acknowledgements.
    """
    connected = client(work)
    chosen = {"consumer_type": getattr(pulsar.ConsumerType, kind)}
    connected.subscribe(work.topic, SUBSCRIPTION, **chosen).close()
    filling = producer(connected, work, batched=batched)
    send_all(filling, work)
    filling.close()

    def timed() -> Done:
        consumer = connected.subscribe(work.topic, SUBSCRIPTION, **chosen)
        for _ in range(work.count):
            consumer.acknowledge(consumer.receive(timeout_millis=20_000))
        consumer.close()
        return Done(work.count)

    return timed


def send_and_wait(work: Work) -> Timed:
    through = producer(client(work), work, batched=False)
    payload = b"x" * work.size
    return lambda: one_by_one(work.count, lambda: through.send(payload))


def last_message_id(work: Work) -> Timed:
    connected = client(work)
    consumer = connected.subscribe(work.topic, SUBSCRIPTION)
    producer(connected, work, batched=False).send(b"x" * work.size)
    return lambda: one_by_one(work.count, consumer.get_last_message_id)
