"""State that survives when a broker is killed and started again: parts of batches, delays and sequence ids.

The tests share one restart. A real broker writes cursors once a minute, so the tests stop the real broker instead.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

import pulsar
import pytest

from tests.foreign.java_client import java_program
from yardsticks.servers import free_port

from .admin import Admin
from .broker_process import ADDRESS, COMMAND, BrokerProcess, given_address
from .deadline import eventually
from .lines import LineProgram
from .pairwise import pairwise
from .python.traffic import assert_nothing_more, consume, receive
from .toolchains import JAVA, require

CLIENTS = ("python", "java")
KINDS = {"Exclusive": pulsar.ConsumerType.Exclusive, "Shared": pulsar.ConsumerType.Shared}
MESSAGES = 30
NAMESPACE = "public/kept"
DELAY = timedelta(seconds=6)


def texts(numbers: Iterable[int]) -> list[str]:
    return [f"{number:04}" for number in numbers]


def goes(number: int) -> bool:
    """Return whether the message is acknowledged: every third message, and the second of three batches."""
    return number % 3 == 0 or number // 10 == 1


def topic(*words: str) -> str:
    return f"persistent://{NAMESPACE}/{'-'.join(words)}"


class Client(Protocol):
    """A client's steps around the restart. Each consumer starts at the earliest message."""

    def publish(self, name: str) -> None:
        """Publish MESSAGES messages, ten in a batch."""

    def acknowledge(self, name: str, kind: str, opted: bool) -> None:
        """Receive all messages and acknowledge those that go. `opted` enables acknowledgement of batch indexes."""

    def rest(self, name: str, kind: str, wanted: list[str]) -> None:
        """Receive the `wanted` messages, in this order, and no others."""


class Python:
    def __init__(self, broker: BrokerProcess) -> None:
        self.client = pulsar.Client(broker.address.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))

    def subscribe(self, name: str, kind: str, opted: bool = True) -> Any:
        earliest = pulsar.InitialPosition.Earliest
        return self.client.subscribe(name, "s", KINDS[kind], initial_position=earliest, batch_index_ack_enabled=opted)

    def publish(self, name: str) -> None:
        producer = self.client.create_producer(
            name, batching_enabled=True, batching_max_messages=10, batching_max_publish_delay_ms=60_000
        )
        for text in texts(range(MESSAGES)):
            producer.send_async(text.encode(), None)
        producer.flush()

    def acknowledge(self, name: str, kind: str, opted: bool) -> None:
        consumer = self.subscribe(name, kind, opted)
        for message in receive(consumer, MESSAGES):
            if goes(int(message.data())):
                consumer.acknowledge(message)
        consumer.close()

    def rest(self, name: str, kind: str, wanted: list[str]) -> None:
        consumer = self.subscribe(name, kind)
        messages = receive(consumer, len(wanted))
        assert [message.data().decode() for message in messages] == wanted
        assert_nothing_more(consumer)


class Java:
    """The steps of the Java client, which are in java/BatchIndex.java."""

    def __init__(self, program: LineProgram) -> None:
        self._program = program

    def publish(self, name: str) -> None:
        self._program.run("batches-publish", topic=name, messages=MESSAGES)

    def acknowledge(self, name: str, kind: str, opted: bool) -> None:
        self._program.run("batches-acknowledge", topic=name, subscription=kind, opted=opted, messages=MESSAGES)

    def rest(self, name: str, kind: str, wanted: list[str]) -> None:
        self._program.run("batches-rest", topic=name, subscription=kind, wanted=wanted)


Clients: TypeAlias = dict[str, Client]
COMBINATIONS = list(itertools.product(CLIENTS, CLIENTS, KINDS))
"""Combinations of publishing client, consuming client and subscription type (S54-23)."""
EVERYDAY = pairwise(CLIENTS, CLIENTS, tuple(KINDS))


class Delayed:
    """A delayed message, a plain one behind it, and the times of their arrivals after the restart."""

    def __init__(self, client: Any) -> None:
        client.subscribe(topic("delayed"), "s", pulsar.ConsumerType.Shared).close()
        producer = client.create_producer(topic("delayed"))
        self.due = time.monotonic() + DELAY.total_seconds()
        producer.send(b"delayed", deliver_after=DELAY)
        producer.send(b"plain")
        self.arrivals: dict[bytes, float] = {}

    def subscribe(self, client: Any) -> None:
        """Subscribe right after the restart, so that the delay passes during other tests."""

        def arrived(consumer: Any, message: Any) -> None:
            self.arrivals[message.data()] = time.monotonic()

        client.subscribe(topic("delayed"), "s", pulsar.ConsumerType.Shared, message_listener=arrived)


