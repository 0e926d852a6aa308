"""Scenarios of acknowledgement and redelivery."""

from __future__ import annotations

import pulsar

from pulsarium.matrix.python.lines import Lines, equal, texts
from pulsarium.matrix.python.official.messages import batches
from pulsarium.matrix.python.official.support import (
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


def shared_nack(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic, consumer_type=Shared, negative_ack_redelivery_delay_ms=100)
        send(single(ours, cell.topic), texts(0, 10))
        for message in receive(consumer, 10):
            (consumer.negative_acknowledge if text(message) == "a0004" else consumer.acknowledge)(message)
        equal(consume(consumer, 1), ["a0004"])
        nothing_more(consumer)


def redelivery_count(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic, consumer_type=Shared, negative_ack_redelivery_delay_ms=100)
        send(single(ours, cell.topic), ["again"])
        counts = []
        for _ in range(3):
            (message,) = receive(consumer, 1)
            counts.append(message.redelivery_count())
            consumer.negative_acknowledge(message)
        equal(counts, [0, 1, 2])


def ack_timeout(cell: Lines) -> None:
    """Receive a message again after the acknowledgement timeout, whose least value in this client is 10 s."""
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic, consumer_type=Shared, unacked_messages_timeout_ms=10_001)
        send(single(ours, cell.topic), ["again"])
        receive(consumer, 1)
        message = consumer.receive(40_000)
        equal(text(message), "again")
        consumer.acknowledge(message)


def cumulative_ack(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        send(single(ours, cell.topic), texts(0, 10))
        consumer.acknowledge_cumulative(receive(consumer, 6)[-1])
        consumer.close()
        again = subscribe(ours, cell.topic)
        equal(consume(again, 4), texts(6, 10))
        nothing_more(again)


def batch_index_ack(cell: Lines) -> None:
    with client(cell) as ours:
        options = {"consumer_type": Shared, "batch_index_ack_enabled": True}
        consumer = subscribe(ours, cell.topic, **options)
        send(batches(ours, cell.topic), texts(0, 10))
        for message in receive(consumer, 10)[::2]:
            consumer.acknowledge(message)
        consumer.close()
        again = subscribe(ours, cell.topic, **options)
        equal(consume(again, 5), texts(0, 10)[1::2])
        nothing_more(again)


def dead_letter(cell: Lines) -> None:
    with client(cell) as ours:
        letters = subscribe(ours, f"{cell.topic}-s-DLQ")
        consumer = subscribe(
            ours,
            cell.topic,
            consumer_type=Shared,
            negative_ack_redelivery_delay_ms=100,
            dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(2),
        )
        send(single(ours, cell.topic), ["dead"])
        for _ in range(3):
            consumer.negative_acknowledge(receive(consumer, 1)[0])
        # The client moves the message to the dead letter topic at one delivery too many, while `receive` runs.
        nothing_more(consumer)
        equal(consume(letters, 1), ["dead"])


def unsubscribe(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        send(single(ours, cell.topic), texts(0, 5))
        equal(consume(consumer, 5), texts(0, 5))
        consumer.unsubscribe()
        equal(consume(subscribe(ours, cell.topic), 5), texts(0, 5))


ACKNOWLEDGING = {
    "shared-nack": shared_nack,
    "redelivery-count": redelivery_count,
    "ack-timeout": ack_timeout,
    "cumulative-ack": cumulative_ack,
    "batch-index-ack": batch_index_ack,
    "dead-letter": dead_letter,
    "unsubscribe": unsubscribe,
}
