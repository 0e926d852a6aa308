"""Writes by `df.write` and `writeStream`, read back with the official client.

Checks of a stream that its topic deduplicates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulsar
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from pulsarium.pipeline.options import ConnectionOptions, Options
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.sink.once import NoDeduplication, Unchecked, require_deduplication
from pulsarium.rest.policies import DEDUPLICATION
from tests.foreign.broker_process import Address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@pytest.fixture
def target(broker: Address) -> dict[str, str]:
    return {"service.url": broker.service_url, "admin.url": broker.admin_url}


def make_partitions(broker: Address, topic: str, count: int) -> None:
    with Pulsar(ConnectionOptions(broker.service_url, broker.admin_url)) as made:
        made.call(made.client.admin.topics.create_partitioned_topic, topic, count)


@pytest.fixture
def official(broker: Address) -> Iterator[pulsar.Client]:
    client = pulsar.Client(broker.service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull))
    yield client
    client.close()


def messages(client: pulsar.Client, topic: str, **options: Any) -> list[pulsar.Message]:
    """Return all messages of a topic."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest, **options)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(timeout_millis=30_000))
    reader.close()
    return found


def numbers(client: pulsar.Client, topic: str) -> list[int]:
    return sorted(int(each.data()) for each in messages(client, topic))


def test_a_data_frame(spark: SparkSession, target: dict[str, str], topic: str, official: pulsar.Client) -> None:
    rows = spark.range(1000, numPartitions=2).selectExpr(
        "cast(id as string) value", "cast(id % 10 as string) __key", "map('p', cast(id as string)) __messageProperties"
    )
    rows.write.format("pulsar").options(topic=topic, **target).mode("append").save()
    found = messages(official, topic)
    assert sorted(int(each.data()) for each in found) == list(range(1000))
    assert all(each.partition_key() == each.value()[-1:].decode() for each in found)
    assert all(each.properties() == {"p": each.value().decode()} for each in found)
    for name in {each.producer_name() for each in found}:  # each task sends its rows in order
        own = [int(each.data()) for each in found if each.producer_name() == name]
        assert own == sorted(own)


def test_a_column_says_where(spark: SparkSession, target: dict[str, str], topic: str, official: pulsar.Client) -> None:
    """The rows are records, and go to two topics. The second topic has partitions."""
    rows = spark.range(100, numPartitions=1).selectExpr(
        "id", "'x' name", f"if(id % 3 = 0, '{topic}-a', '{topic}-b') __topic"
    )
    make_partitions(Address(target["service.url"], target["admin.url"]), f"{topic}-b", 2)
    rows.write.format("pulsar").options(**target).mode("append").save()

    found = {part: ids(official, f"{topic}-{part}") for part in ("a", "b-partition-0", "b-partition-1")}
    assert found["a"] == list(range(0, 100, 3))
    assert all(each == sorted(each) and each for each in found.values())
    assert sorted(n for each in found.values() for n in each) == list(range(100))


def ids(client: pulsar.Client, topic: str) -> list[int]:
    """Return the ids of all records of a topic, in the order in which they were sent."""
    definition = {"type": "record", "name": "row", "fields": [{"name": "id", "type": "long"}]}
    schema = pulsar.schema.AvroSchema(None, schema_definition=definition)
    return [each.value()["id"] for each in messages(client, topic, schema=schema)]


def file_stream(spark: SparkSession, folder: Path) -> DataFrame:
    """Stream the lines of the files in a folder, two files a batch. Each file is a Spark partition."""
    return spark.readStream.option("maxFilesPerTrigger", "2").text(str(folder))


def add_files(folder: Path, *ranges: range) -> None:
    folder.mkdir(exist_ok=True)
    for each in ranges:
        (folder / f"{each.start:09}").write_text("".join(f"{n}\n" for n in each))


def run(stream: DataStreamWriter, checkpoint: str) -> None:
    query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()


def forget_last_commit(checkpoint: str) -> None:
    """Remove the last commit, as if the driver had died between the last task and the commit of its batch."""
    commits = Path(checkpoint) / "commits"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("partitions", [0, 3])
def test_a_batch_that_is_repeated_adds_nothing(
    spark: SparkSession,
    target: dict[str, str],
    deduplicated: str,
    official: pulsar.Client,
    checkpoint: str,
    tmp_path: Path,
    partitions: int,
) -> None:
    if partitions:
        make_partitions(Address(target["service.url"], target["admin.url"]), deduplicated, partitions)
    add_files(tmp_path / "in", range(500), range(500, 900), range(900, 1500))
    stream = file_stream(spark, tmp_path / "in").writeStream.format("pulsar").options(topic=deduplicated, **target)
    run(stream, checkpoint)
    forget_last_commit(checkpoint)
    run(stream, checkpoint)
    assert numbers(official, deduplicated) == list(range(1500))
    add_files(tmp_path / "in", range(1500, 1700))
    run(stream, checkpoint)
    assert numbers(official, deduplicated) == list(range(1700))


