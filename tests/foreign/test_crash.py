"""Crashes by kill -9: all that the broker confirmed is there after a restart, once and in order. Crashes of a proxy."""

from __future__ import annotations

import random
import threading
import uuid
from pathlib import Path
from typing import Any

import pulsar
import pytest

from yardsticks.servers import free_port

from .admin import Admin
from .broker_process import PULSARIUM, Address, BrokerProcess
from .conftest import Launch
from .deadline import eventually
from .python.traffic import (
    SECONDS,
    Outbox,
    Position,
    assert_nothing_more,
    number_of,
    payloads,
    position,
    receive,
    send_all,
)
from .raw import RawConsumer

TOPIC = "persistent://public/default/t"
HEAVY_ROUNDS = 4
SETTLED_MS = 1100
"""Time in milliseconds after which a crash loses no acknowledgement, because the broker has saved them all."""


class Round:
    """A run of a crash test. The name is the seed of all random choices."""

    def __init__(self, durability: str, number: int) -> None:
        self.durability = durability
        self.name = f"{durability}-{number}"
        self.batched = (number + (durability == "fsync")) % 2 == 1
        self.random = random.Random(self.name)

    def options(self, data: str) -> tuple[str, ...]:
        return "--data", data, "--durability", self.durability


rounds = pytest.mark.parametrize(
    "crash",
    [
        pytest.param(Round(durability, number), id=f"{durability}-{number}", marks=[pytest.mark.heavy] * (number > 0))
        for durability in ("os", "fsync")
        for number in range(HEAVY_ROUNDS)
    ],
)


def start(launch: Launch, crash: Round, data: str, before: BrokerProcess | None = None) -> BrokerProcess:
    ports = (before.address.port, before.address.http_port) if before else (0, 0)
    return launch(*crash.options(data), port=ports[0], http_port=ports[1])


@rounds
def test_no_message_with_a_receipt_is_lost(launch: Launch, data: str, crash: Round) -> None:
    broker = start(launch, crash, data)
    client = pulsar.Client(broker.address.service_url)
    # Without a subscription, the broker may delete closed ledgers.
    client.subscribe(TOPIC, "keeps").close()
    producer = client.create_producer(
        TOPIC,
        batching_enabled=crash.batched,
        max_pending_messages=500,
        block_if_queue_full=True,
        send_timeout_millis=120_000,
    )
    with Publishing(producer) as publishing:
        publishing.outbox.wait_for(crash.random.randrange(1, 8000))
        broker.kill()
        confirmed = publishing.outbox.receipts
        broker = start(launch, crash, data, broker)
        # The producer sends messages without a receipt again, then new ones.
        publishing.outbox.wait_for(confirmed + 1000)
    ids = publishing.outbox.wait()
    client.close()

    stored = read_all(broker)
    assert_stored_where_the_receipts_say(stored, ids, confirmed)
    assert_one_run_then_what_was_sent_again([number for _, number in stored], confirmed, len(ids))
    broker.stop()


class Publishing:
    """A thread that publishes until its context ends."""

    def __init__(self, producer: Any) -> None:
        self.outbox = Outbox(producer)
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        number = 0
        while not self._leave.is_set():
            self.outbox.send(payloads(1, number)[0])
            number += 1

    def __enter__(self) -> Publishing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        self._thread.join(SECONDS)


def read_all(broker: BrokerProcess) -> list[tuple[Position, int]]:
    """Return every message of the topic as (position, number), in order."""
    client = pulsar.Client(broker.address.service_url)
    reader = client.create_reader(TOPIC, pulsar.MessageId.earliest)
    stored = []
    while reader.has_message_available():
        message = reader.read_next(timeout_millis=30_000)
        stored.append((position(message.message_id()), number_of(message.data())))
    client.close()
    return stored


def assert_stored_where_the_receipts_say(stored: list[tuple[Position, int]], ids: list[Any], confirmed: int) -> None:
    """Assert that each message is at the position of its receipt."""
    places = dict(stored)
    wrong = [number for number, message_id in enumerate(ids) if places.get(position(message_id)) != number]
    if wrong:
        at = [place for place, number in stored if number == wrong[0]]
        raise AssertionError(
            f"{len(wrong)} of {len(ids)} messages ({confirmed} confirmed before the crash) are elsewhere: {wrong[0]} "
            f"to {wrong[-1]}; the first has a receipt for {position(ids[wrong[0]])} and is stored at {at or 'no place'}"
        )


def assert_one_run_then_what_was_sent_again(numbers: list[int], confirmed: int, sent: int) -> None:
    """Assert that only messages without a receipt are stored twice.

    The numbers rise from 0 up to the crash, then again from the first message that the producer sent again.
    """
    crash = next((place for place in range(1, len(numbers)) if numbers[place] != numbers[place - 1] + 1), len(numbers))
    again = numbers[crash] if crash < len(numbers) else crash
    assert numbers[:crash] == list(range(crash)), "the messages before the crash"
    assert numbers[crash:] == list(range(again, sent)), "the messages after the crash"
    assert confirmed <= again <= crash, f"receipts up to {confirmed}, stored up to {crash}, re-sent from {again}"


