"""The same programs on the official client's asyncio module."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pulsar
import pulsar.asyncio

from yardsticks.bench.drivers.own import SUBSCRIPTION, Operation, one_by_one
from yardsticks.bench.work import Done, Timed, Work

AT_ONCE = 1000  # sends whose receipts are awaited together, the size of the client's queue


def program(prepare: Callable[..., Awaitable[Operation]]) -> Callable[..., Timed]:
    def made(work: Work, **options: object) -> Timed:
        async def connected() -> Operation:
            log = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
            return await prepare(pulsar.asyncio.Client(work.service_url, logger=log), work, **options)

        loop = asyncio.new_event_loop()
        operation = loop.run_until_complete(connected())
        return lambda: loop.run_until_complete(operation())

    return made


async def send_all(producer: Any, work: Work) -> Done:
    payload = b"x" * work.size
    for begin in range(0, work.count, AT_ONCE):
        await asyncio.gather(*(producer.send(payload) for _ in range(min(AT_ONCE, work.count - begin))))
    return Done(work.count)


@program
async def publish(client: Any, work: Work, *, batched: bool) -> Operation:
    producer = await client.create_producer(work.topic, batching_enabled=batched)
    return lambda: send_all(producer, work)


@program
async def consume(client: Any, work: Work, *, kind: str, batched: bool) -> Operation:
    chosen = {"consumer_type": getattr(pulsar.ConsumerType, kind)}
    await (await client.subscribe(work.topic, SUBSCRIPTION, **chosen)).close()
    producer = await client.create_producer(work.topic, batching_enabled=batched)
    await send_all(producer, work)
    await producer.close()

    async def operation() -> Done:
        consumer = await client.subscribe(work.topic, SUBSCRIPTION, **chosen)
        for _ in range(work.count):
            await consumer.acknowledge(await consumer.receive())
        await consumer.close()
        return Done(work.count)

    return operation


@program
async def send_and_wait(client: Any, work: Work) -> Operation:
    producer = await client.create_producer(work.topic, batching_enabled=False)
    payload = b"x" * work.size
    return lambda: one_by_one(work.count, lambda: producer.send(payload))


@program
async def last_message_id(client: Any, work: Work) -> Operation:
    producer = await client.create_producer(work.topic)
    consumer = await client.subscribe(work.topic, SUBSCRIPTION)
    await producer.send(b"x" * work.size)
    return lambda: one_by_one(work.count, consumer.get_last_message_id)
