"""Messages that are gone between the plan of a read and its tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pulsarium.client import MessageId, bulk
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.source import reading
from pulsarium.pipeline.source.ledgers import LedgerRange
from pulsarium.pipeline.source.losses import DataLoss, Watch
from pulsarium.pipeline.source.offsets import Offset, TopicRange
from pulsarium.pipeline.source.places import ReadPosition
from pulsarium.pipeline.source.readers import PulsarStreamReader
from tests.foreign.broker_process import Address

from .topics import admin, batch_reader, flat, numbers, options, publish, read, stream_reader, trim, unload

FORGIVING = {"failOnDataLoss": "false"}


@pytest.fixture(params=[{}])
def stream(request: pytest.FixtureRequest, broker: Address, topic: str) -> Iterator[PulsarStreamReader]:
    """Yield a reader of a topic with 20 messages."""
    publish(broker, topic, numbers(20))
    reader = stream_reader(options(broker, topic, startingOffsets="earliest", **request.param))
    yield reader
    reader.stop()


def trimmed(broker: Address, topic: str) -> str:
    """Remove 20 planned messages, which are two entries, and add 5. Return the pattern of a report with admin.url."""
    [name] = admin(broker, lambda found: found.topics.get_subscriptions(topic)) or [""]
    if name:
        admin(broker, lambda found: found.topics.skip_all_messages(topic, name))
    trim(broker, topic)
    publish(broker, topic, numbers(5, 100))
    return rf"data was lost: {topic}: (\d+):0 to \1:1 \(2 entries\), after the read was planned.*failOnDataLoss"


NO_ADMIN = {"admin_url": None}


def test_a_read_fails_when_its_messages_are_trimmed_before_the_task(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(20))
    reader = batch_reader(options(broker, topic))
    planned = reader.partitions()
    with pytest.raises(DataLoss, match=trimmed(broker, topic)):
        read(reader, planned)


def test_a_read_warns_of_lost_messages_and_continues_behind_them(
    broker: Address, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    publish(broker, topic, numbers(20))
    unload(broker, topic)
    admin(broker, lambda found: found.topics.create_subscription(topic, "keeps", MessageId.latest))
    publish(broker, topic, numbers(10, 20))
    reader = batch_reader(options(broker, topic, **FORGIVING))
    planned = reader.partitions()
    admin(broker, lambda found: found.topics.trim_topic(topic))
    with caplog.at_level(logging.WARNING):
        assert flat(read(reader, planned)) == numbers(10, 20)
    assert "0 to " in caplog.text
    assert "(2 entries), after the read was planned" in caplog.text


def micro_batch(stream: PulsarStreamReader) -> tuple[Offset, Sequence[InputPartition]]:
    """Plan the first micro-batch, and return its end and its splits."""
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    return end, stream.partitions(start, end)


def test_a_micro_batch_fails_when_its_messages_are_skipped_and_trimmed_before_the_task(
    broker: Address, topic: str, stream: PulsarStreamReader
) -> None:
    _, planned = micro_batch(stream)
    with pytest.raises(DataLoss, match=trimmed(broker, topic)):
        read(stream, planned)


@pytest.mark.parametrize("stream", [NO_ADMIN], indirect=True)
def test_without_admin_url_a_micro_batch_fails_too(broker: Address, topic: str, stream: PulsarStreamReader) -> None:
    _, planned = micro_batch(stream)
    trimmed(broker, topic)
    with pytest.raises(DataLoss, match=rf"{topic} from (\d+):0 on; the first position that still exists is "):
        read(stream, planned)


def test_without_admin_url_a_read_fails_when_its_start_is_gone(broker: Address, topic: str) -> None:
    ids = publish(broker, topic, numbers(20))
    given = options(broker, topic, startingOffsets=str(ReadPosition.of(ids[0])), **NO_ADMIN)
    trimmed(broker, topic)
    reader = batch_reader(given)
    planned = reader.partitions()
    with pytest.raises(DataLoss, match="the first position that still exists"):
        read(reader, planned)


@pytest.mark.parametrize("more", [{}, NO_ADMIN])
def test_a_read_of_several_ledgers_that_exist_loses_nothing(broker: Address, topic: str, more: dict[str, None]) -> None:
    for first in (0, 10, 20):
        publish(broker, topic, numbers(10, first))
        unload(broker, topic)
    reader = batch_reader(options(broker, topic, **more))
    assert flat(read(reader, reader.partitions())) == numbers(30)


@pytest.mark.parametrize("stream", [FORGIVING], indirect=True)
def test_a_micro_batch_warns_of_lost_messages_and_the_next_one_continues(
    broker: Address, topic: str, stream: PulsarStreamReader, caplog: pytest.LogCaptureFixture
) -> None:
    end, planned = micro_batch(stream)
    trimmed(broker, topic)
    assert flat(read(stream, planned)) == []
    assert "(2 entries), after the read was planned" in caplog.text
    behind = stream.latestOffset(end, ReadAllAvailable())
    assert flat(read(stream, stream.partitions(end, behind))) == numbers(5, 100)


@pytest.mark.parametrize("stream", [FORGIVING], indirect=True)
def test_the_progress_of_a_stream_counts_the_losses_that_its_plans_noticed(
    broker: Address, topic: str, stream: PulsarStreamReader
) -> None:
    start, _ = micro_batch(stream)
    publish(broker, topic, numbers(20, 20))
    trimmed(broker, topic)
    stream.latestOffset(start, ReadAllAvailable())
    report = stream.reportLatestOffset()
    assert report is not None
    assert report[topic]["dataLosses"] == "1"


@pytest.mark.parametrize("more", [[], [b"behind the split"]])
def test_messages_that_a_reader_skips_while_it_reads_are_read(
    broker: Address, topic: str, more: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expiry moves the cursor of a task's reader as a skip does. The messages exist until their ledger is deleted."""
    monkeypatch.setattr(bulk, "READ_AHEAD", 1000)
    monkeypatch.setattr(reading, "ROWS", 1)
    contents = [b"%100d" % number for number in range(300)]
    publish(broker, topic, contents, batching_max_messages=1)
    reader = batch_reader(options(broker, topic, **{"pulsar.reader.receiverQueueSize": 5}))
    [split] = reader.partitions()
    batches = reader.read(split)
    found = next(batches).column(0).to_pylist()
    [name] = admin(broker, lambda found: found.topics.get_stats(topic))["subscriptions"]
    admin(broker, lambda found: found.topics.skip_all_messages(topic, name))
    if more:
        publish(broker, topic, more)
    found += [value for batch in batches for value in batch.column(0).to_pylist()]
    assert found == contents


