"""The program that test_killed.py kills: a copy of all messages from one topic to another.

python -P killed_driver.py '{"master": ..., "source": {option: value}, "sink": {option: value}, "checkpoint": ...}'
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
    messages = spark.readStream.format("pulsar").options(**given["source"]).load()
    marked = messages.select(concat(lit(bytearray(MARK)), "value").alias("value"), "__key")
    query = marked.writeStream.format("pulsar").options(**given["sink"])
    query.option("checkpointLocation", given["checkpoint"]).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
