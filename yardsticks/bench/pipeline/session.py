"""Measure reads and writes of one data source in one Spark session: a program of its own.

It reads a `Session` as JSON from its standard input, and prints the seconds of each figure as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

RECORD = (
    "id",
    "concat('name-', id % 1000) AS name",
    "id * 0.5D AS price",
    "cast(id % 100 AS int) AS qty",
    "id % 2 = 0 AS active",
    "repeat('n', 30) AS note",
)


@dataclass(frozen=True)
class Job:
    """A read of all columns of a topic, or a write. `size` is the number of bytes of a value, or 0 for records."""

    figure: str
    topic: str
    rows: int
    size: int
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Session:
    """Reads and writes of one Spark session, in their order. `source` is the name of the data source for Spark."""

    source: str
    jars: Sequence[str]
    master: str
    connection: Mapping[str, str]
    reads: Sequence[Job]
    writes: Sequence[Job]

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def decode(text: str) -> Session:
        given = json.loads(text)
        return Session(**{**given, **{jobs: [Job(**each) for each in given[jobs]] for jobs in ("reads", "writes")}})


def measure(asked: Session) -> dict[str, float]:
    """Return the seconds of each read and write. Exit when a read has another number of rows than its topic."""
    from pulsarium.pipeline import session

    config = {"spark.log.level": "ERROR", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    config |= {"spark.jars": ",".join(asked.jars)} if asked.jars else {}
    spark = session("bench", master=asked.master, config=config)
    seconds = {}

    def frame(read: Job) -> Any:
        return spark.read.format(asked.source).options(**asked.connection, topic=read.topic, **read.options).load()

    for read in asked.reads:
        begin = time.perf_counter()
        frame(read).write.format("noop").mode("overwrite").save()
        seconds[read.figure] = time.perf_counter() - begin
    for write in asked.writes:
        value = f"cast(lpad(cast(id AS string), {write.size}, '0') AS binary) AS value"
        rows = spark.range(write.rows).selectExpr(*([value] if write.size else RECORD))
        made = rows.write.format(asked.source).options(**asked.connection, topic=write.topic).mode("append")
        begin = time.perf_counter()
        made.save()
        seconds[write.figure] = time.perf_counter() - begin
    for read in asked.reads:
        if (found := frame(read).count()) != read.rows:
            sys.exit(f"{read.topic} has {read.rows} messages, and {asked.source} read {found} rows")
    spark.stop()
    return seconds


if __name__ == "__main__":
    print(json.dumps(measure(Session.decode(sys.stdin.read()))))
