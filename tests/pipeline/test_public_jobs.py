"""Jobs in the shape of public ones for StreamNative's connector, with no other change than the mode of a write.

A docstring names the project whose options and calls a job has. The programs are our own.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulsarium.client import JsonSchema
from tests.foreign.admin import Admin
from tests.foreign.broker_process import Address

from .source.topics import numbers, publish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

READING = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "host", "type": ["null", "string"]},
        {"name": "cpu", "type": "double"},
        {"name": "memory", "type": "double"},
    ],
}


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


def stream(spark: SparkSession, broker: Address, topic: str | None, **more: str) -> DataFrame:
    """Return a stream with the options that jobs of the connector have. `more` has further ones."""
    named = {} if topic is None else {"topic": topic}
    return (
        spark.readStream.format("pulsar")
        .option("service.url", broker.service_url)
        .option("admin.url", broker.admin_url)
        .option("startingOffsets", "earliest")
        .option("waitingForNonExistedTopic", "true")
        .option("pulsar.client.statsIntervalSeconds", "0")
        .options(**named, **more)
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


def until_the_end(rows: DataFrame, checkpoint: str, name: str | None = None, mode: str = "append") -> StreamingQuery:
    """Run a query over all messages. With `name`, its rows are a table of this name."""
    query = rows.writeStream.outputMode(mode).option("checkpointLocation", checkpoint)
    if name is not None:
        query = query.format("memory").queryName(name)
    started = query.trigger(availableNow=True).start()
    started.awaitTermination()
    return started


def test_a_batch_job_reads_two_topics_between_offsets_as_bytes(
    spark: SparkSession, broker: Address, topic: str
) -> None:
    """Take the shape of the guide of streamnative/pulsar-spark."""
    ids = {f"{topic}-{name}": publish(broker, f"{topic}-{name}", numbers(5)) for name in "ab"}

    def offsets(of: int) -> str:
        signed = {name: [each - (each & 128) * 2 for each in found[of].serialize()] for name, found in ids.items()}
        return json.dumps(signed)

    found = (
        spark.read.format("pulsar")
        .option("service.url", broker.service_url)
        .option("topics", ",".join(ids))
        .option("startingOffsets", offsets(1))
        .option("endingOffsets", offsets(3))
        .load()
    )
    rows = found.selectExpr("CAST(__key AS STRING)", "CAST(value AS STRING)").collect()
    assert sorted(row["value"] for row in rows) == sorted(["1", "2", "3"] * 2)


def test_a_batch_job_reads_what_a_pattern_names(spark: SparkSession, broker: Address, topic: str) -> None:
    """Take the shape of the guide of streamnative/pulsar-spark."""
    for name in "ab":
        publish(broker, f"{topic}-{name}", [name.encode()])
    found = (
        spark.read.format("pulsar")
        .option("service.url", broker.service_url)
        .option("topicsPattern", f"{topic}-.*")
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    assert sorted(row[0] for row in found.selectExpr("CAST(value AS STRING)").collect()) == ["a", "b"]


def test_a_batch_job_writes_rows_to_the_topics_that_they_name(spark: SparkSession, broker: Address, topic: str) -> None:
    """Take the shape of the guide of streamnative/pulsar-spark, with the event time of its table of columns."""
    rows = spark.createDataFrame(
        [(f"{topic}-a", "k1", "one", 1000), (f"{topic}-b", "k2", "two", 2000)],
        "__topic string, key string, text string, at long",
    )
    (
        rows.selectExpr("__topic", "key AS __key", "text AS value", "timestamp_millis(at) AS __eventTime")
        .write.format("pulsar")
        .option("service.url", broker.service_url)
        .mode("append")
        .save()
    )
    options = {"service.url": broker.service_url, "topics": f"{topic}-a,{topic}-b"}
    found = spark.read.format("pulsar").options(**options).load()
    wanted = ("__topic", "CAST(__key AS STRING)", "CAST(value AS STRING)", "unix_millis(__eventTime)")
    assert sorted(map(tuple, found.selectExpr(*wanted).collect())) == [
        (f"{topic}-a", "k1", "one", 1000),
        (f"{topic}-b", "k2", "two", 2000),
    ]


def test_a_batch_job_writes_columns_and_maps_the_rows_that_it_reads(
    spark: SparkSession, broker: Address, topic: str
) -> None:
    """Take the shape of a program for pictures of LandSat: columns without a `value`."""
    where = {"service.url": broker.service_url, "admin.url": broker.admin_url, "topic": topic}
    spark.createDataFrame([(1, 1), (2, 4)], ("id", "v")).write.format("pulsar").options(**where).mode("append").save()
    found = spark.read.format("pulsar").options(**where).load()
    assert sorted(found.rdd.map(lambda row: f"{row[0]},{row[1]}").collect()) == ["1,1", "2,4"]


def test_a_streaming_job_takes_columns_from_the_schema_of_the_topic(
    spark: SparkSession, broker: Address, topic: str, checkpoint: str
) -> None:
    """Take the shape of tspannhw's programs for sensors, which name the topic as a source for Kafka does, too."""
    readings = [{"host": f"sensor-{number}", "cpu": number / 2, "memory": 50.0} for number in range(3)]
    publish(broker, topic, readings, schema=JsonSchema(READING))
    found = stream(spark, broker, topic, subscribe=topic)
    assert found.columns[:3] == ["host", "cpu", "memory"]
    until_the_end(found, checkpoint, "sensors")
    hottest = spark.sql("SELECT max(cpu) AS most, count(DISTINCT host) AS hosts FROM sensors").collect()
    assert [tuple(row) for row in hottest] == [(1.0, 3)]


