"""The program of test_cluster.py: tasks on executors write a topic, read it and copy it.

python -P cluster_driver.py '{"master": ..., "config": {...}, "where": {option: value}, "target": {option: value}, ...}'
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from pulsarium.pipeline import session


def signed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add a last column that names the executor, which is the parent of its Python workers."""
    for batch in batches:
        yield batch.append_column("executor", pa.array([str(os.getppid())] * batch.num_rows))


def main(given: dict[str, Any]) -> dict[str, Any]:
    spark = session("cluster", master=given["master"], config=given["config"])
    made = spark.range(given["rows"], numPartitions=given["tasks"]).selectExpr("string(id) AS value")
    written = made.mapInArrow(signed, "value string, executor string").withColumnRenamed("executor", "__key")
    written.write.format("pulsar").options(**given["where"]).mode("append").save()
    table = spark.read.format("pulsar").options(**given["where"], **given["splits"]).load()
    read = table.selectExpr("string(value) AS value", "string(__key) AS writer")
    found = read.mapInArrow(signed, "value string, writer string, executor string").collect()
    stream = spark.readStream.format("pulsar").options(**given["where"], **given["splits"], startingOffsets="earliest")
    copied = stream.load().select("value", "__key").writeStream.format("pulsar").options(**given["target"])
    copied.option("checkpointLocation", given["checkpoint"]).trigger(availableNow=True).start().awaitTermination()
    spark.stop()
    return {
        "values": [row.value for row in found],
        "writers": sorted({row.writer for row in found}),
        "readers": sorted({row.executor for row in found}),
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
