"""Scenarios of reading: start positions, compaction, deduplication, transactions and schemas."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from pulsarium.client import AvroInt, AvroSchema, JsonSchema, MessageId, StringSchema
from pulsarium.client.errors import IncompatibleSchema
from pulsarium.matrix.python.lines import MOMENT, Lines, equal, texts, that
from pulsarium.matrix.python.ours.messages import BATCHED
from pulsarium.matrix.python.ours.support import (
    Ours,
    Scenario,
    Shared,
    consume,
    nothing_more,
    receive,
    refused,
    send,
    text,
)


@dataclass
class Person:
    """The record of the scenarios with schemas."""

    name: str
    age: AvroInt


async def seek_id(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    ids = await send(await ours.single(cell.topic), texts(0, 10))
    equal(await consume(consumer, 10), texts(0, 10))
    await consumer.seek(ids[4])
    first = (await consume(consumer, 1))[0]
    that(first in ("a0004", "a0005"), f"{first} came first")
    equal(await consume(consumer, 9 - int(first[1:])), texts(int(first[1:]) + 1, 10))


async def seek_time(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    producer = await ours.single(cell.topic)
    await send(producer, texts(0, 5))
    await anyio.sleep(MOMENT)
    moment = int(time.time() * 1000)
    await send(producer, texts(5, 10))
    equal(await consume(consumer, 10), texts(0, 10))
    await consumer.seek(moment)
    equal(await consume(consumer, 5), texts(5, 10))
    await nothing_more(consumer)


async def reader(cell: Lines, ours: Ours) -> None:
    ids = await send(await ours.single(cell.topic), texts(0, 10))
    async with ours.client.create_reader(cell.topic, MessageId.earliest) as everything:
        equal([text(await everything.read_next()) for _ in range(10)], texts(0, 10))
    async with ours.client.create_reader(cell.topic, ids[4]) as behind:
        equal([text(await behind.read_next()) for _ in range(5)], texts(5, 10))


async def has_message_available(cell: Lines, ours: Ours) -> None:
    producer = await ours.single(cell.topic)
    await send(producer, texts(0, 3))
    async with ours.client.create_reader(cell.topic, MessageId.earliest) as reading:
        for wanted in texts(0, 3):
            that(await reading.has_message_available(), "false at the beginning")
            equal(text(await reading.read_next()), wanted)
        that(not await reading.has_message_available(), "true at the end")
        await send(producer, texts(3, 4))
        that(await reading.has_message_available(), "false after one more")


async def last_message_id(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    ids = await send(await ours.single(cell.topic), texts(0, 5))
    (last,) = await consumer.get_last_message_ids()
    equal((last.ledger_id, last.entry_id), (ids[4].ledger_id, ids[4].entry_id))


async def compaction(cell: Lines, ours: Ours) -> None:
    # The subscription must exist first, so that compaction retains its messages.
    await (await ours.subscribe(cell.topic, read_compacted=True)).aclose()
    producer = await ours.single(cell.topic)
    for version in "12":
        for key in "abc":
            await producer.send((key + version).encode(), partition_key=key)
    await anyio.to_thread.run_sync(cell.do, "compact")
    consumer = await ours.subscribe(cell.topic, read_compacted=True)
    equal(await consume(consumer, 3), ["a2", "b2", "c2"])
    await nothing_more(consumer)


async def compaction_batch(cell: Lines, ours: Ours) -> None:
    await (await ours.subscribe(cell.topic, read_compacted=True)).aclose()
    producer = await ours.producer(cell.topic, **BATCHED)
    receipts = [
        await producer.submit(each.encode(), partition_key=f"key {number % 5}")
        for number, each in enumerate(texts(0, 10))
    ]
    for receipt in receipts:
        await receipt.wait()
    await anyio.to_thread.run_sync(cell.do, "compact")
    consumer = await ours.subscribe(cell.topic, read_compacted=True)
    equal(await consume(consumer, 5), texts(5, 10))
    await nothing_more(consumer)


async def table_view(cell: Lines, ours: Ours) -> None:
    producer = await ours.single(cell.topic)
    for key, value in (("a", b"1"), ("b", b"2"), ("a", b"3")):
        await producer.send(value, partition_key=key)
    async with ours.client.create_table_view(cell.topic) as view:
        equal(dict(view), {"a": b"3", "b": b"2"})
        await producer.send(b"4", partition_key="b")
        await view.refresh()
        equal(view["b"], b"4")


async def deduplication(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    for numbers in ((0, 1, 2), (1, 2, 3)):
        producer = await ours.single(cell.topic, producer_name="p")
        for number in numbers:
            await producer.send(texts(number, number + 1)[0].encode(), sequence_id=number)
        await producer.aclose()
    equal(await consume(consumer, 4), texts(0, 4))
    await nothing_more(consumer)


async def transactions(cell: Lines, ours: Ours) -> None:
    consumer, producer = await ours.subscribe(cell.topic), await ours.single(cell.topic)
    for each in ("dropped", "kept"):
        transaction = await ours.client.begin_transaction()
        await producer.send(each.encode(), txn=transaction)
        await (transaction.commit() if each == "kept" else transaction.abort())
    equal(await consume(consumer, 1), ["kept"])
    await nothing_more(consumer)


async def transaction_ack(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic, consumer_type=Shared)
    await send(await ours.single(cell.topic), ["again", "done"])
    for message in await receive(consumer, 2):
        transaction = await ours.client.begin_transaction()
        await consumer.acknowledge(message, txn=transaction)
        await (transaction.commit() if message.data() == b"done" else transaction.abort())
    equal(await consume(consumer, 1), ["again"])
    await nothing_more(consumer)


async def schema(kind: Any, value: Any, cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic, schema=kind)
    producer = await ours.producer(cell.topic, schema=kind)
    await producer.send(value)
    (message,) = await receive(consumer, 1)
    equal((message.value(), message.schema_version()), (value, bytes(8)))


async def schema_incompatible(cell: Lines, ours: Ours) -> None:
    await (await ours.producer(cell.topic, schema=JsonSchema(Person))).send(Person("Ada", 36))
    await refused(IncompatibleSchema, lambda: ours.producer(cell.topic, schema=StringSchema()))


READING: dict[str, Scenario] = {
    "seek-id": seek_id,
    "seek-time": seek_time,
    "reader": reader,
    "has-message-available": has_message_available,
    "last-message-id": last_message_id,
    "compaction": compaction,
    "compaction-batch": compaction_batch,
    "table-view": table_view,
    "deduplication": deduplication,
    "transactions": transactions,
    "transaction-ack": transaction_ack,
    "schema-string": partial(schema, StringSchema(), "grüße"),
    "schema-json": partial(schema, JsonSchema(Person), Person("Ada", 36)),
    "schema-avro": partial(schema, AvroSchema(Person), Person("Ada", 36)),
    "schema-incompatible": schema_incompatible,
}
