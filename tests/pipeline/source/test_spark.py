"""Reads by `spark.read` and `spark.readStream`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from click.testing import CliRunner

from pulsarium.cli.main import cli
from pulsarium.client import MessageId, connect
from tests.foreign.broker_process import Address

from .topics import admin, numbers, options, publish, unload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MOMENT = datetime(2026, 1, 31, 12, 0, 0, 123000, UTC)


def send(broker: Address, topic: str) -> MessageId:
    async def sending() -> MessageId:
        async with connect(broker.service_url) as client, client.create_producer(topic) as made:
            moment = round(MOMENT.timestamp() * 1000)
            return await made.send(b"content", partition_key="key", event_timestamp=moment, properties={"a": "b"})

    return anyio.run(sending)


def test_a_row_has_every_column_of_its_message(spark: SparkSession, broker: Address, topic: str) -> None:
    message_id = send(broker, topic)
    [row] = spark.read.format("pulsar").options(**options(broker, topic)).load().collect()
    assert bytes(row["value"]) == b"content"
    assert bytes(row["__key"]) == b"key"
    assert row["__topic"] == topic
    assert MessageId.deserialize(bytes(row["__messageId"])) == message_id
    assert abs(row["__publishTime"].astimezone(UTC) - datetime.now(UTC)) < timedelta(minutes=5)
    assert row["__eventTime"].astimezone(UTC) == MOMENT
    assert row["__messageProperties"] == {"a": "b"}


def test_some_columns_of_a_split_topic(spark: SparkSession, broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(1000))
    given = options(broker, topic, minPartitions=4)
    frame = spark.read.format("pulsar").options(**given).schema("__topic string, value binary").load()
    assert frame.columns == ["__topic", "value"]
    assert frame.rdd.getNumPartitions() == 4
    assert [(name, bytes(value)) for name, value in frame.collect()] == [(topic, one) for one in numbers(1000)]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"service.url": None}, 'option("service.url", ...) is missing'),
        ({"endingOffsets": "first"}, '"endingOffsets" must be earliest, latest, a message id'),
        ({}, "topic persistent://public/default/t-"),
    ],
)
def test_errors_say_what_to_do(
    spark: SparkSession, broker: Address, topic: str, more: dict[str, Any], says: str
) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as caught:
        spark.read.format("pulsar").options(**options(broker, topic, **more)).load()
    assert says in str(caught.value)


def run(spark: SparkSession, given: dict[str, str], checkpoint: str, out: Path) -> StreamingQuery:
    """Run a stream until it has read all messages of the topic, and return its query."""
    frame = spark.readStream.format("pulsar").options(**given).load().selectExpr("cast(value as string) value")
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def test_a_stream_over_several_runs(
    spark: SparkSession, broker: Address, topic: str, checkpoint: str, tmp_path: Path
) -> None:
    admin(broker, lambda found: found.topics.create_partitioned_topic(topic, 2))
    publish(broker, topic, [b"%6d" % number for number in range(1000)], batching_max_messages=50)
    given = options(broker, topic, startingOffsets="earliest", maxBytesPerTrigger=6000)
    first = run(spark, given, checkpoint, tmp_path / "out")
    assert len([one for one in first.recentProgress if one["numInputRows"]]) > 2
    publish(broker, topic, [b"%6d" % number for number in range(1000, 1100)], batching_max_messages=50)
    run(spark, given, checkpoint, tmp_path / "out")
    run(spark, given, checkpoint, tmp_path / "out")
    values = [row[0] for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert sorted(values) == [f"{number:6d}" for number in range(1100)]


def test_two_queries_of_one_dataframe_read_everything_until_they_are_abandoned(
    spark: SparkSession, broker: Address, topic: str, checkpoint: str
) -> None:
    publish(broker, topic, numbers(10))
    given = options(broker, topic, startingOffsets="earliest", admin_url=None)
    rows = spark.readStream.format("pulsar").options(**given).load().selectExpr("cast(value as string) value")
    got: dict[str, list[str]] = {"one": [], "other": []}

    def run_again(name: str) -> None:
        def keep(batch: Any, _: int) -> None:
            got[name] += [row[0] for row in batch.collect()]

        writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", f"{checkpoint}/{name}")
        writer.trigger(availableNow=True).start().awaitTermination()

    def subscriptions() -> list[str]:
        return admin(broker, lambda found: found.topics.get_subscriptions(topic))

    run_again("one")
    run_again("other")
    publish(broker, topic, numbers(10, 10))
    run_again("one")
    run_again("one")  # has committed everything
    unload(broker, topic)
    admin(broker, lambda found: found.topics.trim_topic(topic))
    run_again("other")
    assert got == {name: [one.decode() for one in numbers(20)] for name in ("one", "other")}
    assert len(subscriptions()) == 2
    for left, name in ((1, "one"), (0, "other")):
        command = ["abandon", f"{checkpoint}/{name}", "--url", broker.service_url]
        result = CliRunner().invoke(cli, command)
        assert (result.output, result.exit_code) == (f"{topic}: deleted the subscription\n", 0)
        assert len(subscriptions()) == left


@pytest.mark.heavy
def test_a_big_topic_is_read_by_one_task_and_by_four(spark: SparkSession, broker: Address, topic: str) -> None:
    contents = [b"%d" % (number % 150_000) for number in range(200_000)]
    publish(broker, topic, contents, batching_max_messages=777)
    wanted = [one.decode() for one in contents]
    for count in (1, 4):
        frame = spark.read.format("pulsar").options(**options(broker, topic, minPartitions=count)).load()
        assert frame.rdd.getNumPartitions() == count
        assert [row[0] for row in frame.selectExpr("cast(value as string) value").collect()] == wanted


@pytest.mark.heavy
def test_a_failed_query_goes_on(spark: SparkSession, broker: Address, topic: str, checkpoint: str) -> None:
    """The first batches fail once after reading their rows. Spark replays the batches with the same rows."""
    publish(broker, topic, numbers(2000), batching_max_messages=50)
    given = options(broker, topic, startingOffsets="earliest", maxBytesPerTrigger=9000, minPartitions=2)
    seen: dict[int, list[list[str]]] = {}
    failures: list[str] = []  # shows another failure than the planted one

    def keep(frame: Any, batch_id: int) -> None:
        tries = seen.setdefault(batch_id, [])
        tries.append([row[0] for row in frame.collect()])
        if len(tries) == 1 and batch_id < 3:
            raise RuntimeError("dies behind its rows")

    from pyspark.errors import StreamingQueryException

    for _ in range(4):
        frame = spark.readStream.format("pulsar").options(**given).load().selectExpr("cast(value as string) value")
        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint)
        try:
            writer.trigger(availableNow=True).start().awaitTermination()
        except StreamingQueryException as error:
            failures.append(str(error))
            publish(broker, topic, [b"later"])
    assert len(seen) > 3, failures
    assert all(len(seen[batch_id]) == 2 and seen[batch_id][0] == seen[batch_id][1] for batch_id in range(3)), failures
    rows = [value for batch_id in sorted(seen) for value in seen[batch_id][0]]
    assert [value for value in rows if value != "later"] == [one.decode() for one in numbers(2000)]
