"""Measure reads and writes of one data source in one Spark session: a program of bench.pipeline.against.

It reads a `Session` as JSON from its standard input, and prints the seconds of each figure as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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
class Read:
    """A read of all columns of a topic."""

    figure: str
    topic: str
    rows: int
    options: Mapping[str, str]


@dataclass(frozen=True)
class Write:
    """A write of rows to a topic. `size` is the number of bytes of each value, or 0 for records."""

    figure: str
    topic: str
    rows: int
    size: int


@dataclass(frozen=True)
class Session:
    """Reads and writes of one Spark session, in their order."""

    source: str
    """Name of the data source for Spark."""
    jars: Sequence[str]
    connection: Mapping[str, str]
    reads: Sequence[Read]
    writes: Sequence[Write]

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def decode(text: str) -> Session:
        given = json.loads(text)
        reads, writes = [Read(**each) for each in given["reads"]], [Write(**each) for each in given["writes"]]
        return Session(given["source"], given["jars"], given["connection"], reads, writes)


def measure(session: Session) -> dict[str, float]:
    """Return the seconds of each read and write. Exit when a read has another number of rows than its topic."""
    from pulsarium.pipeline import session as opened

    config = {"spark.log.level": "ERROR", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    spark = opened("bench", config=config | ({"spark.jars": ",".join(session.jars)} if session.jars else {}))
    seconds = {}

    def frame(read: Read) -> Any:
        chosen = {**session.connection, "topic": read.topic, **read.options}
        return spark.read.format(session.source).options(**chosen).load()

    for read in session.reads:
        begin = time.perf_counter()
        frame(read).write.format("noop").mode("overwrite").save()
        seconds[read.figure] = time.perf_counter() - begin
    for write in session.writes:
        value = f"cast(lpad(cast(id AS string), {write.size}, '0') AS binary) AS value"
        rows = spark.range(write.rows).selectExpr(*([value] if write.size else RECORD))
        begin = time.perf_counter()
        rows.write.format(session.source).options(**session.connection, topic=write.topic).mode("append").save()
        seconds[write.figure] = time.perf_counter() - begin
    for read in session.reads:
        if (found := frame(read).count()) != read.rows:
            sys.exit(f"{read.topic} has {read.rows} messages, and {session.source} read {found} rows")
    spark.stop()
    return seconds


if __name__ == "__main__":
    print(json.dumps(measure(Session.decode(sys.stdin.read()))))
