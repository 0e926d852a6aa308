"""Support for the scenarios of the official Python client."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pulsar

from pulsarium.matrix.python.lines import PATIENCE, QUIET, Failure, Lines, that

EARLIEST = pulsar.InitialPosition.Earliest
Shared, Failover, KeyShared = pulsar.ConsumerType.Shared, pulsar.ConsumerType.Failover, pulsar.ConsumerType.KeyShared
MILLISECONDS = int(PATIENCE * 1000)


@contextmanager
def client(cell: Lines, url: str | None = None, **options: Any) -> Iterator[Any]:
    """Yield a new client, and close it at the end."""
    found = pulsar.Client(
        cell.service_url if url is None else url,
        operation_timeout_seconds=10,
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/stderr"),
        **options,
    )
    try:
        yield found
    finally:
        # Closing may raise again after a producer was refused for good.
        with suppress(pulsar.AlreadyClosed):
            found.close()


def single(connection: Any, topic: str, **options: Any) -> Any:
    """Return a producer that sends each message in an entry of its own."""
    return connection.create_producer(topic, batching_enabled=False, **options)


def subscribe(connection: Any, topic: Any, **options: Any) -> Any:
    return connection.subscribe(topic, "s", **{"initial_position": EARLIEST, **options})


def send(producer: Any, payloads: Sequence[str], **options: Any) -> list[Any]:
    """Publish without waiting for each message, and return the ids in order."""
    results: queue.Queue[tuple[Any, Any]] = queue.Queue()
    for payload in payloads:
        producer.send_async(payload.encode(), lambda *result: results.put(result), **options)
    producer.flush()
    found = [results.get(timeout=PATIENCE) for _ in payloads]
    that(all(result == pulsar.Result.Ok for result, _ in found), f"refused: {[str(result) for result, _ in found]}")
    return [message_id for _, message_id in found]


def receive(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        try:
            found.append(consumer.receive(MILLISECONDS))
        except pulsar.Timeout:
            raise Failure(f"only {len(found)} of {count} messages arrived") from None
    return found


def text(message: Any) -> str:
    return str(message.data().decode())


def consume(consumer: Any, count: int) -> list[str]:
    """Return the texts of the next messages after acknowledging each."""
    found = receive(consumer, count)
    for message in found:
        consumer.acknowledge(message)
    return [text(message) for message in found]


def nothing_more(consumer: Any) -> None:
    try:
        message = consumer.receive(int(QUIET * 1000))
    except pulsar.Timeout:
        return
    raise Failure(f"an unexpected message arrived: {text(message)!r:.60}")


def refused(error: Any, call: Any) -> None:
    try:
        call()
    except error:
        return
    raise Failure(f"not refused with {error.__name__ if isinstance(error, type) else error}")
