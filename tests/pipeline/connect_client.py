"""Programs of test_connect.py, each a client of Spark Connect that prints its findings as JSON.

python -P connect_client.py PROGRAM '{"server": "sc://...", "where": {option: value}, ...}'
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from pulsarium.pipeline import register, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def settings(spark: SparkSession, given: dict[str, Any]) -> dict[str, Any]:
    again = session("another", config={"spark.sql.shuffle.partitions": "3"})
    zone, partitions = (spark.conf.get(f"spark.sql.{name}") for name in ("session.timeZone", "shuffle.partitions"))
    return {"same": again is spark, "zone": zone, "partitions": partitions}


def table(spark: SparkSession, given: dict[str, Any]) -> dict[str, Any]:
    """Write numbers with their last digit as the key, and read them."""
    register(spark)
    rows = spark.range(given["rows"], numPartitions=2).selectExpr("string(id) AS value", "string(id % 10) AS __key")
    rows.write.format("pulsar").options(**given["where"]).mode("append").save()
    found = spark.read.format("pulsar").options(**given["where"]).load()
    keys = found.groupBy("__key").count().selectExpr("string(__key) AS name", "count").collect()
    return {"values": [int(row.value) for row in found.collect()], "keys": {row.name: row["count"] for row in keys}}


def stream(spark: SparkSession, given: dict[str, Any]) -> dict[str, Any]:
    """Copy the topic, and return the rows and the lag of the last micro-batch with rows."""
    rows = spark.readStream.format("pulsar").options(**given["where"], startingOffsets="earliest").load()
    sink = rows.select("value", "__key").writeStream.format("pulsar").options(**given["target"])
    query = sink.option("checkpointLocation", given["checkpoint"]).trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [each for each in query.recentProgress if each.numInputRows][-1]
    (lag,) = json.loads(progress.sources[0].latestOffset).values()
    return {"rows": progress.numInputRows, "lag": lag["lagMessages"]}


def missing(spark: SparkSession, given: dict[str, Any]) -> dict[str, Any]:
    try:
        spark.read.format("pulsar").options(**given["where"]).load().collect()
    except PySparkException as error:
        return {"error": str(error)}
    return {}


def sql(spark: SparkSession, given: dict[str, Any]) -> dict[str, Any]:
    """Write through a table and through a view, and then bytes that do not fit. Return all rows."""
    where = {**given["where"], "pulsar.client.operationTimeoutMs": "30000"}
    first = spark.createDataFrame([("Ada", 3)], "name string, apples int")
    first.write.format("pulsar").options(**where, **{"pulsar.producer.compressionType": "LZ4"}).mode("append").save()
    options = ", ".join(f"'{key}' = '{value}'" for key, value in where.items())
    spark.sql(f"CREATE TABLE apples (name STRING, apples INT) USING pulsar OPTIONS ({options})")
    try:
        first.selectExpr("'Bob' AS name", "apples").writeTo("apples").options(**where).append()
    finally:
        spark.sql("DROP TABLE apples")
    spark.sql(f"CREATE TEMPORARY VIEW orders USING pulsar OPTIONS ({options})")
    spark.sql("INSERT INTO orders (name) VALUES ('Eve')")
    bad = spark.createDataFrame([(b"?",)], "value binary")
    bad.write.format("pulsar").options(**where).mode("append").save()
    rows = spark.read.format("pulsar").options(**where, undecodable="null").load()
    return {"rows": [list(row) for row in rows.selectExpr("name", "apples", "string(__undecodable)").collect()]}


PROGRAMS = {each.__name__: each for each in (settings, table, stream, missing, sql)}

if __name__ == "__main__":
    options = json.loads(sys.argv[2])
    connected = session("tests", master=options["server"])
    print(json.dumps(PROGRAMS[sys.argv[1]](connected, options)))
    connected.stop()
