"""Messages that are gone between the plan of a read and its tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pulsarium.client import MessageId
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.source.ledgers import Run
from pulsarium.pipeline.source.losses import DataLoss, Watch
from pulsarium.pipeline.source.offsets import Offset, Split
from pulsarium.pipeline.source.places import Position
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
    """Remove 20 planned messages, which are two entries, and add 5. Return the pattern of the report."""
    [name] = admin(broker, lambda found: found.topics.get_subscriptions(topic)) or [""]
    if name:
        admin(broker, lambda found: found.topics.skip_all_messages(topic, name))
    trim(broker, topic)
    publish(broker, topic, numbers(5, 100))
    return rf"data was lost: {topic}: (\d+):0 to \1:1 \(2 entries\), after the read was planned.*failOnDataLoss"


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
    start = stream.initialOffset()
    trimmed(broker, topic)
    stream.latestOffset(start, ReadAllAvailable())
    report = stream.reportLatestOffset()
    assert report is not None
    assert report[topic]["dataLosses"] == "1"


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


class Played:
    """A client of a topic that has these ledgers."""

    def __init__(self, *ledgers: int) -> None:
        self.ledgers = set(ledgers)
        self.asked = 0

    def call(self, _: object) -> Any:
        self.asked += 1
        return self.ledgers


def watch(played: Played) -> Watch:
    runs = (Run(3, 4, 10, 0.0), Run(5, 0, 4, 0.0), Run(9, 0, 6, 0.0))
    return Watch(cast(Pulsar, played), Split("t", Position(3, 4), Position(9, 6), runs), fail=True)


def test_entries_that_all_arrive_are_not_asked_for() -> None:
    watched = watch(played := Played())
    for at in ((3, 5), (3, 10), (5, 1), (5, 4), (9, 6), (9, 8)):
        watched.reached(Position(*at))
    watched.end()
    assert played.asked == 0


def test_absent_entries_of_a_ledger_that_exists_are_not_lost() -> None:
    """Entries of an aborted transaction are absent too, but their ledger exists."""
    watched = watch(played := Played(3, 5, 9))
    watched.reached(Position(3, 7))
    watched.reached(Position(9, 3))
    watched.end()
    assert played.asked == 2


@pytest.mark.parametrize(
    ("reached", "ledgers", "lost"),
    [
        ([(3, 7), (9, 1)], {9}, "3:7 to 3:9, 5:0 to 5:3 (7 entries)"),
        ([(3, 10), (9, 1)], {9}, "5:0 to 5:3 (4 entries)"),
        ([(9, 1)], {5, 9}, "3:4 to 3:9 (6 entries)"),
        ([(3, 10), (5, 4), (9, 2)], {11}, "9:2 to 9:5 (4 entries)"),
    ],
)
def test_absent_entries_of_deleted_ledgers_are_lost(
    reached: list[tuple[int, int]], ledgers: set[int], lost: str
) -> None:
    watched = watch(Played(*ledgers))

    def arrive() -> None:
        for at in reached:
            watched.reached(Position(*at))
        watched.end()

    with pytest.raises(DataLoss) as raised:
        arrive()
    assert lost in str(raised.value)
