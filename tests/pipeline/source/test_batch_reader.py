"""Batch reads, planned and read without Spark."""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import anyio
import pytest

from pulsarium.client import AvroSchema, CompressionType, JsonSchema, MessageId, connect
from pulsarium.pipeline.columns.names import METADATA
from pulsarium.pipeline.options import BadOption
from pulsarium.pipeline.source import entries, reading
from pulsarium.pipeline.source.losses import DataLoss
from pulsarium.pipeline.source.offsets import TopicRange
from pulsarium.pipeline.source.places import ReadPosition
from pulsarium.pipeline.source.reading import ReadError
from pulsarium.pipeline.source.topics import NoSuchTopic
from tests.foreign.broker_process import Address

from .topics import batch_reader, flat, numbers, options, publish, read, trim, unload, values


def test_all_of_a_topic_in_order(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(995))
    assert values(broker, topic) == [numbers(995)]


def test_a_task_does_not_wait_behind_the_last_message(
    broker: Address, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "PATIENCE", float("inf"))
    publish(broker, topic, numbers(995))
    assert values(broker, topic) == [numbers(995)]


def test_without_admin_url(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(25))
    assert values(broker, topic, admin_url=None) == [numbers(25)]


def test_a_batch_of_an_empty_topic_has_no_rows(broker: Address, topic: str) -> None:
    publish(broker, topic, [])
    reader = batch_reader(options(broker, topic))
    assert reader.partitions() == []


@pytest.mark.parametrize("compression", list(CompressionType))
def test_compressed_messages_are_read(broker: Address, topic: str, compression: CompressionType) -> None:
    publish(broker, topic, numbers(30), compression_type=compression)
    assert values(broker, topic) == [numbers(30)]


def test_single_messages_are_cut_into_equal_partitions(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(30), batching_enabled=False)
    assert values(broker, topic, minPartitions=3) == [numbers(10), numbers(10, 10), numbers(10, 20)]


def test_partitions_of_a_topic_and_of_several(broker: Address, topic: str) -> None:
    async def create() -> None:
        async with connect(broker.service_url, admin_url=broker.admin_url) as client:
            await client.admin.topics.create_partitioned_topic(topic, 3)

    anyio.run(create)
    publish(broker, topic, numbers(90), batching_max_messages=1)
    publish(broker, f"{topic}-more", numbers(10, 90))
    found = values(broker, topic)
    assert len(found) == 3
    assert sorted(flat(found)) == sorted(numbers(90))
    assert sorted(flat(values(broker, f"{topic}-partition-1"))) == sorted(found[1])
    several = values(broker, None, topics=f"{topic}, {topic}-more")
    assert sorted(flat(several)) == sorted(numbers(100))
    pattern = values(broker, None, topicsPattern=topic.removeprefix("persistent://public/default/") + ".*")
    assert sorted(flat(pattern)) == sorted(numbers(100))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_split_by_index(broker: Address, topic: str, count: int) -> None:
    """Splits have about equal numbers of messages, even when the sizes of batches differ much."""
    for size in (1, 300, 3, 50, 40, 2):
        publish(broker, topic, [b"%d" % size] * size, batching_max_messages=size)
    publish(broker, topic, numbers(300), batching_max_messages=1)
    found = values(broker, topic, minPartitions=count)
    assert flat(found) == flat([[b"%d" % size] * size for size in (1, 300, 3, 50, 40, 2)]) + numbers(300)
    assert len(found) <= count
    assert len(found) >= min(count, 3)
    if count == 2:  # the cut is before the entry with the middle message; a cut by entries gives 549
        assert [len(one) for one in found] == [304, 392]


def test_as_many_messages_as_a_partition_may_have(broker: Address, topic: str) -> None:
    publish(broker, topic, [b"x" * 5000] * 1000)  # large enough that the plan asks for indexes
    found = values(broker, topic, maxRecordsPerPartition=250)
    assert [len(one) for one in found] == [250, 250, 250, 250]


def test_split_of_one_ledger_without_asking(broker: Address, topic: str) -> None:
    ids = publish(broker, topic, numbers(100))
    start = f"{ids[0].ledger_id}:{ids[0].entry_id}"
    found = values(broker, topic, admin_url=None, minPartitions=5, startingOffsets=start)
    assert [len(one) for one in found] == [20] * 5
    assert flat(found) == numbers(100)


