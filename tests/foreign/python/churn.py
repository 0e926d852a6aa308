"""Key_Shared consumers that come and go while messages flow, and a log of what they saw."""

from __future__ import annotations

import random
import threading
from typing import Any

import pulsar

from ..deadline import eventually
from ..key_order import Event, What
from .traffic import SECONDS, Outbox, number_of, payloads

START, MOST = 4, 7
"""Number of consumers at the beginning, and at most. One consumer always stays."""

QUEUE = 50
"""Queue size of each consumer. A small queue leaves work to others, and few messages when its consumer leaves."""

BEHIND = 200
"""Number of messages that consumers may be behind the producer, so that both are always busy."""


class Member:
    """A consumer in its own thread, which acknowledges in order, up to `behind` messages late."""

    def __init__(self, consumer: Any, name: str, events: list[Event], behind: int) -> None:
        self._consumer, self._name, self._events, self._behind = consumer, name, events, behind
        self._held: list[Any] = []
        self._leave = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._leave.is_set():
                self._receive()
        except BaseException as failure:
            self.failure = failure

    def _receive(self) -> None:
        try:
            message = self._consumer.receive(timeout_millis=20)
        except pulsar.Timeout:
            self._acknowledge_all_but(0)
            return
        self._note("received", message)
        self._held.append(message)
        self._acknowledge_all_but(self._behind)

    def _acknowledge_all_but(self, kept: int) -> None:
        while len(self._held) > kept:
            message = self._held.pop(0)
            self._note("acknowledged", message)
            self._consumer.acknowledge(message)

    def _note(self, what: What, message: Any) -> None:
        self._events.append(Event(self._name, what, message.partition_key(), number_of(message.data())))

    def leave(self) -> None:
        """Stop and close the consumer. The broker redelivers its unacknowledged messages to others."""
        self._leave.set()
        self._thread.join(SECONDS)
        if self.failure is not None:
            raise self.failure
        self._events.append(Event(self._name, "left"))
        self._consumer.close()


class Churn:
    """Consumers of the subscription `churn` of `topic`. `seed` decides which of them join and leave, and when."""

    def __init__(self, client: Any, topic: str, seed: int) -> None:
        self.events: list[Event] = []
        self._client, self._topic = client, topic
        self._random = random.Random(seed)
        self._members: list[Member] = []
        self._joined = 0
        for _ in range(START):
            self._join()

    def _join(self) -> None:
        name = f"c{self._joined}"
        self._joined += 1
        consumer = self._client.subscribe(
            self._topic,
            "churn",
            pulsar.ConsumerType.KeyShared,
            consumer_name=name,
            receiver_queue_size=QUEUE,
            initial_position=pulsar.InitialPosition.Earliest,
        )
        self._members.append(Member(consumer, name, self.events, self._random.randrange(0, 5)))

    def _step(self) -> None:
        """Add or remove one consumer."""
        joins = len(self._members) == 1 or (len(self._members) < MOST and self._random.random() < 0.5)
        if joins:
            self._join()
        else:
            self._members.pop(self._random.randrange(len(self._members))).leave()

    def run(self, producer: Any, messages: int, keys: int, steps: int) -> None:
        """Publish `messages` of `keys` keys, with `steps` joins and leaves between, and wait until all are received."""
        outbox = Outbox(producer)
        sizes = [messages // steps + (step < messages % steps) for step in range(steps)]
        sent = 0
        for size in sizes:
            for payload in payloads(size, sent):
                outbox.send(payload, partition_key=f"key-{self._random.randrange(keys)}")
            sent += size
            producer.flush()
            self._await_received(sent - BEHIND)
            self._step()
        outbox.wait()
        self._await_received(messages)

    def close(self) -> None:
        while self._members:
            self._members.pop().leave()

    def _await_received(self, count: int) -> None:
        eventually(lambda: self._received() >= count, what=f"{count} messages at the consumers", seconds=SECONDS)

    def _received(self) -> int:
        for member in self._members:
            if member.failure is not None:
                raise member.failure
        return len({event.number for event in self.events.copy() if event.what == "received"})