def test_a_topic_that_is_deleted_before_the_task_is_lost_data(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(20))
    reader, forgiving = (batch_reader(options(broker, topic, **more)) for more in ({}, FORGIVING))
    planned = reader.partitions()
    admin(broker, lambda found: found.topics.delete(topic, force=True))
    with pytest.raises(DataLoss, match=f"all of {topic} from .*: the topic does not exist any more"):
        read(reader, planned)
    assert flat(read(forgiving, planned)) == []


def test_messages_of_a_topic_that_is_created_anew_do_not_replace_lost_ones(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(20))
    reader = batch_reader(options(broker, topic))
    planned = reader.partitions()
    admin(broker, lambda found: found.topics.delete(topic, force=True))
    publish(broker, topic, numbers(30))
    with pytest.raises(DataLoss, match="2 entries"):
        read(reader, planned)


def test_a_partition_that_the_topic_has_no_more_is_lost_data(broker: Address, topic: str) -> None:
    def make(partitions: int) -> None:
        admin(broker, lambda found: found.topics.create_partitioned_topic(topic, partitions))
        publish(broker, topic, numbers(30), batching_max_messages=1)

    make(3)
    reader, forgiving = (batch_reader(options(broker, topic, **more)) for more in ({}, FORGIVING))
    *others, last = reader.partitions()
    admin(broker, lambda found: found.topics.delete_partitioned_topic(topic, force=True))
    make(2)
    with pytest.raises(DataLoss, match=f"all of {topic}-partition-2 from .*: the topic does not exist any more"):
        read(reader, [last])
    for split in others:
        with pytest.raises(DataLoss, match="10 entries"):
            read(reader, [split])
    assert flat(read(forgiving, [*others, last])) == []