def test_of_several_ledgers(broker: Address, topic: str) -> None:
    ledgers: set[int] = set()
    for first in range(0, 90, 30):
        ledgers |= {one.ledger_id for one in publish(broker, topic, numbers(30, first))}
        unload(broker, topic)
    assert len(ledgers) == 3
    found = values(broker, topic, minPartitions=4)
    assert flat(found) == numbers(90)
    assert len(found) == 4


# ---- start and end


def test_from_message_to_message_both_included(broker: Address, topic: str) -> None:
    ids = publish(broker, topic, numbers(50))
    start = json.dumps({topic: list(ids[13].serialize())})
    end = json.dumps({topic: list(ids[37].serialize())})
    assert flat(values(broker, topic, startingOffsets=start, endingOffsets=end)) == numbers(25, 13)
    assert flat(values(broker, topic, startingOffsets=start, endingOffsets=end, minPartitions=2)) == numbers(25, 13)


def test_offsets_of_entries_select_whole_entries(broker: Address, topic: str) -> None:
    ids = publish(broker, topic, numbers(50))
    start, end = (f"{ids[at].ledger_id}:{ids[at].entry_id}" for at in (13, 37))
    assert values(broker, topic, startingOffsets=start, endingOffsets=end) == [numbers(30, 10)]


def test_offsets_by_index_bound_a_read(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(50))
    assert values(broker, topic, startingOffsets="index:13", endingOffsets="index:38") == [numbers(25, 13)]
    assert values(broker, topic, startingOffsets="index:45", endingOffsets="index:99") == [numbers(5, 45)]
    with pytest.raises(BadOption, match=r"needs \.option\(\"admin.url\""):
        values(broker, topic, startingOffsets="index:13", admin_url=None)


def test_times_of_publishing_bound_a_read(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(20))
    cut = _a_later_millisecond()
    publish(broker, topic, numbers(20, 20))
    later = _a_later_millisecond()
    publish(broker, topic, numbers(20, 40))
    assert values(broker, topic, startingTime=cut, endingTime=later) == [numbers(20, 20)]
    assert values(broker, topic, startingTime=later) == [numbers(20, 40)]
    assert values(broker, topic, endingTime=json.dumps({topic: cut})) == [numbers(20)]
    assert values(broker, topic, startingTime=_a_later_millisecond()) == []


def _a_later_millisecond() -> int:
    now = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= now:
        pass
    return now + 1


def test_latest_is_that_of_the_planning(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(20))
    reader = batch_reader(options(broker, topic))
    planned = reader.partitions()
    publish(broker, topic, numbers(20, 20))
    assert read(reader, planned) == [numbers(20)]
    assert values(broker, topic, startingOffsets="latest") == []


def test_an_end_that_never_comes(broker: Address, topic: str) -> None:
    """Compaction may have removed the last entries, or these are no messages. The broker then reports the end."""
    [*_, last] = publish(broker, topic, numbers(20))
    reader = batch_reader(options(broker, topic))
    [split] = reader.partitions()
    assert isinstance(split, TopicRange)
    beyond = TopicRange(split.topic, split.start, split.end._replace(ledger=last.ledger_id + 5))
    assert read(reader, [beyond]) == [numbers(20)]


# ---- chunks


def test_chunks_across_splits(broker: Address, topic: str) -> None:
    """A message belongs to the split with its last chunk, even when its first chunk is in another split."""
    contents = [b"%d" % number * 300 for number in range(100, 108)]  # each in three entries
    publish(broker, topic, contents, batching_enabled=False, chunking_enabled=True, chunk_max_message_size=300)
    for count in (1, 5, 24):
        found = values(broker, topic, minPartitions=count)
        assert flat(found) == contents
        assert len(found) == count


