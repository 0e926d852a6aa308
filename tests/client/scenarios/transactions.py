"""Shows that a transaction takes effect as a whole or not at all: its messages and its acknowledgements."""

from __future__ import annotations

from functools import partial
from typing import Any

from pulsarium.client import ConsumerType, Message, MessageId

from .scenario import scenario
from .world import EARLIEST, World, available, data, outcome, take, take_until

transactional = partial(scenario, transactions=True)

NUMBERS = [b"%d" % n for n in range(5)]
SHARED: dict[str, Any] = {"initial_position": EARLIEST, "consumer_type": ConsumerType.Shared}
ORDERED: dict[str, Any] = {"initial_position": EARLIEST}


async def left(world: World, topic: str, **options: Any) -> list[bytes]:
    """Return the backlog of the subscription `s`."""
    await world.send(topic, b"end")
    async with world.client.subscribe(topic, "s", **options) as consumer:
        return sorted(data(await take_until(consumer, b"end")))


@transactional(expected={"open": [], "committed": ["a", "b", "behind"], "states": ["OPEN", "COMMITTED"]})
async def what_is_sent_shows_when_it_is_committed(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic) as producer:
        async with world.client.transaction() as txn:
            await producer.send(b"a", txn=txn)
            await producer.send(b"b", txn=txn)
            await producer.send(b"behind")
            states, before = [txn.state()], await world.contents(topic)
        return {"open": before, "committed": await world.contents(topic), "states": [*states, txn.state()]}


@transactional(expected={"seen": ["before", "behind"], "state": "ABORTED"})
async def what_is_sent_never_shows_when_it_is_aborted(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic) as producer:
        txn = await world.client.begin_transaction()
        await producer.send(b"before")
        await producer.send(b"never", txn=txn)
        await producer.send(b"behind")
        await txn.abort()
        return {"seen": await world.contents(topic), "state": txn.state()}


@transactional(expected={"out": ["<0>", "<1>", "<2>"], "left": ["3", "4"]})
async def consume_transform_produce(world: World) -> object:
    topic, other = world.topic(), world.topic("out")
    await world.send(topic, *NUMBERS)
    async with (
        world.client.subscribe(topic, "s", **ORDERED) as consumer,
        world.client.create_producer(other) as producer,
    ):
        for _ in range(3):
            async with world.client.transaction() as txn:
                message = await consumer.receive()
                await producer.send(b"<" + message.data() + b">", txn=txn)
                await consumer.acknowledge(message, txn=txn)
    return {"out": await world.contents(other), "left": await left(world, topic)}


async def again(
    world: World, name: str, *, cumulative: bool = False, batched: bool = False, **options: Any
) -> dict[str, Any]:
    """Receive three of five messages, and acknowledge the last of them in a transaction that is aborted."""
    topic = world.topic(name)
    await world.send(topic, *NUMBERS, batching_enabled=batched)
    async with world.client.subscribe(topic, "s", **options) as consumer:
        messages = await take(consumer, 3)
        txn = await world.client.begin_transaction()
        if cumulative:
            await consumer.acknowledge_cumulative(messages[-1], txn=txn)
        else:
            await consumer.acknowledge(messages[-1], txn=txn)
        await txn.abort()
        count = 3 if options == SHARED else 5
        found = await take(consumer, count)
        if count == 3:  # the order does not matter
            found.sort(key=Message.data)
        return {"found": found, "counts": [message.redelivery_count() for message in found]}


@transactional(
    expected={
        "ordered": {"found": ["0", "1", "2", "3", "4"], "counts": [0, 0, 0, 0, 0]},
        "cumulative": {"found": ["0", "1", "2", "3", "4"], "counts": [0, 0, 0, 0, 0]},
        "batch": {"found": ["0", "1", "2", "3", "4"], "counts": [0, 0, 0, 0, 0]},
        "shared": {"found": ["2", "3", "4"], "counts": [1, 0, 0]},
    }
)
async def what_is_acknowledged_comes_again_when_it_is_aborted(world: World) -> object:
    return {
        "ordered": await again(world, "ordered", **ORDERED),
        "cumulative": await again(world, "cumulative", cumulative=True, **ORDERED),
        "batch": await again(world, "batch", cumulative=True, batched=True, **ORDERED),
        "shared": await again(world, "shared", **SHARED),
    }


@transactional(
    expected={
        "committed": ["0", "2", "4"],
        "aborted": ["0", "1", "2", "3", "4"],
        "cumulative": ["3", "4"],
        "one by one": [],
    }
)
async def single_messages_of_a_batch(world: World) -> object:
    found = {}
    for case, options in (("committed", SHARED), ("aborted", SHARED), ("cumulative", ORDERED), ("one by one", SHARED)):
        topic = world.topic(case.replace(" ", "-"))
        await world.send(topic, *NUMBERS, batching_enabled=True)
        async with world.client.subscribe(topic, "s", **options) as consumer:
            messages = await take(consumer, 5)
            txn = await world.client.begin_transaction()
            if case == "cumulative":
                await consumer.acknowledge_cumulative(messages[2], txn=txn)
            elif case == "one by one":
                for message in messages:
                    await consumer.acknowledge(message, txn=txn)
            else:
                await consumer.acknowledge([messages[1], messages[3]], txn=txn)
            await (txn.abort() if case == "aborted" else txn.commit())
        found[case] = await left(world, topic, **options)
    return found


@transactional(
    expected={
        "acknowledge": "TransactionConflict",
        "commit": "TransactionHasOperationFailed",
        "states": ["COMMITTED", "ABORTED"],
        "left": ["1", "2", "3", "4"],
        "out": [],
    }
)
async def two_acknowledge_the_same(world: World) -> object:
    topic, other = world.topic(), world.topic("out")
    await world.send(topic, *NUMBERS)
    async with (
        world.client.subscribe(topic, "s", **SHARED) as consumer,
        world.client.create_producer(other) as producer,
    ):
        message = await consumer.receive()
        one, two = await world.client.begin_transaction(), await world.client.begin_transaction()
        await consumer.acknowledge(message, txn=one)
        await producer.send(b"never", txn=two)
        conflict = await outcome(consumer.acknowledge(message, txn=two))
        commit = await outcome(two.commit())
        await one.commit()
    return {
        "acknowledge": conflict,
        "commit": commit,
        "states": [one.state(), two.state()],
        "left": await left(world, topic, **SHARED),
        "out": await world.contents(other),
    }


async def _all(world: World, topic: str) -> list[Message[bytes]]:
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        return await available(reader)
