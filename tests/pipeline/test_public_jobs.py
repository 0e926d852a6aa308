"""Jobs in the shape of public ones for StreamNative's connector, with no other change than the mode of a write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.foreign.broker_process import Address

from .source.topics import publish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_a_nightly_job_writes_rows_as_json_text(spark: SparkSession, broker: Address, topic: str) -> None:
    scores = spark.createDataFrame([("s1", 7), ("s2", 9)], "serial string, score int")
    (
        scores.selectExpr("to_json(struct(*)) AS value")
        .write.format("pulsar")
        .option("service.url", broker.service_url)
        .option("pulsar.client.useTls", "false")
        .option("pulsar.client.tlsAllowInsecureConnection", "false")
        .option("pulsar.client.tlsHostnameVerificationenable", "false")
        .option("pulsar.producer.batchingMaxPublishDelayMicros", "1000")
        .option("topic", topic)
        .mode("append")
        .save()
    )
    found = spark.read.format("pulsar").option("service.url", broker.service_url).option("topic", topic).load()
    assert sorted(row[0] for row in found.selectExpr("CAST(value AS STRING)").collect()) == [
        '{"serial":"s1","score":7}',
        '{"serial":"s2","score":9}',
    ]


def test_a_batch_job_reads_json_text_into_a_table(spark: SparkSession, broker: Address, topic: str) -> None:
    from pyspark.sql.functions import col, from_json

    publish(broker, topic, [b'{"record_key": "a", "amount": 1}', b'{"record_key": "b", "amount": 2}'])
    found = spark.read.format("pulsar").option("service.url", broker.service_url).option("topic", topic).load()
    rows = found.selectExpr("CAST(value AS STRING) AS json")
    table = rows.select(from_json(col("json"), "record_key string, amount long").alias("data")).select("data.*")
    assert sorted(map(tuple, table.collect())) == [("a", 1), ("b", 2)]


def stream(spark: SparkSession, broker: Address, topic: str) -> DataFrame:
    """Return a stream with the options that jobs of the connector have."""
    return (
        spark.readStream.format("pulsar")
        .option("service.url", broker.service_url)
        .option("admin.url", broker.admin_url)
        .option("topic", topic)
        .option("startingOffsets", "earliest")
        .option("waitingForNonExistedTopic", "true")
        .option("pulsar.client.statsIntervalSeconds", "0")
        .load()
    )


def test_a_streaming_job_counts_orders_in_windows(
    spark: SparkSession, broker: Address, topic: str, checkpoint: str
) -> None:
    from pyspark.sql.functions import col, from_json, window

    moments = ("2026-01-31T12:01:00", "2026-01-31T12:02:00", "2026-01-31T12:06:00")
    publish(broker, topic, [f'{{"moment": "{moment}", "category": "tea"}}'.encode() for moment in moments])
    order = from_json(col("value").cast("string"), "moment timestamp, category string").alias("order")
    orders = stream(spark, broker, topic).select(order).select("order.*").withWatermark("moment", "10 minutes")
    counts = orders.groupBy(window("moment", "5 minutes"), "category").count()
    query = counts.writeStream.format("memory").queryName("windows").outputMode("complete")
    query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    assert sorted(row["count"] for row in spark.table("windows").collect()) == [1, 2]


def test_a_streaming_job_keeps_all_columns_in_files(
    spark: SparkSession, broker: Address, topic: str, checkpoint: str, tmp_path: Path
) -> None:
    publish(broker, topic, [b"20.5", b"21.0"], keys=2)
    files = stream(spark, broker, topic).selectExpr("*").writeStream.format("json")
    query = files.option("checkpointLocation", checkpoint).option("path", str(tmp_path / "files"))
    query.trigger(availableNow=True).start().awaitTermination()
    rows = spark.read.json(str(tmp_path / "files")).collect()
    assert [row["__topic"] for row in rows] == [topic, topic]