def test_chunks_far_from_each_other(broker: Address, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader looks further and further back for a first chunk that is far away."""
    tried: list[int] = []

    def too_near(ledger: int, entry: int, size: int) -> MessageId:
        tried.append(entry)
        return MessageId(ledger, entry - 1)

    monkeypatch.setattr(reading, "_STEPS", (too_near, *reading._STEPS[1:]))
    contents = [b"%d" % number * 300 for number in range(100, 103)]
    publish(broker, topic, contents, batching_enabled=False, chunking_enabled=True, chunk_max_message_size=300)
    assert values(broker, topic, minPartitions=3, startingOffsets="index:2") == [[one] for one in contents]
    assert tried == [2, 5]  # the last chunks of messages that begin before their split


def test_looking_back_further_each_time() -> None:
    look_back = reading.LookBack(ReadPosition(0, 490), ReadPosition(0, 510))
    look_back.orphan = (0, 500)
    look_back._size = 10
    assert [look_back.needed_from() for _ in range(3)] == [MessageId(0, 360), MessageId(0, 0), MessageId.earliest]


# ---- schemas and columns


@dataclass
class Order:
    name: str
    count: int


@pytest.mark.parametrize("schema", [AvroSchema(Order), JsonSchema(Order)])
def test_columns_by_schema(broker: Address, topic: str, schema: AvroSchema[Any] | JsonSchema[Any]) -> None:
    publish(broker, topic, [Order(name=f"n{number}", count=number) for number in range(20)], schema=schema)
    from pulsarium.pipeline.data_source import PulsarDataSource

    source = PulsarDataSource(options(broker, topic))
    wanted = source.schema()
    assert wanted.names == ["name", "count", *METADATA.names]
    reader = source.reader(wanted)
    [split] = reader.partitions()
    [batch] = list(pickle.loads(pickle.dumps(reader)).read(split))
    assert batch.column("name").to_pylist() == [f"n{number}" for number in range(20)]
    assert batch.column("count").to_pylist() == list(range(20))
    assert set(batch.column("__topic").to_pylist()) == {topic}
    assert MessageId.deserialize(batch.column("__messageId")[13].as_py()).batch_index == 3


def test_topics_of_different_schemas(broker: Address, topic: str) -> None:
    publish(broker, topic, [Order(name="n", count=1)], schema=JsonSchema(Order))
    publish(broker, f"{topic}-plain", [b"plain"])
    both = f"{topic},{topic}-plain"
    with pytest.raises(BadOption, match=f"{topic} and {topic}-plain have different schemas"):
        values(broker, None, topics=both)
    found = values(broker, None, topics=both, allowDifferentTopicSchemas="true")
    assert [json.loads(found[0][0]), found[1][0]] == [{"name": "n", "count": 1}, b"plain"]


# ---- errors


def test_no_such_topic(broker: Address, topic: str) -> None:
    with pytest.raises(NoSuchTopic, match=f"topic {topic} does not exist"):
        values(broker, topic)
    with pytest.raises(NoSuchTopic):  # the first read has not created the topic
        values(broker, topic)


def test_a_place_for_a_topic_that_is_not_read(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(1))
    with pytest.raises(BadOption, match="which is not read"):
        values(broker, topic, startingOffsets='{"other": "earliest"}')


def test_lost_data_fails_a_read_unless_it_is_allowed(broker: Address, topic: str) -> None:
    [gone, *_] = publish(broker, topic, numbers(20))
    trim(broker, topic)
    publish(broker, topic, numbers(20, 20))
    start = f"{gone.ledger_id}:{gone.entry_id + 1}"
    with pytest.raises(DataLoss, match=f"{topic} from {start} on"):
        values(broker, topic, startingOffsets=start)
    assert flat(values(broker, topic, startingOffsets=start, failOnDataLoss="false")) == numbers(20, 20)
    assert flat(values(broker, topic)) == numbers(20, 20)


def test_a_failed_read_names_the_topic_and_its_positions(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(5))
    reader = batch_reader(options(broker, topic, pollTimeoutMs=1))
    [split] = reader.partitions()
    broken = pickle.loads(pickle.dumps(reader))
    object.__setattr__(broken._reading.connection, "service_url", "pulsar://127.0.0.1:1")
    object.__setattr__(broken._reading.connection, "operation_timeout", 0.2)
    with pytest.raises(ReadError, match=f"{topic} from -1:-1 to .*: ConnectError|Timeout"):
        read(broken, [split])


def test_pairs_of_splits_meet(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(500))
    splits = batch_reader(options(broker, topic, minPartitions=9)).partitions()
    assert all(one.end == other.start for one, other in pairwise(splits))  # type: ignore[attr-defined]
