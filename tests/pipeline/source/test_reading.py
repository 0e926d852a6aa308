"""Splits read from a broker in this process. Each message is read once, even when the connection breaks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest import mock

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, StringType, StructType

from pulsarium.client import AvroSchema, Client, MessageId
from pulsarium.client.producer import topic_producer
from pulsarium.client.schema import versions
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.options import ConnectionOptions
from pulsarium.pipeline.source import reading
from pulsarium.pipeline.source.offsets import TopicRange
from pulsarium.pipeline.source.places import FIRST, ReadPosition
from pulsarium.pipeline.source.reading import ReadError, Reading, SplitReader
from pulsarium.proto.entry import build
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.both import run_on
from tests.client.in_process import InProcess, in_process

TOPIC = "persistent://public/default/split"
VALUE = StructType().add("value", BinaryType())
FAR = 100.0  # seconds: no batch is sent because of its delay


def reading_of(columns: Columns | None = None, wanted: StructType = VALUE, queue: int = 3) -> Reading:
    return Reading(ConnectionOptions("pulsar://here:6650"), columns or Columns.of(None), wanted, 5.0, queue)


async def read(client: Client, start: ReadPosition, end: ReadPosition, *, inside: InProcess | None = None) -> list[Any]:
    """Return the values of a split. With `inside`, cut the connection twice."""
    split, builder = (
        SplitReader(client, TopicRange(TOPIC, start, end), reading_of()),
        Columns.of(None).for_reading(VALUE),
    )
    found: list[Any] = []
    breaks, is_done = 2 if inside is not None else 0, False
    try:
        while not is_done:
            is_done = await split.fill(builder)
            found += [row["value"] for row in builder.take().to_pylist()]
            if breaks and inside is not None:
                breaks -= 1
                await inside.cut()
    finally:
        await split.aclose()
    return found


def behind(message_id: MessageId) -> ReadPosition:
    return ReadPosition(message_id.ledger_id, message_id.entry_id + 1)


@given(
    batches=st.lists(st.integers(1, 6), min_size=1, max_size=8),
    chunks=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    cuts=st.sets(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=4),
    breaks=st.booleans(),
)
@settings(max_examples=40)
def test_splits_have_each_message_once(
    batches: list[int], chunks: list[int], cuts: set[tuple[int, int]], breaks: bool
) -> None:
    async def test() -> None:
        async with in_process() as inside, inside.client() as client:
            sent, last = await publish(client, batches, chunks)
            end = behind(last)
            inner = sorted(
                {place for entry, index in cuts if (place := ReadPosition(last.ledger_id, entry, index)) < end}
            )
            edges, found = [FIRST, *inner, end], []
            with mock.patch.object(reading, "ROWS", 2):
                for one, other in pairwise(edges):
                    found += await read(client, one, other, inside=inside if breaks else None)
            assert found == sent

    run_on("trio", test, jump=True)


async def publish(client: Client, batches: list[int], chunks: list[int]) -> tuple[list[bytes], MessageId]:
    """Publish batches of these sizes, each followed by a chunked message unless its number in `chunks` is 0."""
    sent: list[bytes] = []
    last = MessageId.earliest
    for number, size in enumerate(batches):
        contents = [b"%d-%d" % (number, each) for each in range(size)]
        async with client.create_producer(
            TOPIC, batching_max_messages=size, batching_max_publish_delay=FAR
        ) as producer:
            receipts = [producer.send_nowait(content) for content in contents]
            await producer.flush()
            last = await receipts[-1].wait()
        sent += contents
        if (parts := chunks[number % len(chunks)]) > 0:
            content = b"%d" % number + b"x" * (60 * parts)
            async with client.create_producer(
                TOPIC, batching_enabled=False, chunking_enabled=True, chunk_max_message_size=100
            ) as producer:
                last = await producer.send(content)
            sent.append(content)
    return sent, last


def test_damaged_entries_end_it() -> None:
    async def test() -> None:
        async with in_process() as inside, inside.client() as client:
            async with client.create_producer(TOPIC, batching_enabled=False) as producer:
                await producer.send(b"one")
                with mock.patch.object(topic_producer, "encode", damaged):
                    bad = await producer.send(b"two")
                last = await producer.send(b"three")
            assert await read(client, behind(bad), behind(last)) == [b"three"]
            with pytest.raises(ReadError, match=rf"split.*the entry at {bad.ledger_id}:{bad.entry_id}: LZ4"):
                await read(client, FIRST, behind(last))

    run_on("trio", test, jump=True)


def damaged(encoder: object, metadata: pb.MessageMetadata, drafts: object) -> bytes:
    metadata.compression, metadata.uncompressed_size = pb.LZ4, 100
    return build(metadata, b"\xff\xff\xffnonsense")


@pytest.mark.parametrize("patience", [0.25, 0.0])
def test_a_last_chunk_that_comes_while_the_broker_is_asked(patience: float) -> None:
    async def test() -> None:
        async with in_process() as inside, inside.client() as client:
            last = (await publish(client, [1], [4]))[1]
            with mock.patch.object(reading, "PATIENCE", patience):
                found = await read(client, ReadPosition(*last.entry), behind(last))
            assert found == [b"0" + b"x" * 240]

    run_on("trio", test, jump=True)


@dataclass
class Order:
    name: str


def test_a_registry_that_takes_its_time() -> None:
    real = versions.fetch

    async def slow(*args: Any) -> Any:
        await anyio.sleep(3 * reading.PATIENCE)
        return await real(*args)

    async def test() -> None:
        schema = AvroSchema(Order)
        columns, wanted = Columns.of(schema.info), StructType().add("name", StringType())
        async with in_process() as inside, inside.client() as client:
            async with client.create_producer(TOPIC, schema=schema) as producer:
                last = await producer.send(Order("Ada"))
            split = SplitReader(client, TopicRange(TOPIC, FIRST, behind(last)), reading_of(columns, wanted))
            builder = columns.for_reading(wanted)
            with mock.patch.object(versions, "fetch", slow):
                assert await split.fill(builder)
            await split.aclose()
            assert builder.take().to_pylist() == [{"name": "Ada"}]

    run_on("trio", test, jump=True)
