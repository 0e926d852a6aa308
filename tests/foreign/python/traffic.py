"""Publishing and receiving with the Python client, and checks of the messages that arrived."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pulsar

Position: TypeAlias = tuple[int, int, int, int]

QUIET_MS = 300
"""Milliseconds without a message after which a test decides that no more messages come."""

SECONDS = 120.0
"""Limit, in seconds, of a step that should take a second."""


def position(message_id: Any) -> Position:
    """Return (ledger, entry, partition, batch index) of a message id."""
    return message_id.ledger_id(), message_id.entry_id(), message_id.partition(), message_id.batch_index()


def payloads(count: int, start: int = 0) -> list[bytes]:
    """Return different messages of about 200 bytes that compress well."""
    return [b"%06d " % number + b"pulsarium " * 19 for number in range(start, start + count)]


def number_of(payload: bytes) -> int:
    return int(payload[:6])


class Outbox:
    """A producer's sends that do not wait for receipts. `wait` returns the message ids in the order of sending."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self._sent = 0
        self._ids: dict[int, Any] = {}
        self._failed: list[Any] = []
        self._changed = threading.Condition()

    def send(self, payload: bytes | None, **options: Any) -> None:
        number = self._sent
        self._sent += 1

        def receipt(result: Any, message_id: Any) -> None:
            with self._changed:
                if result == pulsar.Result.Ok:
                    self._ids[number] = message_id
                else:
                    self._failed.append(result)
                self._changed.notify_all()

        self._producer.send_async(payload, receipt, **options)

    @property
    def receipts(self) -> int:
        with self._changed:
            return len(self._ids)

    def wait_for(self, receipts: int, seconds: float = SECONDS) -> None:
        with self._changed:
            enough = self._changed.wait_for(lambda: self._failed or len(self._ids) >= receipts, seconds)
            assert not self._failed, f"sends failed: {self._failed[:5]}"
            assert enough, f"{len(self._ids)} of {receipts} receipts in {seconds:g} s"

    def wait(self, seconds: float = SECONDS) -> list[Any]:
        self._producer.flush()
        self.wait_for(self._sent, seconds)
        return [self._ids[number] for number in range(self._sent)]


def send_all(producer: Any, messages: Iterable[bytes], **options: Any) -> list[Any]:
    """Publish all messages, each with `options`, and return their ids in the same order."""
    outbox = Outbox(producer)
    for message in messages:
        outbox.send(message, **options)
    return outbox.wait()


def receive(consumer: Any, count: int, seconds: float = SECONDS) -> list[Any]:
    """Receive the next `count` messages, and do not acknowledge them."""
    end = time.monotonic() + seconds
    messages: list[Any] = []
    while len(messages) < count:
        left = max(1, int((end - time.monotonic()) * 1000))
        try:
            messages.append(consumer.receive(timeout_millis=left))
        except pulsar.Timeout:
            raise AssertionError(f"{len(messages)} of {count} messages in {seconds:g} s") from None
    return messages


def receive_among(consumers: Sequence[Any], count: int, seconds: float = SECONDS) -> list[list[Any]]:
    """Return the next `count` messages, not acknowledged, in a list for each consumer."""
    end = time.monotonic() + seconds
    shares: list[list[Any]] = [[] for _ in consumers]
    while (got := sum(map(len, shares))) < count:
        assert time.monotonic() < end, f"{got} of {count} messages in {seconds:g} s"
        for consumer, share in zip(consumers, shares, strict=True):
            with contextlib.suppress(pulsar.Timeout):
                while True:
                    share.append(consumer.receive(timeout_millis=20))
    return shares


def consume(consumer: Any, count: int, seconds: float = SECONDS) -> list[bytes]:
    """Receive and acknowledge the next `count` messages, and return their payloads."""
    messages = receive(consumer, count, seconds)
    for message in messages:
        consumer.acknowledge(message)
    return [message.data() for message in messages]


def assert_nothing_more(consumer: Any, milliseconds: int = QUIET_MS) -> None:
    try:
        message = consumer.receive(timeout_millis=milliseconds)
    except pulsar.Timeout:
        return
    raise AssertionError(f"one too many: {message.data()[:40]!r} {position(message.message_id())}")


@dataclass
class Arrival:
    """A message as a consumer received it."""

    consumer: int
    topic: str
    payload: bytes
    position: Position


@dataclass
class Crowd:
    """Consumers that receive and acknowledge, a thread each, until `expected` messages came and none follows."""

    consumers: Sequence[Any]
    expected: int
    arrivals: list[Arrival] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _failures: list[BaseException] = field(default_factory=list)

    def start(self) -> None:
        for place in range(len(self.consumers)):
            thread = threading.Thread(target=self._run, args=(place,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, place: int) -> None:
        try:
            self._receive(place, self.consumers[place], time.monotonic() + SECONDS)
        except BaseException as failure:
            self._failures.append(failure)

    def _receive(self, place: int, consumer: Any, end: float) -> None:
        while True:
            try:
                message = consumer.receive(timeout_millis=QUIET_MS)
            except pulsar.Timeout:
                if len(self.arrivals) >= self.expected or time.monotonic() > end:
                    return
                continue
            consumer.acknowledge(message)
            where = position(message.message_id())
            self.arrivals.append(Arrival(place, message.topic_name(), message.data(), where))

    def join(self) -> list[Arrival]:
        for thread in self._threads:
            thread.join(2 * SECONDS)
            assert not thread.is_alive(), "a consumer hangs"
        if self._failures:
            raise self._failures[0]
        return self.arrivals


def assert_all_once(arrivals: Sequence[Arrival], sent: Sequence[bytes]) -> None:
    """Assert that no message is lost, duplicated or changed."""
    numbers = [number_of(arrival.payload) for arrival in arrivals]
    missing = set(map(number_of, sent)) - set(numbers)
    assert not missing, f"{len(missing)} lost, first {sorted(missing)[:5]}"
    assert len(numbers) == len(sent), f"{len(numbers) - len(sent)} doubled or never sent"
    assert sorted(arrival.payload for arrival in arrivals) == sorted(sent)


def assert_in_order(arrivals: Sequence[Arrival]) -> None:
    """Assert that the messages of each partition arrived in the order of sending, and at one consumer."""
    partitions: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        partitions[arrival.topic].append(arrival)
    for name, group in partitions.items():
        numbers = [number_of(arrival.payload) for arrival in group]
        assert numbers == sorted(numbers), f"out of order in {name}"
        assert len({arrival.consumer for arrival in group}) == 1, f"{name} went to several consumers"
