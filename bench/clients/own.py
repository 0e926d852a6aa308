"""Programs on `pulsarium.client`, under trio or asyncio, written as an application would be."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio

from bench.work import Done, Timed, Work
from pulsarium.client import Client, ConsumerType, Producer, connect

SUBSCRIPTION = "bench"

Run: TypeAlias = Callable[[], Awaitable[Done]]
"""The measured part of a program."""


async def publish(client: Client, work: Work, go: Callable[[Run], Awaitable[Done]], *, batched: bool) -> Done:
    async with client.create_producer(work.topic, batching_enabled=batched) as producer:

        async def run() -> Done:
            await send_all(producer, work)
            return Done(work.count)

        return await go(run)


async def send_all(producer: Producer, work: Work) -> None:
    """Send `count` messages without waiting for each, then wait for all."""
    payload = b"x" * work.size
    submit = producer.submit
    for _ in range(work.count):
        await submit(payload)
    await producer.flush()
    if producer.last_sequence_id() != work.count - 1:
        raise RuntimeError(f"the last stored message is {producer.last_sequence_id()} of {work.count}")


async def receive(client: Client, work: Work, go: Callable[[Run], Awaitable[Done]], *, batched: bool) -> Done:
    """Receive a backlog of `count` messages, and acknowledge each.

    Closing the consumer sends the last acknowledgements.
    """
    async with client.subscribe(work.topic, SUBSCRIPTION, consumer_type=ConsumerType.Shared):
        pass
    async with client.create_producer(work.topic, batching_enabled=batched) as producer:
        await send_all(producer, work)

    async def run() -> Done:
        async with client.subscribe(work.topic, SUBSCRIPTION, consumer_type=ConsumerType.Shared) as consumer:
            for _ in range(work.count):
                await consumer.acknowledge(await consumer.receive())
        return Done(work.count)

    return await go(run)


async def send(client: Client, work: Work, go: Callable[[Run], Awaitable[Done]]) -> Done:
    async with client.create_producer(work.topic, batching_enabled=False) as producer:
        payload = b"x" * work.size
        return await go(lambda: one_by_one(work.count, lambda: producer.send(payload)))


async def last_message_id(client: Client, work: Work, go: Callable[[Run], Awaitable[Done]]) -> Done:
    async with client.create_producer(work.topic) as producer, client.subscribe(work.topic, SUBSCRIPTION) as consumer:
        await producer.send(b"x" * work.size)
        return await go(lambda: one_by_one(work.count, consumer.get_last_message_ids))


async def one_by_one(count: int, operation: Callable[[], Awaitable[object]]) -> Done:
    latencies = []
    before = time.perf_counter()
    for _ in range(count):
        await operation()
        after = time.perf_counter()
        latencies.append(after - before)
        before = after
    return Done(count, latencies)


def program(backend: str, operation: Callable[..., Awaitable[Done]], **options: object) -> Callable[[Work], Timed]:
    """Return a program that runs in one event loop, of which only a part is timed."""

    async def go(run: Run) -> Done:
        cpu, begin = time.process_time(), time.perf_counter()
        done = await run()
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        return Done(done.operations, done.latencies, seconds=seconds, cpu=cpu)

    async def main(work: Work) -> Done:
        async with connect(work.service_url) as client:
            return await operation(client, work, go, **options)

    return lambda work: lambda: anyio.run(main, work, backend=backend)