@dataclass
class Kept:
    """New clients of the broker after the restart, and the arrivals of the delayed messages."""

    clients: Clients
    python: Any
    delayed: Delayed


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """Prepare all topics, restart the broker, and yield new clients."""
    if given_address() is not None:
        pytest.skip(f"needs brokers of its own: {COMMAND} can start them, {ADDRESS} cannot")
    require(JAVA)  # a skip after this would leave a broker behind
    folder = tmp_path_factory.mktemp("kept")
    broker = BrokerProcess(folder, ["--data", str(folder / "data")], free_port(), free_port())
    java = java_program(broker.address, folder)
    try:
        python = Python(broker)
        clients: Clients = {"python": python, "java": Java(java)}
        admin = Admin(broker.address.admin_url)
        admin.create_namespace(NAMESPACE)
        prepare_batches(clients, admin)
        prepare_sequence_ids(python.client, admin)
        delayed = Delayed(python.client)
        java.close()
        python.client.close()
        if os.environ.get(COMMAND):
            broker.stop(60)
        else:
            admin.keep_acknowledgements()
            broker.kill()
        broker = BrokerProcess(folder, ["--data", str(folder / "data")], broker.address.port, broker.address.http_port)
        python = Python(broker)
        delayed.subscribe(python.client)
        yield Kept({"python": python, "java": Java(java)}, python.client, delayed)
        python.client.close()
    finally:
        java.close()
        if broker.running:
            broker.stop(60)


def prepare_batches(clients: Clients, admin: Admin) -> None:
    for publisher, consumer, kind in COMBINATIONS:
        clients[publisher].publish(topic(publisher, consumer, kind))
        clients[consumer].acknowledge(topic(publisher, consumer, kind), kind, opted=True)
    for consumer in CLIENTS:
        clients["python"].publish(topic("whole", consumer))
        clients[consumer].acknowledge(topic("whole", consumer), "Shared", opted=False)
    for publisher, consumer, kind in COMBINATIONS:
        name = topic(publisher, consumer, kind)
        # A partly acknowledged batch counts with all of its messages (B-17).
        eventually(lambda: admin.backlog(name, "s") <= 20, what=f"the acknowledgements of {name}")  # noqa: B023


@pytest.mark.req("S54-19", "S54-23")
@pytest.mark.parametrize(
    ("publisher", "consumer", "kind"),
    [
        pytest.param(*each, id="-".join(each), marks=[pytest.mark.heavy] * (each not in EVERYDAY))
        for each in COMBINATIONS
    ],
)
def test_parts_of_batches(kept: Kept, publisher: str, consumer: str, kind: str) -> None:
    if os.environ.get(COMMAND):
        pytest.skip("Pulsar 4.2.4 forgets parts of batches when it unloads a topic or stops")
    left = [number for number in range(MESSAGES) if not goes(number)]
    kept.clients[consumer].rest(topic(publisher, consumer, kind), kind, texts(left))


@pytest.mark.req("S54-23")
@pytest.mark.parametrize("consumer", CLIENTS)
def test_without_opting_in_only_whole_batches(kept: Kept, consumer: str) -> None:
    left = [number for number in range(MESSAGES) if number // 10 != 1]
    kept.clients[consumer].rest(topic("whole", consumer), "Shared", texts(left))


def prepare_sequence_ids(client: Any, admin: Admin) -> None:
    admin.create_namespace("public/once")
    admin.call("POST", "/admin/v2/namespaces/public/once/deduplication", True)
    client.subscribe("persistent://public/once/t", "s").close()
    producer = client.create_producer("persistent://public/once/t", "p")
    for number in range(10):
        producer.send(b"%d" % number)


@pytest.mark.req("B-27")
def test_deduplication_outlives_a_restart(kept: Kept) -> None:
    producer = kept.python.create_producer("persistent://public/once/t", "p")
    assert producer.last_sequence_id() == 9
    for number in range(5, 15):
        producer.send(b"%d" % number, sequence_id=number)
    consumer = kept.python.subscribe("persistent://public/once/t", "s")
    assert consume(consumer, 15) == [b"%d" % number for number in range(15)]
    assert_nothing_more(consumer)


@pytest.mark.req("B-21")
def test_a_delayed_message_arrives_when_due_after_a_restart(kept: Kept) -> None:
    arrivals = kept.delayed.arrivals
    eventually(lambda: len(arrivals) == 2, what="the delayed message and the plain one")
    # A message may be a tick early. The 0.02 s are the time between the producer's clock and this one.
    assert arrivals[b"delayed"] >= kept.delayed.due - 1.02
