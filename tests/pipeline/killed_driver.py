"""The program that test_killed.py kills: several queries at once copy all messages of one topic, each to its own.

python -P killed_driver.py '{"master": ..., "config": ..., "source": {option: value}, "sinks": [{option: value}, ...]}'
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql.functions import concat, lit

from pulsarium.pipeline import session

MARK = b"seen "
"""Prefix that the transformation adds to each value. A single prefix proves that the transformation ran once."""


def main(given: dict[str, Any]) -> None:
    spark = session("killed", master=given["master"], config=given["config"])
    queries = []
    for sink in given["sinks"]:  # a DataFrame each: Spark may fail to serialize one that two queries use at once
        messages = spark.readStream.format("pulsar").options(**given["source"]).load()
        marked = messages.select(concat(lit(bytearray(MARK)), "value").alias("value"), "__key")
        query = marked.writeStream.format("pulsar").options(**sink).trigger(availableNow=True).start()
        queries.append(query)
        # It may also fail to serialize the first batches of two queries at once (docs/troubleshooting.md).
        while query.isActive and query.lastProgress is None:
            query.awaitTermination(1)
    for query in queries:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