def test_a_streaming_job_hands_batches_of_stocks_to_a_function(
    spark: SparkSession, broker: Address, topic: str, checkpoint: str
) -> None:
    """Take the shape of a program named astra-spark-streaming: a token, a map of JSON, functions of Python."""
    from pyspark.sql.functions import col, from_json, udf

    stock = '{"1. open": "10.5", "5. volume": "300", "symbol": "IBM", "time": "2026-01-31 12:00:00"}'
    publish(broker, topic, [stock.encode()])
    token = {
        "pulsar.client.authPluginClassName": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "pulsar.client.authParams": "token:abc",
    }
    plain = udf(lambda text: text.replace("1. open", "open").replace("5. volume", "volume"))
    values = stream(spark, broker, topic, **token).selectExpr("CAST(value AS STRING)")
    parsed = values.withColumn("value", from_json(plain(col("value")), "map<string,string>"))
    stocks = parsed.selectExpr(
        "float(value.open) AS open",
        "int(value.volume) AS volume",
        "value.symbol",
        "CAST(value.time AS timestamp) AS time",
    )
    written: list[Any] = []

    def write(batch: DataFrame, number: int) -> None:
        written.extend(batch.select("open", "volume", "symbol").collect())

    query = stocks.writeStream.foreachBatch(write).outputMode("update").option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
    assert [tuple(row) for row in written] == [(10.5, 300, "IBM")]


def test_a_streaming_job_finds_carts_in_sessions(
    spark: SparkSession, broker: Address, topic: str, checkpoint: str
) -> None:
    """Take the shape of polyzos/pulsar-spark-structured-streaming: the events of each session of clicks."""
    from pyspark.sql.functions import array_contains, col, collect_list, from_json, session_window

    clicks = [("ada", "view", 0), ("ada", "cart", 60), ("bob", "view", 0), ("ada", "view", 9000)]
    publish(broker, topic, [json.dumps({"user": who, "kind": kind, "at": at}).encode() for who, kind, at in clicks])
    event = from_json(col("value").cast("string"), "user string, kind string, at long").alias("event")
    events = stream(spark, broker, topic).select(event).selectExpr("event.*", "timestamp_seconds(event.at) AS moment")
    sessions = events.withWatermark("moment", "30 minutes").groupBy("user", session_window("moment", "80 minutes"))
    carts = sessions.agg(collect_list("kind").alias("kinds")).filter(array_contains(col("kinds"), "cart"))
    until_the_end(carts.select("user", "kinds"), checkpoint, "carts", "complete")
    assert [(row.user, sorted(row.kinds)) for row in spark.table("carts").collect()] == [("ada", ["cart", "view"])]


def test_a_streaming_job_copies_all_columns_to_another_topic(
    spark: SparkSession, broker: Address, topic: str, deduplicated: str, checkpoint: str
) -> None:
    """Take the shape of crazylab/pulsar-spark-integration: a topic as it is into another one."""
    publish(broker, topic, numbers(10), keys=3)
    query = stream(spark, broker, topic).writeStream.format("pulsar")
    for name, value in {"service.url": broker.service_url, "admin.url": broker.admin_url}.items():
        query = query.option(name, value)
    query = query.option("topic", deduplicated).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
    found = spark.read.format("pulsar").option("service.url", broker.service_url).option("topic", deduplicated).load()
    copied = found.selectExpr("int(string(value))", "string(__key)").collect()
    assert sorted(map(tuple, copied)) == [(number, f"k{number % 3}") for number in range(10)]


def test_a_streaming_job_reads_topics_in_batches_of_bytes_under_its_own_subscription(
    spark: SparkSession, broker: Address, topic: str, checkpoint: str
) -> None:
    """Take the shape of Databricks' page about Pulsar: several topics, a subscription, a limit, a timeout."""
    topics = [f"{topic}-{name}" for name in "ab"]
    for each in topics:
        publish(broker, each, numbers(200))
    more = {
        "topics": ",".join(topics),
        "predefinedSubscription": "nightly",
        "maxBytesPerTrigger": "4000",
        "pollTimeoutMs": "60000",
        "failOnDataLoss": "true",
    }
    query = until_the_end(stream(spark, broker, None, **more), checkpoint, "nights")
    assert spark.table("nights").count() == 400
    assert len([each for each in query.recentProgress if each.numInputRows]) > 1
    subscriptions = partial(Admin(broker.admin_url).call, "GET")
    for each in topics:
        assert subscriptions(each.replace("persistent://", "/admin/v2/persistent/") + "/subscriptions") == ["nightly"]
