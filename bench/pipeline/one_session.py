"""Measure reads and writes of one data source in one Spark session: a program of bench.pipeline.against.

It reads a `Session` as JSON from its standard input, and prints the cost of each figure as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.pipeline import floor
from bench.pipeline.spent import spent

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
    size: int
    """Bytes of each value, or 0 for records."""
    partitions: int
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
    broker: int
    """The process of the broker."""
    reads: Sequence[Read]
    writes: Sequence[Write]

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def decode(text: str) -> Session:
        given = json.loads(text)
        reads, writes = [Read(**each) for each in given["reads"]], [Write(**each) for each in given["writes"]]
        return Session(given["source"], given["jars"], given["connection"], given["broker"], reads, writes)


@dataclass(frozen=True)
class Cost:
    """Seconds of one read or write, and seconds of CPU by the parts of the session."""

    seconds: float
    cpu: Mapping[str, float]


def measure(session: Session) -> dict[str, Cost]:
    """Return the cost of each read and write. Exit when a read has another number of rows than its topic."""
    from pulsarium.pipeline import session as opened

    config = {"spark.log.level": "ERROR", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    spark = opened("bench", config=config | ({"spark.jars": ",".join(session.jars)} if session.jars else {}))
    if session.source == floor.NAME:
        spark.dataSource.register(floor.Floor)
    costs = {}

    def timed(figure: str, work: Callable[[], None]) -> None:
        before, begin = spent(session.broker), time.perf_counter()
        work()
        seconds, after = time.perf_counter() - begin, spent(session.broker)
        costs[figure] = Cost(seconds, {part: max(0.0, round(after[part] - before[part], 2)) for part in after})

    def frame(read: Read) -> Any:
        if session.source == floor.NAME:
            sizes = {"rows": read.rows, "size": read.size, "partitions": read.partitions}
            columns = floor.VALUES if read.size else floor.RECORDS
            return spark.read.schema(columns).format(session.source).options(**sizes).load()
        chosen = {**session.connection, "topic": read.topic, **read.options}
        return spark.read.format(session.source).options(**chosen).load()

    for read in session.reads:
        timed(read.figure, lambda read=read: frame(read).write.format("noop").mode("overwrite").save())  # type: ignore[misc]
    for write in session.writes:
        value = f"cast(lpad(cast(id AS string), {write.size}, '0') AS binary) AS value"
        rows = spark.range(write.rows).selectExpr(*([value] if write.size else RECORD))
        made = rows.write.format(session.source).options(**session.connection, topic=write.topic).mode("append")
        timed(write.figure, made.save)
    for read in session.reads:
        if (found := frame(read).count()) != read.rows:
            sys.exit(f"{read.topic} has {read.rows} messages, and {session.source} read {found} rows")
    spark.stop()
    return costs


if __name__ == "__main__":
    found = measure(Session.decode(sys.stdin.read()))
    print(json.dumps({figure: asdict(cost) for figure, cost in found.items()}))
