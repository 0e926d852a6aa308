"""Topics that move between three brokers again and again, while official clients produce and consume."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pulsar
import pytest

from tests.foreign.ownership_moves import NAMESPACE, move, set_up

from .admin import Admin
from .broker_process import is_pulsarium
from .conftest import Launch
from .deadline import eventually

MOVES = 100
TOPICS = [f"persistent://{NAMESPACE}/{name}" for name in ("one", "two", "three")]
KINDS = {
    "exclusive": pulsar.ConsumerType.Exclusive,
    "failover": pulsar.ConsumerType.Failover,
    "shared": pulsar.ConsumerType.Shared,
    "key-shared": pulsar.ConsumerType.KeyShared,
}
BETWEEN = 10  # messages with a receipt between two moves of a topic

pytestmark = pytest.mark.skipif(not is_pulsarium(), reason="needs three brokers in one process")


@dataclass
class Publisher:
    """A producer that sends numbers to a topic until `stop` is set. Some messages always wait for receipts."""

    producer: pulsar.Producer
    sent: int = 0
    receipts: Counter[str] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stop.is_set():
            content = b"%d" % self.sent
            self.producer.send_async(content, self._receipt, partition_key=str(self.sent % 10))
            self.sent += 1
            time.sleep(0.0005)
        self.producer.flush()

    def goes_on(self) -> None:
        """Wait until `BETWEEN` more messages have receipts."""
        wanted = self.receipts.total() + BETWEEN
        eventually(lambda: self.receipts.total() >= wanted or None, what="receipts after a move", seconds=30.0)

    def _receipt(self, result: pulsar.Result, message_id: Any) -> None:
        self.receipts[str(result)] += 1


@dataclass
class Reception:
    """A consumer that acknowledges each message at once, and keeps the numbers."""

    consumer: pulsar.Consumer
    contents: list[int] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                message = self.consumer.receive(timeout_millis=300)
            except pulsar.Timeout:
                continue
            self.contents.append(int(message.data()))
            self.consumer.acknowledge(message)


@contextmanager
def running(*threads: threading.Thread) -> Iterator[None]:
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def owner_of(admin: Admin, topic: str) -> str:
    return str(admin.call("GET", f"/lookup/v2/topic/{topic.replace('://', '/')}")["httpUrl"])


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_nothing_is_lost_or_doubled_through_a_hundred_moves(launch: Launch) -> None:
    brokers = launch("--brokers", "3")
    admin = set_up(brokers)
    chance = random.Random(7)
    client = pulsar.Client(brokers.address.service_url, io_threads=2, message_listener_threads=2)
    publishers, receptions = [], []
    for number, topic in enumerate(TOPICS):
        producer = client.create_producer(
            topic,
            producer_name=f"p{number}",
            max_pending_messages=200,
            block_if_queue_full=True,
            batching_enabled=number == 1,
        )
        publishers.append(Publisher(producer))
        receptions += [
            Reception(client.subscribe(topic, name, kind, initial_position=pulsar.InitialPosition.Earliest))
            for name, kind in KINDS.items()
        ]
    done = threading.Event()
    threads = [threading.Thread(target=each.run, daemon=True) for each in publishers]
    threads += [threading.Thread(target=each.run, args=(done,), daemon=True) for each in receptions]
    owners: set[str] = set()
    with running(*threads):
        for each in publishers:  # the C++ client uses sequence ids twice when it reconnects before its first receipt
            each.goes_on()
        for _ in range(MOVES):
            topic = chance.choice(TOPICS)
            sent = publishers[TOPICS.index(topic)]
            move(admin, topic, chance.choice([None, *brokers.addresses]))
            sent.goes_on()
            owners.add(owner_of(admin, topic))
        for each in publishers:
            each.stop.set()
        eventually(
            lambda: all(each.receipts.total() == each.sent for each in publishers) or None,
            what="all receipts",
            seconds=30.0,
        )
        wanted = [set(range(each.sent)) for each in publishers for _ in KINDS]
        received = list(zip(receptions, wanted, strict=True))
        try:
            eventually(
                lambda: all(set(each.contents) == numbers for each, numbers in received) or None,
                what="all messages",
                seconds=30.0,
            )
        finally:
            done.set()
    assert len(owners) == 3
    for number, topic in enumerate(TOPICS):
        sent = publishers[number]
        assert sent.receipts == {"Result.Ok": sent.sent}
        assert stored_in(client, topic) == list(range(sent.sent)), "the topic holds each message once, in order"
    client.close()


def stored_in(client: pulsar.Client, topic: str) -> list[int]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    contents = []
    while reader.has_message_available():
        contents.append(int(reader.read_next(timeout_millis=30_000).data()))
    reader.close()
    return contents


@pytest.mark.req("B-49")
def test_a_client_that_starts_anywhere_finds_its_topic(launch: Launch) -> None:
    brokers = launch("--brokers", "3")
    admin = set_up(brokers)
    move(admin, TOPICS[0], brokers.addresses[2])
    for address in brokers.addresses:
        client = pulsar.Client(address.service_url)
        client.create_producer(TOPICS[0]).send(b"x")
        over_http = pulsar.Client(address.admin_url)
        over_http.create_producer(TOPICS[0]).send(b"y")
        client.close()
        over_http.close()
    assert owner_of(admin, TOPICS[0]) == f"http://127.0.0.1:{brokers.addresses[2].http_port}"
    assert admin.stats(TOPICS[0])["msgInCounter"] == 6  # the first broker gets the request, and the third one answers
