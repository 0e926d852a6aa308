"""The same programs on the official client's asyncio module."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pulsar
import pulsar.asyncio

from bench.clients.own import SUBSCRIPTION, one_by_one
from bench.work import Done, Timed, Work

AT_ONCE = 1000  # sends whose receipts are awaited together, the size of the client's queue


def client(work: Work) -> Any:
    return pulsar.asyncio.Client(work.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


async def send_all(producer: Any, work: Work) -> None:
    payload = b"x" * work.size
    for begin in range(0, work.count, AT_ONCE):
        await asyncio.gather(*(producer.send(payload) for _ in range(min(AT_ONCE, work.count - begin))))


async def publish(work: Work, *, batched: bool) -> Callable[[], Awaitable[Done]]:
    producer = await client(work).create_producer(work.topic, batching_enabled=batched)

    async def run() -> Done:
        await send_all(producer, work)
        return Done(work.count)

    return run


async def receive(work: Work, *, batched: bool) -> Callable[[], Awaitable[Done]]:
    connected = client(work)
    shared = {"consumer_type": pulsar.ConsumerType.Shared}
    await (await connected.subscribe(work.topic, SUBSCRIPTION, **shared)).close()
    producer = await connected.create_producer(work.topic, batching_enabled=batched)
    await send_all(producer, work)
    await producer.close()

    async def run() -> Done:
        consumer = await connected.subscribe(work.topic, SUBSCRIPTION, **shared)
        for _ in range(work.count):
            await consumer.acknowledge(await consumer.receive())
        await consumer.close()
        return Done(work.count)

    return run


async def send(work: Work) -> Callable[[], Awaitable[Done]]:
    producer = await client(work).create_producer(work.topic, batching_enabled=False)
    payload = b"x" * work.size
    return lambda: one_by_one(work.count, lambda: producer.send(payload))


async def last_message_id(work: Work) -> Callable[[], Awaitable[Done]]:
    connected = client(work)
    producer = await connected.create_producer(work.topic)
    consumer = await connected.subscribe(work.topic, SUBSCRIPTION)
    await producer.send(b"x" * work.size)
    return lambda: one_by_one(work.count, consumer.get_last_message_id)


def program(
    prepare: Callable[..., Awaitable[Callable[[], Awaitable[Done]]]], **options: object
) -> Callable[[Work], Timed]:
    def prepared(work: Work) -> Timed:
        loop = asyncio.new_event_loop()
        run = loop.run_until_complete(prepare(work, **options))
        return lambda: loop.run_until_complete(run())

    return prepared