class Played:
    """A client of a topic whose first ledger is this one."""

    def __init__(self, first: int = 0) -> None:
        self.first = ReadPosition(first, 0)
        self.asked = 0

    def call(self, _: object) -> Any:
        self.asked += 1
        return self.first


def watch(played: Played) -> Watch:
    runs = (LedgerRange(3, 4, 10, 0.0), LedgerRange(5, 0, 4, 0.0), LedgerRange(9, 0, 6, 0.0))
    return Watch(cast(Pulsar, played), TopicRange("t", ReadPosition(3, 4), ReadPosition(9, 6), runs), fail=True)


def test_entries_that_all_arrive_are_not_asked_for() -> None:
    watched = watch(played := Played())
    for at in ((3, 5), (3, 10), (5, 1), (5, 4), (9, 6), (9, 8)):
        watched.reached(ReadPosition(*at))
    watched.end()
    assert played.asked == 0


def test_absent_entries_of_a_ledger_that_exists_are_not_lost() -> None:
    """Entries of an aborted transaction are absent too, but their ledger exists."""
    watched = watch(played := Played(3))
    watched.reached(ReadPosition(3, 7))
    watched.reached(ReadPosition(9, 3))
    watched.end()
    assert played.asked == 2


@pytest.mark.parametrize(
    ("reached", "first", "lost"),
    [
        ([(3, 7), (9, 1)], 9, "3:7 to 3:9, 5:0 to 5:3 (7 entries)"),
        ([(3, 10), (9, 1)], 9, "5:0 to 5:3 (4 entries)"),
        ([(9, 1)], 5, "3:4 to 3:9 (6 entries)"),
        ([(3, 10), (5, 4), (9, 2)], 11, "9:2 to 9:5 (4 entries)"),
    ],
)
def test_absent_entries_of_deleted_ledgers_are_lost(reached: list[tuple[int, int]], first: int, lost: str) -> None:
    watched = watch(Played(first))

    def arrive() -> None:
        for at in reached:
            watched.reached(ReadPosition(*at))
        watched.end()

    with pytest.raises(DataLoss) as raised:
        arrive()
    assert lost in str(raised.value)


@pytest.mark.parametrize(
    ("reached", "asked"), [([(3, 7), (3, 9)], 0), ([(3, 7), (5, 1), (5, 4)], 1), ([(3, 10), (9, 6)], 1), ([(9, 6)], 1)]
)
def test_where_entries_are_unknown_the_broker_is_asked_at_each_ledger(
    reached: list[tuple[int, int]], asked: int
) -> None:
    watched = Watch(
        cast(Pulsar, played := Played(3)), TopicRange("t", ReadPosition(3, 4), ReadPosition(9, 6)), fail=True
    )
    for at in reached:
        watched.reached(ReadPosition(*at))
    assert played.asked == asked


def test_a_ledger_with_unknown_entries_that_is_gone_is_lost() -> None:
    watched = Watch(cast(Pulsar, Played(9)), TopicRange("t", ReadPosition(3, 4), ReadPosition(9, 6)), fail=True)
    watched.reached(ReadPosition(3, 7))
    with pytest.raises(DataLoss, match="t from 3:7 on; the first position that still exists is 9:0"):
        watched.reached(ReadPosition(9, 1))


def test_the_end_of_a_split_with_unknown_entries_must_be_reached() -> None:
    watched = Watch(cast(Pulsar, Played(9)), TopicRange("t", ReadPosition(3, 4), ReadPosition(3, 9)), fail=True)
    watched.reached(ReadPosition(3, 7))
    with pytest.raises(DataLoss, match="t from 3:7 on"):
        watched.end()
