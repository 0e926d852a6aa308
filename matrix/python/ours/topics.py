"""Scenarios of topics: access, consumers of a subscription, partitions, lookup and security."""

from __future__ import annotations

import re

import anyio

from pulsarium.client import AuthenticationToken, Producer, ProducerAccessMode, PulsarError
from pulsarium.client.errors import ConsumerBusy, ProducerBusy, TopicTerminated
from pulsarium.matrix.python.lines import PATIENCE, Lines, equal, texts, that
from pulsarium.matrix.python.ours.support import (
    Failover,
    Ours,
    Shared,
    connected,
    consume,
    nothing_more,
    receive,
    refused,
    send,
    text,
)

TURN = 0.1


async def exclusive_busy(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    await refused(ConsumerBusy, lambda: ours.subscribe(cell.topic))
    await consumer.aclose()
    await ours.subscribe(cell.topic)


async def failover(cell: Lines, ours: Ours) -> None:
    both = [await ours.subscribe(cell.topic, consumer_type=Failover, consumer_name=name) for name in "ab"]
    producer = await ours.single(cell.topic)
    await send(producer, texts(0, 10))
    # A hash of the consumers' names and the topic's name decides which consumer is active.
    message = None
    active, standby = reversed(both)
    with anyio.fail_after(PATIENCE):
        while message is None:
            active, standby = standby, active
            with anyio.move_on_after(TURN):
                message = await active.receive()
    await active.acknowledge(message)
    equal([text(message), *await consume(active, 9)], texts(0, 10))
    await nothing_more(standby)
    await active.aclose()
    await send(producer, texts(10, 20))
    equal(await consume(standby, 10), texts(10, 20))


async def shared(cell: Lines, ours: Ours) -> None:
    consumers = [await ours.subscribe(cell.topic, consumer_type=Shared, receiver_queue_size=5) for _ in range(2)]
    await send(await ours.single(cell.topic), texts(0, 20))
    found: list[list[str]] = [[], []]
    with anyio.move_on_after(PATIENCE):
        async with anyio.create_task_group() as tasks:

            async def take(place: int) -> None:
                while True:
                    found[place] += await consume(consumers[place], 1)
                    if len(found[0]) + len(found[1]) == 20:
                        tasks.cancel_scope.cancel()

            for place in range(2):
                tasks.start_soon(take, place)
    equal(sorted(found[0] + found[1]), texts(0, 20))
    that(all(found), "one consumer got everything")


async def partitioned(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    await send(await ours.single(cell.topic), texts(0, 30))
    messages = await receive(consumer, 30)
    equal(sorted(map(text, messages)), texts(0, 30))
    equal(len({message.topic_name() for message in messages}), 3, "partitions")


async def pattern(cell: Lines, ours: Ours) -> None:
    base = f"persistent://{cell.namespace}/"
    for name in ("red-1", "red-2", "blue"):
        await send(await ours.single(base + name), [name])
    consumer = await ours.subscribe(re.compile(f"{base}red-.*"))
    equal(sorted(await consume(consumer, 2)), ["red-1", "red-2"])
    await nothing_more(consumer)


async def multi_topics(cell: Lines, ours: Ours) -> None:
    topics = [f"{cell.topic}-{number}" for number in range(2)]
    consumer = await ours.subscribe(topics)
    for topic in topics:
        await send(await ours.single(topic), [topic])
    equal(sorted(await consume(consumer, 2)), topics)


async def unload(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    producer = await ours.single(cell.topic)
    await send(producer, texts(0, 5))
    equal(await consume(consumer, 5), texts(0, 5))
    await anyio.to_thread.run_sync(cell.do, "unload")
    await send(producer, texts(5, 10))
    # Acknowledgements in flight may have been lost with the old consumer.
    found: set[str] = set()
    while not found >= set(texts(5, 10)):
        found |= set(await consume(consumer, 1))


async def brokers(cell: Lines, ours: Ours) -> None:
    topics = [f"{cell.topic}-{number}" for number in range(8)]
    for url in cell.service_urls:
        async with connected(cell, url) as each:
            for topic in topics:
                consumer = await each.subscribe(topic)
                await send(await each.single(topic), [topic])
                equal(await consume(consumer, 1), [topic])


async def http_lookup(cell: Lines, ours: Ours) -> None:
    async with connected(cell, cell.http_url) as found:
        await _five(cell, found)


async def token(cell: Lines, ours: Ours) -> None:
    async with connected(cell, authentication=AuthenticationToken(cell.token)) as found:
        await _five(cell, found)
    async with connected(cell, authentication=AuthenticationToken(cell.wrong_token)) as theirs:
        await refused(PulsarError, lambda: theirs.single(cell.topic))


async def tls(cell: Lines, ours: Ours) -> None:
    known = AuthenticationToken(cell.token)
    async with connected(cell, cell.tls_url, authentication=known, tls_trust_certs_file_path=cell.authority) as found:
        await _five(cell, found)


async def _five(cell: Lines, found: Ours) -> None:
    consumer = await found.subscribe(cell.topic)
    await send(await found.single(cell.topic), texts(0, 5))
    equal(await consume(consumer, 5), texts(0, 5))


async def zero_queue(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic, receiver_queue_size=0)
    await send(await ours.single(cell.topic), texts(0, 10))
    equal([(await consume(consumer, 1))[0] for _ in range(10)], texts(0, 10))


async def producer_name(cell: Lines, ours: Ours) -> None:
    producer = await ours.single(cell.topic, producer_name="p")
    equal(producer.producer_name(), "p")
    await refused(ProducerBusy, lambda: ours.single(cell.topic, producer_name="p"))
    await producer.aclose()
    await ours.single(cell.topic, producer_name="p")


async def exclusive_producer(cell: Lines, ours: Ours) -> None:
    owner = await ours.single(cell.topic, access_mode=ProducerAccessMode.Exclusive)
    await refused(PulsarError, lambda: ours.single(cell.topic))
    await send(owner, ["mine"])


async def wait_for_exclusive(cell: Lines, ours: Ours) -> None:
    owner = await ours.single(cell.topic, access_mode=ProducerAccessMode.Exclusive)
    found: list[Producer[bytes]] = []

    async def wait() -> None:
        found.append(await ours.single(cell.topic, access_mode=ProducerAccessMode.WaitForExclusive))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.sleep(0.5)
            that(not found, "the producer did not wait")
            await owner.aclose()
    await send(found[0], ["mine now"])


async def terminated(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    producer = await ours.single(cell.topic)
    await send(producer, texts(0, 5))
    await anyio.to_thread.run_sync(cell.do, "terminate")
    equal(await consume(consumer, 5), texts(0, 5))
    await refused(TopicTerminated, lambda: producer.send(b"too late"))


TOPICS = {
    "exclusive-busy": exclusive_busy,
    "failover": failover,
    "shared": shared,
    "partitioned": partitioned,
    "pattern": pattern,
    "multi-topics": multi_topics,
    "unload": unload,
    "brokers": brokers,
    "http-lookup": http_lookup,
    "token": token,
    "tls": tls,
    "zero-queue": zero_queue,
    "producer-name": producer_name,
    "exclusive-producer": exclusive_producer,
    "wait-for-exclusive": wait_for_exclusive,
    "terminated": terminated,
}
