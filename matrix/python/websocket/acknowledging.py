"""Scenarios of acknowledgement and redelivery."""

from __future__ import annotations

from pulsarium.matrix.python.lines import Lines, equal, texts
from pulsarium.matrix.python.websocket.support import (
    acknowledge,
    consume,
    nack,
    nothing_more,
    receive,
    say,
    send,
    sockets,
    text,
)


def shared_nack(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic, subscriptionType="Shared", negativeAckRedeliveryDelay=100)
        send(ours.producer(cell.topic), texts(0, 10))
        for message in receive(consumer, 10):
            (nack if text(message) == "a0004" else acknowledge)(consumer, message)
        equal(consume(consumer, 1), ["a0004"])
        nothing_more(consumer)


def redelivery_count(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic, subscriptionType="Shared", negativeAckRedeliveryDelay=100)
        send(ours.producer(cell.topic), ["again"])
        counts = []
        for _ in range(3):
            (message,) = receive(consumer, 1)
            counts.append(message["redeliveryCount"])
            nack(consumer, message)
        equal(counts, [0, 1, 2])


def ack_timeout(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic, subscriptionType="Shared", ackTimeoutMillis=1000)
        send(ours.producer(cell.topic), ["again"])
        receive(consumer, 1)
        equal(consume(consumer, 1), ["again"])


def dead_letter(cell: Lines) -> None:
    with sockets(cell) as ours:
        letters = ours.consumer(f"{cell.topic}-s-DLQ")
        consumer = ours.consumer(
            cell.topic, subscriptionType="Shared", negativeAckRedeliveryDelay=100, maxRedeliverCount=2
        )
        send(ours.producer(cell.topic), ["dead"])
        for _ in range(3):
            nack(consumer, receive(consumer, 1)[0])
        equal(consume(letters, 1), ["dead"])
        nothing_more(consumer)


def unsubscribe(cell: Lines) -> None:
    with sockets(cell) as ours:
        consumer = ours.consumer(cell.topic)
        send(ours.producer(cell.topic), texts(0, 5))
        equal(consume(consumer, 5), texts(0, 5))
        say(consumer, type="unsubscribe")
        consumer.close()
        equal(consume(ours.consumer(cell.topic), 5), texts(0, 5))


ACKNOWLEDGING = {
    "shared-nack": shared_nack,
    "redelivery-count": redelivery_count,
    "ack-timeout": ack_timeout,
    "dead-letter": dead_letter,
    "unsubscribe": unsubscribe,
}