def test_a_worker_that_dies_in_the_middle(
    spark: SparkSession,
    target: dict[str, str],
    deduplicated: str,
    official: pulsar.Client,
    checkpoint: str,
    tmp_path: Path,
) -> None:
    """The rows that were sent stay, and the restarted query adds the other rows."""
    died = tmp_path / "died"
    add_files(tmp_path / "in", range(2000), range(2000, 4000))

    def die_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index, batch in enumerate(batches):
            if index == 12 and not died.exists():
                died.touch()
                os._exit(9)
            yield batch

    size = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(size, 100)
    try:
        rows = file_stream(spark, tmp_path / "in").mapInArrow(die_once, "value string")
        stream = rows.writeStream.format("pulsar").options(topic=deduplicated, **target)
        with pytest.raises(PySparkException):
            run(stream, checkpoint)
        some = numbers(official, deduplicated)
        assert len(some) < 4000  # no rows, when the worker died before its writer received any
        assert len(set(some)) == len(some)
        run(stream, checkpoint)
    finally:
        spark.conf.unset(size)
    assert numbers(official, deduplicated) == list(range(4000))


def test_replay_order_sorts_the_rows(
    spark: SparkSession, target: dict[str, str], topic: str, official: pulsar.Client
) -> None:
    """The option replayOrder=sorted sends rows in the order of their contents."""
    rows = spark.range(300, numPartitions=2).selectExpr("lpad(string(299 - id), 3, '0') value")
    options = {**target, "topic": topic, "replayOrder": "sorted"}
    rows.coalesce(1).write.format("pulsar").options(**options).mode("append").save()
    assert [int(each.data()) for each in messages(official, topic)] == list(range(300))


def test_a_repeated_write_of_foreach_batch_adds_nothing(
    spark: SparkSession,
    target: dict[str, str],
    deduplicated: str,
    official: pulsar.Client,
    checkpoint: str,
    tmp_path: Path,
) -> None:
    """A df.write with a producerName and a batchId may be repeated, as a batch of a stream may."""
    add_files(tmp_path / "in", range(200), range(200, 300), range(300, 400))

    def write(rows: DataFrame, batch_id: int) -> None:
        options = {**target, "topic": deduplicated, "producerName": "own", "batchId": str(batch_id)}
        rows.write.format("pulsar").options(**options).mode("append").save()

    run(file_stream(spark, tmp_path / "in").writeStream.foreachBatch(write), checkpoint)
    forget_last_commit(checkpoint)
    run(file_stream(spark, tmp_path / "in").writeStream.foreachBatch(write), checkpoint)
    assert numbers(official, deduplicated) == list(range(400))


def test_a_stream_wants_deduplication(
    spark: SparkSession, target: dict[str, str], topic: str, official: pulsar.Client, checkpoint: str, tmp_path: Path
) -> None:
    """The error names the command that enables deduplication. The option deduplication=off skips the check."""
    add_files(tmp_path / "in", range(100))
    stream = file_stream(spark, tmp_path / "in").writeStream.format("pulsar").options(topic=topic, **target)
    with pytest.raises(PySparkException, match="set-deduplication --enable public/default"):
        run(stream, checkpoint)
    run(stream.option("deduplication", "off"), checkpoint)
    assert numbers(official, topic) == list(range(100))


def test_overwriting_a_topic_is_refused_by_spark_too(
    spark: SparkSession, target: dict[str, str], deduplicated: str, checkpoint: str, tmp_path: Path
) -> None:
    with pytest.raises(PySparkException, match="append-only"):
        spark.range(1).write.format("pulsar").options(topic=deduplicated, **target).mode("overwrite").save()
    add_files(tmp_path / "in", range(1))
    counts = file_stream(spark, tmp_path / "in").groupBy("value").count()
    stream = counts.writeStream.outputMode("complete").format("pulsar").options(topic=deduplicated, **target)
    with pytest.raises(PySparkException, match="append-only"):
        run(stream, checkpoint)


@pytest.fixture
def connection(broker: Address) -> ConnectionOptions:
    return ConnectionOptions(broker.service_url, broker.admin_url)


def test_the_namespaces_policy_and_the_topics(connection: ConnectionOptions, topic: str) -> None:
    """The topic policy overrides the namespace policy, and applies to partitions. The topic need not exist yet."""
    namespace, local = f"public/{topic[-12:]}", topic.rpartition("/")[2]
    topic = f"persistent://{namespace}/{local}"
    with Pulsar(connection) as pulsar:
        admin = pulsar.client.admin
        pulsar.call(admin.namespaces.create_namespace, namespace)
        with pytest.raises(
            NoDeduplication, match=f"pulsarium admin namespaces set-deduplication --enable {namespace}\n"
        ):
            require_deduplication(connection, topic)
        pulsar.call(admin.namespace_policies[DEDUPLICATION].set, namespace, True)
        require_deduplication(connection, topic)
        require_deduplication.cache_clear()
        pulsar.call(admin.topics.create_partitioned_topic, topic, 2)
        require_deduplication(connection, f"{topic}-partition-1")
        pulsar.call(admin.topic_policies[DEDUPLICATION].set, topic, False)
        for each in (topic, f"{topic}-partition-0"):
            with pytest.raises(NoDeduplication):
                require_deduplication(connection, each)
        pulsar.call(admin.namespace_policies[DEDUPLICATION].set, namespace, False)
        pulsar.call(admin.topic_policies[DEDUPLICATION].set, topic, True)
        require_deduplication(connection, topic)


def test_deduplication_is_not_checked_without_an_admin_url(broker: Address, topic: str) -> None:
    with pytest.warns(Unchecked, match=r"admin\.url"):
        require_deduplication(ConnectionOptions.of(Options({"service.url": broker.service_url})), topic)
    with pytest.warns(Unchecked, match="cannot find out"):
        require_deduplication(ConnectionOptions(broker.service_url, "http://127.0.0.1:1"), topic)
