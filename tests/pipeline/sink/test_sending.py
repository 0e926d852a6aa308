"""Attempts of a task die anywhere, and each row is stored once and in order."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
import numpy as np
import pyarrow as pa
import pytest
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, IntegerType, MapType, StringType, StructType, TimestampType
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.client import (
    AvroSchema,
    Client,
    InitialPosition,
    Int32Schema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    StringSchema,
)
from pulsarium.pipeline.columns.ragged import Numbers
from pulsarium.pipeline.sink.once import by_content, sequence_ids
from pulsarium.pipeline.sink.options import SinkOptions
from pulsarium.pipeline.sink.sending import Sender, WriteFailed
from pulsarium.pipeline.sink.written import WrittenRows
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.deduplicated import ask
from tests.broker.wire import plain
from tests.client.both import run_on
from tests.client.in_process import InProcess, in_process
from tests.pipeline.columns.messages import record

TOPIC = "persistent://public/default/t"
GIVEN = {"service.url": "pulsar://here:6650", "topic": TOPIC}
SCHEMA = StructType().add("value", BinaryType()).add("__key", StringType())
DEDUPLICATING = Config(brokerDeduplicationEnabled=True)


def rows(count: int, first: int = 0, keys: int = 0) -> pa.RecordBatch:
    numbers = range(first, first + count)
    values = pa.array([b"%d" % n for n in numbers], pa.binary())
    return pa.record_batch(
        [values, pa.array([str(n % keys) if keys else None for n in numbers], pa.string())], names=["value", "__key"]
    )


def numbers(count: int, first: int = 0, batch: int = 0) -> Numbers:
    return sequence_ids(batch, first, count)


def topic_of(inside: InProcess, name: str) -> PersistentTopic:
    found = inside.bed.broker.topics.find(TopicName.parse(name))
    assert isinstance(found, PersistentTopic)
    return found


@asynccontextmanager
async def sending_as(inside: InProcess, name: str = "q-0", **options: str) -> AsyncIterator[Sender]:
    async with (
        inside.client() as client,
        Sender(client, SinkOptions.of({**GIVEN, "schemaType": "none", **options}), SCHEMA, name, 0) as sender,
    ):
        yield sender


async def stored(inside: InProcess, topic: str = TOPIC) -> list[bytes]:
    """Return the contents of all messages in a topic."""
    found = []
    async with (
        inside.client() as client,
        client.subscribe(topic, "s", initial_position=InitialPosition.Earliest) as consumer,
    ):
        with anyio.move_on_after(1):
            while True:
                found.append((await consumer.receive()).data())
    return found


# Pieces that Spark gives an attempt: the number of rows in each, and the ticks of the event loop that follow.
PIECES = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 6)), max_size=5)
ENDS = st.sampled_from(["abandoned", "cut", "killed"])


@given(
    attempts=st.lists(st.tuples(PIECES, ENDS, st.integers(1, 8)), max_size=4),
    partitions=st.sampled_from([0, 3]),
    keys=st.sampled_from([0, 2]),
    count=st.integers(1, 40),
)
@settings(max_examples=40)
def test_attempts_that_die_anywhere(
    attempts: list[tuple[list[tuple[int, int]], str, int]], partitions: int, keys: int, count: int
) -> None:
    """Attempts may split the rows into different entries, because their batch sizes differ."""

    async def history() -> None:
        async with in_process(DEDUPLICATING) as inside:
            if partitions:
                inside.partitioned(TOPIC, partitions)
            for pieces, end, batch_size in attempts:
                await die(inside, pieces, end, batch_size, keys, count)
            async with sending_as(inside) as sender:
                await sender.send(TOPIC, rows(count, keys=keys), numbers(count))
                written = await sender.finish()
            assert written.rows == count
            found = await stored(inside)
            assert sorted(map(int, found)) == list(range(count))
            if not partitions:
                assert list(map(int, found)) == list(range(count))

    run_on("trio", history, jump=True)


async def die(
    inside: InProcess, pieces: list[tuple[int, int]], end: str, batch_size: int, keys: int, count: int
) -> None:
    """Send a part of the rows, and end without waiting for receipts."""
    with anyio.CancelScope() as killed:
        async with sending_as(inside, **{"pulsar.producer.batchingMaxMessages": str(batch_size)}) as sender:
            row = 0
            for size, ticks in pieces:
                size = min(size, count - row)
                if size:
                    await sender.send(TOPIC, rows(size, row, keys), numbers(size, row))
                row += size
                for _ in range(ticks):
                    await anyio.lowlevel.checkpoint()
            if end == "cut":
                await inside.cut()
            elif end == "killed":
                killed.cancel()
                await anyio.lowlevel.checkpoint()
            await sender.abandon()


async def send_all(inside: InProcess, count: int, batch: int = 0, name: str = "q-0", **options: str) -> WrittenRows:
    async with sending_as(inside, name, **options) as sender:
        await sender.send(TOPIC, rows(count, batch * 1000), numbers(count, batch=batch))
        return await sender.finish()


async def test_a_batch_again_and_the_next(autojump_clock: MockClock) -> None:
    async with in_process(DEDUPLICATING) as inside:
        assert await send_all(inside, 5) == WrittenRows(0, 5, 0, {TOPIC: 5})
        assert await send_all(inside, 5) == WrittenRows(0, 5, 5, {TOPIC: 5})
        assert await send_all(inside, 3, batch=1) == WrittenRows(0, 3, 0, {TOPIC: 3})
        assert await stored(inside) == [b"%d" % n for n in (0, 1, 2, 3, 4, 1000, 1001, 1002)]


async def test_of_the_rows_that_the_broker_has_only_the_last_is_sent_again(autojump_clock: MockClock) -> None:
    async with in_process(DEDUPLICATING) as inside:
        inside.partitioned(TOPIC, 2)
        await send_all(inside, 20)
        assert await send_all(inside, 30) == WrittenRows(0, 30, 20, {TOPIC: 30})
        parts = [topic_of(inside, f"{TOPIC}-partition-{index}") for index in range(2)]
        assert [each.messages_in for each in parts] == [10 + 1 + 5] * 2


async def test_a_topic_that_stops_to_deduplicate_fails_the_repeated_batch(autojump_clock: MockClock) -> None:
    async with in_process(DEDUPLICATING) as inside:
        await send_all(inside, 5)
        async with sending_as(inside) as sender:
            await sender.send(TOPIC, rows(1), numbers(1))
            await trio.testing.wait_all_tasks_blocked()
            topic_of(inside, TOPIC).deduplication = None
            await sender.send(TOPIC, rows(4, 1), numbers(4, 1))
            with pytest.raises(WriteFailed, match=f"{TOPIC}, row 4 .*deduplicates no more"):
                await sender.finish()


@pytest.mark.parametrize("is_sorted", [False, True])
async def test_rows_in_another_order(autojump_clock: MockClock, is_sorted: bool) -> None:
    """A shuffle may reorder rows. Half of the rows are then lost and half stored twice, unless rows are sorted."""
    async with in_process(DEDUPLICATING) as inside:
        given = rows(20)
        for attempt, sent in [(given, 10), (given.take(pa.array(range(19, -1, -1))), 20)]:
            (ordered,) = by_content(iter([attempt])) if is_sorted else [attempt]
            async with sending_as(inside) as sender:
                await sender.send(TOPIC, ordered.slice(0, sent), numbers(sent))
                await sender.finish()
        expected = range(20) if is_sorted else [*range(10), *range(10)]
        assert sorted(map(int, await stored(inside))) == sorted(expected)


async def test_other_spark_partitions_and_queries_are_others(autojump_clock: MockClock) -> None:
    async with in_process(DEDUPLICATING) as inside:
        for name in ("q-0", "q-1", "r-0"):
            assert (await send_all(inside, 5, name=name)).known == 0
        assert len(await stored(inside)) == 15


async def test_without_deduplication_it_is_there_twice(autojump_clock: MockClock) -> None:
    """The tests above prove something only because deduplication makes this difference."""
    async with in_process() as inside:
        await send_all(inside, 5)
        assert (await send_all(inside, 5)).known == 0
        assert len(await stored(inside)) == 10


async def test_a_name_whose_batches_are_further(autojump_clock: MockClock) -> None:
    """The broker would drop all messages of the earlier batch without an error."""
    async with in_process(DEDUPLICATING) as inside:
        await send_all(inside, 5, batch=7)
        reason = r"q-0 has written batch 7 already, so that the broker would drop batch 6.*producerName"
        with pytest.raises(WriteFailed, match=reason):
            await send_all(inside, 5, batch=6)


@pytest.mark.parametrize("partitions", [2, 3])
async def test_partitions_in_turns(autojump_clock: MockClock, partitions: int) -> None:
    """The first row of each batch goes to the first partition, wherever the previous batch ended."""
    async with in_process(DEDUPLICATING) as inside:
        inside.partitioned(TOPIC, partitions)
        for batch in range(2):
            await send_all(inside, 7, batch)
        for index in range(partitions):
            expected = [b"%d" % (1000 * batch + n) for batch in range(2) for n in range(index, 7, partitions)]
            assert await stored(inside, f"{TOPIC}-partition-{index}") == expected


@pytest.mark.parametrize("scheme", ["JavaStringHash", "Murmur3_32Hash"])
async def test_keys_have_their_partition(autojump_clock: MockClock, scheme: str) -> None:
    """The partition of a key is the one that other clients choose."""
    async with in_process() as inside:
        inside.partitioned(TOPIC, 4)
        async with sending_as(inside, **{"pulsar.producer.hashingScheme": scheme}) as sender:
            await sender.send(TOPIC, rows(40, keys=10), numbers(40))
            await sender.finish()
        async with inside.client() as client:
            hashing = SinkOptions.of({**GIVEN, "pulsar.producer.hashingScheme": scheme}).hashing_scheme
            async with client.create_producer(TOPIC, hashing_scheme=hashing) as other:
                for n in range(40):
                    await other.send(b"%d" % n, partition_key=str(n % 10))
        partitions = [await stored(inside, f"{TOPIC}-partition-{index}") for index in range(4)]
        assert sum(map(len, partitions)) == 80
        for found in partitions:
            half = len(found) // 2
            assert found[:half] == found[half:]


async def test_a_name_that_is_taken_for_a_while(autojump_clock: MockClock) -> None:
    """An abandoned attempt may still hold the name. The rows that this attempt sends are stored only once."""
    async with in_process(DEDUPLICATING) as inside, inside.client() as client:
        old = await client.create_producer(TOPIC, producer_name="q-0").__aenter__()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send_all, inside, 5)
            await anyio.sleep(20)
            await old.send(b"0", sequence_id=0)
            await old.aclose()
        assert await stored(inside) == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_name_that_stays_taken(autojump_clock: MockClock) -> None:
    async with (
        in_process(DEDUPLICATING) as inside,
        inside.client() as client,
        client.create_producer(TOPIC, producer_name="q-0"),
    ):
        begun = anyio.current_time()
        with pytest.raises(WriteFailed, match=f"{TOPIC}: .*q-0"):
            await send_all(inside, 5, producerBusyTimeoutMs="5000")
        assert 5 <= anyio.current_time() - begun < 7


async def test_all_rows_go_out_through_little_room(autojump_clock: MockClock) -> None:
    async with in_process(DEDUPLICATING) as inside:
        inside.partitioned(TOPIC, 2)
        little = {"pulsar.producer.maxPendingMessages": "3", "pulsar.producer.maxPendingMessagesAcrossPartitions": "2"}
        async with sending_as(inside, **little) as sender:
            await sender.send(TOPIC, rows(50), numbers(50))
            assert (await sender.finish()).rows == 50
        assert len(await stored(inside)) == 50


BIG = [b"", b"x" * (6 << 20), b""]
CHUNKS = {"pulsar.producer.chunkingEnabled": "true"}


def big_rows() -> pa.RecordBatch:
    return pa.record_batch([pa.array(BIG, pa.binary()), pa.nulls(3, pa.string())], names=["value", "__key"])


async def test_a_row_that_is_too_big(autojump_clock: MockClock) -> None:
    async with in_process() as inside, sending_as(inside) as sender:
        await sender.send(TOPIC, rows(3), numbers(3, batch=2))
        await sender.send(TOPIC, big_rows(), numbers(3, 3, batch=2))
        where = rf"{TOPIC}, row 4 of Spark partition 0 in batch 2: .*bytes.*chunkingEnabled"
        with pytest.raises(WriteFailed, match=where):
            await sender.finish()


async def test_a_big_row_goes_in_chunks_and_the_others_in_batches(autojump_clock: MockClock) -> None:
    async with in_process() as inside:
        async with sending_as(inside, **CHUNKS) as sender:
            await sender.send(TOPIC, rows(3), numbers(3))
            await sender.send(TOPIC, big_rows(), numbers(3, 3))
            await sender.finish()
        assert await stored(inside) == [b"0", b"1", b"2", *BIG]
        assert topic_of(inside, TOPIC).ledger.entries_added == 5  # a batch, a row, two chunks, a row


async def test_large_batches_keep_below_the_limit_of_the_broker(autojump_clock: MockClock) -> None:
    """Large rows go in chunks also where the limit of a batch has room for them."""
    async with in_process() as inside:
        async with sending_as(inside, **CHUNKS, **{"pulsar.producer.batchingMaxBytes": str(64 << 20)}) as sender:
            await sender.send(TOPIC, big_rows(), numbers(3))
            await sender.finish()
        assert await stored(inside) == BIG


async def test_a_row_in_chunks_is_stored_once_when_its_batch_is_repeated(autojump_clock: MockClock) -> None:
    """Repeat it after an attempt that died in the row, behind its first chunk, and after one that died at its end."""
    async with in_process(DEDUPLICATING) as inside:
        wire = await inside.bed.connect()
        await wire.producer(topic=TOPIC, producer_name="q-0")
        chunk = plain(b"x", sequence_id=1, uuid="q-0-1", chunk_id=0, num_chunks_from_msg=2)
        await ask(wire, 1, entry=chunk, is_chunk=True)
        await wire.aclose()
        for _ in range(2):
            async with sending_as(inside, **CHUNKS) as sender:
                await sender.send(TOPIC, big_rows(), numbers(3))
                await sender.finish()
        assert await stored(inside) == BIG


async def test_the_properties_of_rows_count_as_bytes_of_a_batch(autojump_clock: MockClock) -> None:
    given = StructType().add("value", BinaryType()).add("__messageProperties", MapType(StringType(), StringType()))
    pairs = pa.array([[("p", "x" * 50_000)]] * 200, pa.map_(pa.string(), pa.string()))
    noted_rows = pa.record_batch([pa.array([b"x"] * 200, pa.binary()), pairs], names=["value", "__messageProperties"])
    async with in_process() as inside, inside.client() as client:
        options = SinkOptions.of({**GIVEN, "schemaType": "none"})
        async with Sender(client, options, given, "q-0", 0) as sender:
            await sender.send(TOPIC, noted_rows, numbers(200))
            await sender.finish()
        assert await stored(inside) == [b"x"] * 200


async def test_a_broker_that_is_gone(autojump_clock: MockClock) -> None:
    """The task fails after sendTimeoutMs, so that Spark repeats it."""
    async with in_process() as inside, sending_as(inside, **{"pulsar.producer.sendTimeoutMs": "2000"}) as sender:
        await sender.send(TOPIC, rows(1), numbers(1))
        await sender.finish()
        inside.bed.broker.alive = False
        await inside.cut()
        await sender.send(TOPIC, rows(1, 1), numbers(1, 1))
        begun = anyio.current_time()
        with pytest.raises(WriteFailed, match=r"row 1 .*sendTimeoutMs"):
            await sender.finish()
        assert anyio.current_time() - begun == pytest.approx(2, abs=0.5)
        await sender.abandon()
        inside.bed.broker.alive = True


async def test_columns_of_a_message(autojump_clock: MockClock) -> None:
    """The first row has a text key, an event time and properties. The second row has a binary key and no value."""
    schema = (
        StructType()
        .add("value", StringType())
        .add("__key", BinaryType())
        .add("__eventTime", TimestampType())
        .add("__messageProperties", MapType(StringType(), StringType()))
    )
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    batch = pa.record_batch(
        {
            "value": pa.array(["a", None]),
            "__key": pa.array([b"key", b"\xff"], pa.binary()),
            "__eventTime": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "__messageProperties": pa.array([[("p", "1")], None], pa.map_(pa.string(), pa.string())),
        }
    )
    async with in_process() as inside, inside.client() as client:
        async with Sender(client, SinkOptions.of(GIVEN), schema, "q-0", 0) as sender:
            await sender.send(TOPIC, batch, numbers(2))
            await sender.finish()
        assert (await client.get_schema(TOPIC)).type == pb.Schema.String
        async with client.subscribe(TOPIC, "s", initial_position=InitialPosition.Earliest) as consumer:
            one, other = [await consumer.receive() for _ in range(2)]
        assert (one.data(), one.partition_key(), one.properties()) == (b"a", "key", {"p": "1"})
        assert one.event_timestamp() == 1767323045678
        assert (other.has_null_value(), other.key_bytes()) == (True, b"\xff")


@pytest.mark.parametrize("kind", ["avro", "json"])
async def test_rows_are_sent_as_records(autojump_clock: MockClock, kind: str) -> None:
    """The first task creates the schema of the topic, and the next task uses that schema."""
    schema = StructType().add("name", StringType()).add("count", IntegerType())
    batch = pa.record_batch({"name": pa.array(["a"]), "count": pa.array([1], pa.int32())})
    async with in_process() as inside, inside.client() as client:
        for partition, said in enumerate([kind, "avro"]):
            options = SinkOptions.of({**GIVEN, "schemaType": said})
            async with Sender(client, options, schema, f"q-{partition}", partition) as sender:
                await sender.send(TOPIC, batch, numbers(1))
                await sender.finish()
        found = await client.get_schema(TOPIC)
        assert found.type == {"avro": pb.Schema.Avro, "json": pb.Schema.Json}[kind]
        nonsense = StructType().add("nonsense", IntegerType())
        async with Sender(client, SinkOptions.of(GIVEN), nonsense, "q-9", 9) as sender:
            with pytest.raises(WriteFailed, match=f"{TOPIC}: .*nonsense"):
                await sender.send(TOPIC, batch, numbers(1))


DEAD, OTHER = "persistent://public/default/dead", "persistent://public/default/other"
NOTED = StructType().add("count", IntegerType()).add("note", BinaryType())


def noted(*counts: int | None) -> pa.RecordBatch:
    """Return rows with these counts."""
    notes = pa.array([b"\xff"] * len(counts), pa.binary())
    return pa.record_batch({"count": pa.array(counts, pa.int32()), "note": notes})


@asynccontextmanager
async def strict_topics(config: Config | None = None) -> AsyncIterator[tuple[InProcess, Client]]:
    """Yield a broker with two topics whose schema requires a count."""
    schema = AvroSchema(record(("count", "int"), ("note", "bytes")))
    async with (
        in_process(config) as inside,
        inside.client() as client,
        client.create_producer(TOPIC, schema=schema),
        client.create_producer(OTHER, schema=schema),
    ):
        yield inside, client


async def test_a_row_that_does_not_fit_fails_with_its_number(autojump_clock: MockClock) -> None:
    async with strict_topics() as (_, client), Sender(client, SinkOptions.of(GIVEN), NOTED, "q-0", 0) as sender:
        with pytest.raises(WriteFailed, match=r"row 2 of Spark partition 0 in batch 0: .*count is null"):
            await sender.send(TOPIC, noted(1, 2, None, 4), numbers(4))


async def test_rows_that_do_not_fit_are_dead_letters_once(autojump_clock: MockClock) -> None:
    """A second attempt, whose record batches have other sizes, adds nothing."""
    options = SinkOptions.of({**GIVEN, "topic": "t", "deadLetterTopic": "dead"})
    async with strict_topics(DEDUPLICATING) as (inside, client):
        written = WrittenRows(0)
        for sizes in ([5], [2, 3]):
            async with Sender(client, options, NOTED, "q-0", 0) as sender:
                row = 0
                for size in sizes:
                    await sender.send("t", noted(1, None, 3, None, 5).slice(row, size), numbers(size, row))
                    row += size
                written = await sender.finish()
        assert written == WrittenRows(0, 5, 5, {"t": 3, DEAD: 2})
        assert len(await stored(inside)) == 3
        async with client.subscribe(DEAD, "s", initial_position=InitialPosition.Earliest) as consumer:
            found = [await consumer.receive() for _ in range(2)]
            with anyio.move_on_after(1):
                found.append(await consumer.receive())
    assert [json.loads(each.data()) for each in found] == [{"count": None, "note": "/w=="}] * 2
    reason = "column count is null, and the topic's schema requires a value there"
    assert found[0].properties() == {"REAL_TOPIC": TOPIC, "REASON": reason}


async def test_dead_letters_of_several_topics_are_in_the_order_of_their_rows(autojump_clock: MockClock) -> None:
    options = SinkOptions.of({**GIVEN, "topic": "", "deadLetterTopic": DEAD})
    async with strict_topics(DEDUPLICATING) as (_, client):
        async with Sender(client, options, NOTED, "q-0", 0) as sender:
            await sender.send(TOPIC, noted(0, None), np.array([0, 2]))
            await sender.send(OTHER, noted(None, 3), np.array([1, 3]))
            await sender.finish()
        async with client.subscribe(DEAD, "s", initial_position=InitialPosition.Earliest) as consumer:
            found = [await consumer.receive() for _ in range(2)]
    assert [each.properties()["REAL_TOPIC"] for each in found] == [OTHER, TOPIC]


async def test_the_topic_of_dead_letters_takes_no_rows(autojump_clock: MockClock) -> None:
    """The broker would drop a letter behind a row with a higher number."""
    options = SinkOptions.of({**GIVEN, "deadLetterTopic": "t"})
    async with strict_topics() as (_, client), Sender(client, options, NOTED, "q-0", 0) as sender:
        with pytest.raises(WriteFailed, match=f"{TOPIC} takes the dead letters, and no rows"):
            await sender.send(TOPIC, noted(1), numbers(1))


@pytest.mark.parametrize("encoding", list(KeyValueEncodingType))
async def test_rows_are_sent_as_pairs(autojump_clock: MockClock, encoding: KeyValueEncodingType) -> None:
    pairs = KeyValueSchema(StringSchema(), Int32Schema(), encoding)
    schema = StructType().add("key", StringType()).add("value", IntegerType())
    batch = pa.record_batch({"key": pa.array(["a", "b"]), "value": pa.array([1, None], pa.int32())})
    async with (
        in_process() as inside,
        inside.client() as client,
        client.subscribe(TOPIC, "s", schema=pairs) as consumer,
        Sender(client, SinkOptions.of(GIVEN), schema, "q-0", 0) as sender,
    ):
        await sender.send(TOPIC, batch, numbers(2))
        await sender.finish()
        found = [await consumer.receive() for _ in range(2)]
    assert [each.value() for each in found] == [KeyValue("a", 1), KeyValue("b", None)]
    assert found[0].key_bytes() == (b"a" if encoding is KeyValueEncodingType.SEPARATED else None)


def test_another_attempt_that_wrote_a_part_of_an_entry() -> None:
    """The broker would drop the whole entry as a duplicate and confirm it, so the older attempt fails."""

    async def test() -> None:
        async with in_process(DEDUPLICATING) as inside:
            async with sending_as(inside) as older:
                await older.send(TOPIC, rows(1, 100), numbers(1))
                await older.finish()
                await inside.cut()
                await older.send(TOPIC, rows(10, 1), numbers(10, 1))
                async with sending_as(inside, producerBusyTimeoutMs="5000") as newer:
                    await newer.send(TOPIC, rows(5), numbers(5))
                    await newer.finish()
                    await newer.abandon()
                with pytest.raises(WriteFailed, match="another producer q-0 published up to 4"):
                    await older.finish()
                await older.abandon()
            async with sending_as(inside) as last:
                await last.send(TOPIC, rows(11), numbers(11))
                await last.finish()
            assert sorted(map(int, await stored(inside))) == [*range(1, 11), 100]

    run_on("trio", test, jump=True)
