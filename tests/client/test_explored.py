"""Exploration of the client: each message with a receipt is delivered, whatever the broker does meanwhile."""

from __future__ import annotations

import pytest
import trio

from pulsarium import client as pulsar
from pulsarium.broker.testing import PulsarBroker
from pulsarium.broker.testing.explore import explore

MESSAGES = 8
LIMIT = 60  # seconds of a run
RUNS = 60  # docs/clients-found.md has the result of 200


async def publish_and_consume(url: str, kind: pulsar.ConsumerType) -> None:
    """Publish messages of three keys, and acknowledge them with one consumer, or with two that share them."""
    handled: set[bytes] = set()
    done = trio.Event()

    async def consume(client: pulsar.Client, task_status: trio.TaskStatus[None]) -> None:
        earliest = pulsar.InitialPosition.Earliest
        async with client.subscribe("orders", "billing", consumer_type=kind, initial_position=earliest) as consumer:
            task_status.started()
            while True:
                message = await consumer.receive()
                handled.add(message.data())
                await consumer.acknowledge(message)
                if len(handled) == MESSAGES:
                    done.set()

    async with (
        pulsar.connect(url) as first,
        pulsar.connect(url) as second,
        trio.open_nursery() as nursery,
    ):
        for client in (first,) if kind is pulsar.ConsumerType.Exclusive else (first, second):
            await nursery.start(consume, client)
        async with first.create_producer("orders") as producer:
            for number in range(MESSAGES):
                await producer.send(b"order %d" % number, partition_key=str(number % 3))
        await done.wait()
        nursery.cancel_scope.cancel()


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", pulsar.ConsumerType)
def test_each_message_with_a_receipt_is_delivered_whatever_the_broker_does(kind: pulsar.ConsumerType) -> None:
    async def run(broker: PulsarBroker) -> None:
        with trio.fail_after(LIMIT):
            await publish_and_consume(broker.service_url, kind)

    explore(lambda broker: trio.run(run, broker), runs=RUNS, seed=1, failures=None)
