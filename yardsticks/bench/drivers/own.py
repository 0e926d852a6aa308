"""The same programs on `pulsarium.client`, under trio or asyncio. Only a part of the event loop's run is timed."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio

from pulsarium.client import Client, ConsumerType, Producer, connect
from yardsticks.bench.work import Done, Timed, Work

SUBSCRIPTION = "bench"

Operation: TypeAlias = Callable[[], Awaitable[Done]]
Go: TypeAlias = Callable[[Operation], Awaitable[Done]]


def program(prepare: Callable[..., Awaitable[Done]]) -> Callable[..., Timed]:
    """Return a program that connects, and passes `prepare` a function that times its operations."""

    async def go(operation: Operation) -> Done:
        cpu, begin = time.process_time(), time.perf_counter()
        done = await operation()
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        return Done(done.operations, done.latencies, seconds=seconds, cpu=cpu)

    def made(work: Work, *, backend: str, **options: object) -> Timed:
        async def main() -> Done:
            async with connect(work.service_url) as client:
                return await prepare(client, work, go, **options)

        return lambda: anyio.run(main, backend=backend)

    return made


@program
async def publish(client: Client, work: Work, go: Go, *, batched: bool) -> Done:
    async with client.create_producer(work.topic, batching_enabled=batched) as producer:
        return await go(lambda: send_all(producer, work))


async def send_all(producer: Producer, work: Work) -> Done:
    """Send `count` messages without waiting for each, then wait for all."""
    payload = b"x" * work.size
    submit = producer.submit
    for _ in range(work.count):
        await submit(payload)
    await producer.flush()
    if producer.last_sequence_id() != work.count - 1:
        raise RuntimeError(f"the last stored message is {producer.last_sequence_id()} of {work.count}")
    return Done(work.count)


@program
async def consume(client: Client, work: Work, go: Go, *, kind: str, batched: bool) -> Done:
    """Receive a backlog of `count` messages, and acknowledge each.

    Closing the consumer sends the last acknowledgements.
    """
    chosen = ConsumerType[kind]
    async with client.subscribe(work.topic, SUBSCRIPTION, consumer_type=chosen):
        pass
    async with client.create_producer(work.topic, batching_enabled=batched) as producer:
        await send_all(producer, work)

    async def operation() -> Done:
        async with client.subscribe(work.topic, SUBSCRIPTION, consumer_type=chosen) as consumer:
            for _ in range(work.count):
                await consumer.acknowledge(await consumer.receive())
        return Done(work.count)

    return await go(operation)


@program
async def send_and_wait(client: Client, work: Work, go: Go) -> Done:
    async with client.create_producer(work.topic, batching_enabled=False) as producer:
        payload = b"x" * work.size
        return await go(lambda: one_by_one(work.count, lambda: producer.send(payload)))


@program
async def last_message_id(client: Client, work: Work, go: Go) -> Done:
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
