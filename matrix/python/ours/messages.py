"""Scenarios of messages between producer and consumer."""

from __future__ import annotations

import os
import time
from functools import partial

import anyio

from pulsarium.client import (
    CompressionType,
    ConsumerBatchReceivePolicy,
    ConsumerCryptoFailureAction,
    CryptoKeyReader,
    Message,
)
from pulsarium.matrix.python.lines import PATIENCE, Lines, equal, texts, that
from pulsarium.matrix.python.ours.support import (
    KeyShared,
    Ours,
    Scenario,
    Shared,
    consume,
    nothing_more,
    receive,
    send,
    text,
)

BATCHED = {"batching_enabled": True, "batching_max_messages": 10, "batching_max_publish_delay": 10.0}


async def produce_consume(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    await send(await ours.single(cell.topic), texts(0, 10), partition_key="k", properties={"p": "v"})
    for wanted, message in zip(texts(0, 10), await receive(consumer, 10), strict=True):
        equal((text(message), message.partition_key(), message.properties()), (wanted, "k", {"p": "v"}))
        await consumer.acknowledge(message)
    await consumer.aclose()
    await nothing_more(await ours.subscribe(cell.topic))


async def batching(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    await send(await ours.producer(cell.topic, **BATCHED), texts(0, 10))
    messages = await receive(consumer, 10)
    equal([text(message) for message in messages], texts(0, 10))
    ids = [message.message_id() for message in messages]
    equal({one.entry_id for one in ids}, {ids[0].entry_id}, "entries")
    equal([one.batch_index for one in ids], list(range(10)), "batch indexes")


async def compression(kind: CompressionType, cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    sent = [each * 1000 for each in texts(0, 10)]
    await send(await ours.single(cell.topic, compression_type=kind), sent)
    equal(await consume(consumer, 10), sent)


async def chunking(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    producer = await ours.single(cell.topic, chunking_enabled=True)
    sent = [b"before", os.urandom(6_000_000), b"behind"]
    for each in sent:
        await producer.send(each)
    that([message.data() for message in await receive(consumer, 3)] == sent, "other messages came back")


async def delayed(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic, consumer_type=Shared)
    producer = await ours.single(cell.topic)
    start = time.monotonic()
    await producer.send(b"later", deliver_after=1.0)
    await producer.send(b"now")
    equal(await consume(consumer, 2), ["now", "later"])
    that(time.monotonic() - start > 0.9, "too early")


async def non_persistent(cell: Lines, ours: Ours) -> None:
    topic = cell.topic.replace("persistent://", "non-persistent://")
    consumer = await ours.subscribe(topic)
    await send(await ours.single(topic), texts(0, 10))
    equal(await consume(consumer, 10), texts(0, 10))


async def message_index(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    await send(await ours.single(cell.topic), texts(0, 5))
    equal([message.index() for message in await receive(consumer, 5)], list(range(5)))


async def encryption(cell: Lines, ours: Ours) -> None:
    keys = CryptoKeyReader(cell.public_key, cell.private_key)
    consumer = await ours.subscribe(cell.topic, crypto_key_reader=keys)
    without = await ours.subscribe(cell.topic, "t", crypto_failure_action=ConsumerCryptoFailureAction.CONSUME)
    await send(await ours.single(cell.topic, encryption_keys=["k"], crypto_key_reader=keys), texts(0, 3))
    equal(await consume(consumer, 3), texts(0, 3))
    that(not {message.data() for message in await receive(without, 3)} & {b"a0000", b"a0001", b"a0002"}, "in the clear")


async def batch_receive(cell: Lines, ours: Ours) -> None:
    policy = ConsumerBatchReceivePolicy(10, -1, 10.0)
    consumer = await ours.subscribe(cell.topic, batch_receive_policy=policy)
    await send(await ours.single(cell.topic), texts(0, 10))
    equal([text(message) for message in await consumer.batch_receive()], texts(0, 10))


async def key_shared(cell: Lines, ours: Ours) -> None:
    consumers = [await ours.subscribe(cell.topic, consumer_type=KeyShared) for _ in range(2)]
    producer = await ours.single(cell.topic)
    for number in range(10):
        for each in range(5):
            producer.send_nowait(b"%d" % number, partition_key=f"key-{each}")
    await producer.flush()
    found: list[tuple[int, Message[bytes]]] = []
    with anyio.move_on_after(PATIENCE):
        async with anyio.create_task_group() as tasks:

            async def take(place: int) -> None:
                while True:
                    message = await consumers[place].receive()
                    await consumers[place].acknowledge(message)
                    found.append((place, message))
                    if len(found) == 50:
                        tasks.cancel_scope.cancel()

            for place in range(2):
                tasks.start_soon(take, place)
    equal(len(found), 50, "messages")
    for key in {message.partition_key() for _, message in found}:
        mine = [(place, text(message)) for place, message in found if message.partition_key() == key]
        equal("".join(sent for _, sent in mine), "0123456789", f"order of {key}")
        equal(len({place for place, _ in mine}), 1, f"consumers of {key}")


MESSAGES: dict[str, Scenario] = {
    "produce-consume": produce_consume,
    "batching": batching,
    **{
        f"compression-{kind.name.lower()}": partial(compression, kind)
        for kind in CompressionType
        if kind is not CompressionType.NONE
    },
    "chunking": chunking,
    "delayed": delayed,
    "non-persistent": non_persistent,
    "message-index": message_index,
    "encryption": encryption,
    "batch-receive": batch_receive,
    "key-shared": key_shared,
}