@rounds
def test_no_acknowledgement_with_a_response_is_lost(launch: Launch, data: str, crash: Round) -> None:
    broker = start(launch, crash, data)
    sent = publish(broker, 500)
    with RawConsumer(broker.address, TOPIC, "s") as consumer:
        ids = consumer.receive(500)
        order = crash.random.sample(range(500), 400)
        consumer.acknowledge([ids[number] for number in order], first_request=1000)
        confirmed = {order[answer(consumer)] for _ in range(crash.random.randrange(1, 300))}
        broker.kill()
        while (request := consumer.acknowledged()) is not None:
            confirmed.add(order[request - 1000])

    broker = start(launch, crash, data, broker)
    left = set(remaining(broker, "s"))
    assert not confirmed & left, "acknowledged messages were redelivered"
    assert set(range(500)) - set(order) <= left, "unacknowledged messages are missing"
    assert len(sent) == 500
    broker.stop()


def answer(consumer: RawConsumer) -> int:
    request = consumer.acknowledged()
    assert request is not None, "the connection ended before the kill"
    return request - 1000


@rounds
def test_acknowledgements_of_more_than_a_second_ago_stay(launch: Launch, data: str, crash: Round) -> None:
    broker = start(launch, crash, data)
    publish(broker, 300)
    client = pulsar.Client(broker.address.service_url)
    earliest = pulsar.InitialPosition.Earliest
    shared = client.subscribe(TOPIC, "holes", pulsar.ConsumerType.Shared, initial_position=earliest)
    exclusive = client.subscribe(TOPIC, "upto", initial_position=earliest)
    holes = set(crash.random.sample(range(300), crash.random.randrange(1, 299)))
    for message in receive(shared, 300):
        if number_of(message.data()) in holes:
            shared.acknowledge(message)
    upto = crash.random.randrange(1, 299)
    exclusive.acknowledge_cumulative(receive(exclusive, 300)[upto - 1])
    admin = Admin(broker.address.admin_url)
    for subscription, acknowledged in (("holes", len(holes)), ("upto", upto)):
        eventually(lambda: admin.backlog(TOPIC, subscription) == 300 - acknowledged, what="the acknowledgements")  # noqa: B023
    with pytest.raises(pulsar.Timeout):
        exclusive.receive(timeout_millis=SETTLED_MS)
    admin.await_writes()  # on a busy machine the broker begins or ends to save them later
    broker.kill()
    client.shutdown()

    broker = start(launch, crash, data, broker)
    assert remaining(broker, "holes") == sorted(set(range(300)) - holes)
    assert remaining(broker, "upto") == list(range(upto, 300))
    broker.stop()


def publish(broker: BrokerProcess, count: int) -> list[Any]:
    client = pulsar.Client(broker.address.service_url)
    ids = send_all(client.create_producer(TOPIC), payloads(count))
    client.close()
    return ids


def remaining(broker: BrokerProcess, subscription: str) -> list[int]:
    """Return the numbers of the messages that a subscription still has, sorted."""
    client = pulsar.Client(broker.address.service_url)
    consumer = client.subscribe(TOPIC, subscription, pulsar.ConsumerType.Shared)
    backlog = Admin(broker.address.admin_url).backlog(TOPIC, subscription)
    numbers = [number_of(message.data()) for message in receive(consumer, backlog)]
    assert_nothing_more(consumer)
    client.close()
    return sorted(numbers)


def test_nothing_but_the_data_directory_is_written(launch: Launch, data: str, tmp_path: Path) -> None:
    broker = start(launch, Round("os", 0), data)
    publish(broker, 10)
    broker.kill()
    assert {path.name for path in tmp_path.iterdir()} == {"broker", "data"}
    assert {path.name for path in (tmp_path / "broker").iterdir()} == {"broker.log", "ready.json"}


def test_clients_come_back_to_a_proxy_that_was_killed_and_lose_nothing(broker: Address, tmp_path: Path) -> None:
    """The proxy starts again at its port, while the client has messages without a receipt."""
    command = [*PULSARIUM[:-2], "proxy", broker.service_url]
    killed = BrokerProcess(tmp_path / "killed", port=free_port(), command=command)
    client = pulsar.Client(killed.address.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    topic = uuid.uuid4().hex
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic, block_if_queue_full=True, batching_enabled=False, send_timeout_millis=120_000
    )
    wanted = [b"%d" % number for number in range(200)]
    for data in wanted[:100]:
        producer.send_async(data, None)
    received = [consumer.receive(30_000).data()]
    killed.kill()
    for data in wanted[100:]:
        producer.send_async(data, None)
    again = BrokerProcess(tmp_path / "again", port=killed.address.port, command=command)
    producer.flush()
    while len({*received}) < len(wanted):
        received.append(consumer.receive(30_000).data())
    assert [*dict.fromkeys(received)] == wanted
    client.close()
    assert again.stop() == 0
