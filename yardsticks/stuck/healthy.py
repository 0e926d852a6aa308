"""Topics that are well: idle, caught up, or with traffic. `pulsarium why` must not raise an alarm for any of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import trio

from pulsarium.client import Consumer, ConsumerType
from pulsarium.rest.policies import DISPATCH_RATE, DispatchRate
from yardsticks.stuck.stage import Stage, State

TYPES: Final = {each.name.lower(): each for each in ConsumerType}


async def idle(stage: Stage, **options: Any) -> None:
    """Open a consumer of an empty topic."""
    await stage.consumer(**options)


async def caught_up(stage: Stage, count: int = 5, **options: Any) -> None:
    """Acknowledge all messages."""
    consumer = await stage.consumer(**options)
    await stage.publish(count, partition_key="k")
    for message in await stage.take(consumer, count):
        await consumer.acknowledge(message)


async def traffic(stage: Stage, consumers: int = 1, pause: float = 0.05, batches: bool = False, **options: Any) -> None:
    """Let messages come and go until the end."""
    opened = [await stage.consumer(consumer_name=f"c{number}", **options) for number in range(consumers)]
    producer = await stage.producer(batching_enabled=batches)
    async with trio.open_nursery() as nursery:
        for each in opened:
            nursery.start_soon(_acknowledging, each)
        number = 0
        while True:
            await producer.submit(b"x" * 100, partition_key=f"k{number % 20}")
            number += 1
            await trio.sleep(pause)


async def _acknowledging(consumer: Consumer[bytes]) -> None:
    while True:
        await consumer.acknowledge(await consumer.receive())


async def refused_once(stage: Stage) -> None:
    """Refuse every message once, and acknowledge it the second time."""
    consumer = await stage.consumer(negative_ack_redelivery_delay=0.2)
    producer = await stage.producer()
    async with trio.open_nursery() as nursery:

        async def take() -> None:
            while True:
                message = await consumer.receive()
                if message.redelivery_count():
                    await consumer.acknowledge(message)
                else:
                    consumer.negative_acknowledge(message)

        nursery.start_soon(take)
        while True:
            await producer.send(b"x")
            await trio.sleep(0.2)


async def delayed_a_little(stage: Stage) -> None:
    """Let every message wait for a second."""
    consumer = await stage.consumer()
    producer = await stage.producer()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_acknowledging, consumer)
        while True:
            await producer.send(b"x", deliver_after=1.0)
            await trio.sleep(0.1)


async def transactions(stage: Stage) -> None:
    """Commit one transaction after the other, with messages and acknowledgements."""
    client = await stage.client()
    consumer = await stage.consumer(client=client)
    producer = await stage.opened(client.create_producer(stage.topic, batching_enabled=False))
    for _ in range(10):
        async with client.transaction() as txn:
            await producer.send(b"x", txn=txn)
        async with client.transaction() as txn:
            await consumer.acknowledge(await consumer.receive(), txn=txn)


async def cumulative(stage: Stage) -> None:
    """Acknowledge everything with one acknowledgement."""
    consumer = await stage.consumer(ConsumerType.Exclusive)
    await stage.publish(5)
    await consumer.acknowledge_cumulative((await stage.take(consumer, 5))[-1])


async def without_a_consumer(stage: Stage) -> None:
    """Leave a subscription without backlog and without a consumer."""
    await caught_up(stage)
    await stage.admin.topics.create_subscription(stage.topic, "later")


async def partitioned(stage: Stage, then: State) -> None:
    await stage.admin.topics.create_partitioned_topic(stage.topic, 3)
    await then(stage)


async def within_a_rate(stage: Stage) -> None:
    """Use less than the dispatch rate."""
    await stage.admin.topics.create_non_partitioned_topic(stage.topic)
    rate: DispatchRate = {
        "dispatchThrottlingRateInMsg": 1000,
        "dispatchThrottlingRateInByte": -1,
        "ratePeriodInSecond": 1,
    }
    await stage.admin.topic_policies[DISPATCH_RATE].set(stage.topic, rate)
    await traffic(stage)


async def replicated(stage: Stage) -> None:
    """Ask for a replicated subscription on a cluster that has no other."""
    await caught_up(stage, replicate_subscription_state_enabled=True)


def _of_types(what: Callable[..., Any], name: str) -> dict[str, State]:
    return {f"{name}-{each}": partial(what, type=each_type) for each, each_type in TYPES.items()}


HEALTHY: Final[dict[str, State]] = {
    **_of_types(idle, "idle"),
    **_of_types(caught_up, "caught-up"),
    **_of_types(traffic, "traffic"),
    "traffic-in-batches": partial(traffic, batches=True, pause=0.002),
    "traffic-small-queues": partial(traffic, receiver_queue_size=1, consumers=2),
    "traffic-keys-of-three": partial(traffic, type=ConsumerType.KeyShared, consumers=3),
    "traffic-failover-of-two": partial(traffic, type=ConsumerType.Failover, consumers=2),
    "traffic-fast": partial(traffic, pause=0.001),
    "refused-once": refused_once,
    "delayed-a-little": delayed_a_little,
    "transactions": transactions,
    "cumulative": cumulative,
    "caught-up-name-of-two-words": partial(caught_up, subscription="billing eu/1"),
    "without-a-consumer": without_a_consumer,
    "partitioned-caught-up": partial(partitioned, then=caught_up),
    "partitioned-traffic": partial(partitioned, then=traffic),
    "within-a-rate": within_a_rate,
    "replicated": replicated,
}
