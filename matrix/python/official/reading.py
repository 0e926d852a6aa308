"""Scenarios of reading: start positions, compaction, deduplication and schemas."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pulsar
from pulsar.schema import AvroSchema, Integer, JsonSchema, Record, String, StringSchema

from pulsarium.matrix.python.lines import MOMENT, Lines, Scenario, equal, texts, that
from pulsarium.matrix.python.official.support import (
    MILLISECONDS,
    client,
    consume,
    nothing_more,
    receive,
    refused,
    send,
    single,
    subscribe,
    text,
)


class Person(Record):  # type: ignore[misc]
    """The record of the scenarios with schemas."""

    name = String()
    age = Integer()


def seek_id(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        ids = send(single(ours, cell.topic), texts(0, 10))
        equal(consume(consumer, 10), texts(0, 10))
        consumer.seek(ids[4])
        first = consume(consumer, 1)[0]
        that(first in ("a0004", "a0005"), f"{first} came first")
        equal(consume(consumer, 9 - int(first[1:])), texts(int(first[1:]) + 1, 10))


def seek_time(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        producer = single(ours, cell.topic)
        send(producer, texts(0, 5))
        time.sleep(MOMENT)
        moment = int(time.time() * 1000)
        send(producer, texts(5, 10))
        equal(consume(consumer, 10), texts(0, 10))
        consumer.seek(moment)
        equal(consume(consumer, 5), texts(5, 10))
        nothing_more(consumer)


def reader(cell: Lines) -> None:
    with client(cell) as ours:
        ids = send(single(ours, cell.topic), texts(0, 10))
        everything = ours.create_reader(cell.topic, pulsar.MessageId.earliest)
        equal([text(everything.read_next(MILLISECONDS)) for _ in range(10)], texts(0, 10))
        behind = ours.create_reader(cell.topic, ids[4])
        equal([text(behind.read_next(MILLISECONDS)) for _ in range(5)], texts(5, 10))


def has_message_available(cell: Lines) -> None:
    with client(cell) as ours:
        producer = single(ours, cell.topic)
        send(producer, texts(0, 3))
        reading = ours.create_reader(cell.topic, pulsar.MessageId.earliest)
        for wanted in texts(0, 3):
            that(reading.has_message_available(), "false at the beginning")
            equal(text(reading.read_next(MILLISECONDS)), wanted)
        that(not reading.has_message_available(), "true at the end")
        send(producer, texts(3, 4))
        that(reading.has_message_available(), "false after one more")


def last_message_id(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        ids = send(single(ours, cell.topic), texts(0, 5))
        last = consumer.get_last_message_id()
        equal((last.ledger_id(), last.entry_id()), (ids[4].ledger_id(), ids[4].entry_id()))


def compaction(cell: Lines) -> None:
    with client(cell) as ours:
        # The subscription must exist first, so that compaction retains its messages.
        subscribe(ours, cell.topic, is_read_compacted=True).close()
        producer = single(ours, cell.topic)
        for version in "12":
            for key in "abc":
                producer.send((key + version).encode(), partition_key=key)
        cell.do("compact")
        consumer = subscribe(ours, cell.topic, is_read_compacted=True)
        equal(consume(consumer, 3), ["a2", "b2", "c2"])
        nothing_more(consumer)


def table_view(cell: Lines) -> None:
    with client(cell) as ours:
        producer = single(ours, cell.topic)
        for key, value in (("a", b"1"), ("b", b"2"), ("a", b"3")):
            producer.send(value, partition_key=key)
        view = ours.create_table_view(cell.topic)
        equal((view.get("a"), view.get("b")), (b"3", b"2"))
        producer.send(b"4", partition_key="b")
        end = time.monotonic() + 10
        while view.get("b") != b"4" and time.monotonic() < end:
            time.sleep(MOMENT)
        equal(view.get("b"), b"4")
        view.close()


def deduplication(cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic)
        for numbers in ((0, 1, 2), (1, 2, 3)):
            producer = single(ours, cell.topic, producer_name="p")
            for number in numbers:
                producer.send(texts(number, number + 1)[0].encode(), sequence_id=number)
            producer.close()
        equal(consume(consumer, 4), texts(0, 4))
        nothing_more(consumer)


def schema(kind: Any, value: Any, cell: Lines) -> None:
    with client(cell) as ours:
        consumer = subscribe(ours, cell.topic, schema=kind)
        ours.create_producer(cell.topic, schema=kind).send(value)
        (message,) = receive(consumer, 1)
        equal(message.value(), value)
        that(message.schema_version() in (bytes(8), "\0" * 8), f"version {message.schema_version()!r}")


def schema_incompatible(cell: Lines) -> None:
    with client(cell) as ours:
        ours.create_producer(cell.topic, schema=JsonSchema(Person)).send(Person(name="Ada", age=36))
        refused(pulsar.PulsarException, lambda: ours.create_producer(cell.topic, schema=StringSchema()))


READING: dict[str, Scenario] = {
    "seek-id": seek_id,
    "seek-time": seek_time,
    "reader": reader,
    "has-message-available": has_message_available,
    "last-message-id": last_message_id,
    "compaction": compaction,
    "table-view": table_view,
    "deduplication": deduplication,
    "schema-string": partial(schema, StringSchema(), "grüße"),
    "schema-json": partial(schema, JsonSchema(Person), Person(name="Ada", age=36)),
    "schema-avro": partial(schema, AvroSchema(Person), Person(name="Ada", age=36)),
    "schema-incompatible": schema_incompatible,
}
