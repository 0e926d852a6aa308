"""Measure rows that Spark reads from topics and writes to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from bench.brokers import Broker
from bench.pipeline.figures import Figure
from bench.pipeline.topics import create, fill

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = (1, 2, 4)


@dataclass(frozen=True)
class Size:
    """Size of a value in bytes, and the number of values of a run."""

    name: str
    bytes: int
    rows: int


SIZES = (Size("100 B", 100, 1_000_000), Size("1 KB", 1000, 400_000))


@dataclass(frozen=True)
class Bench:
    """Session, broker and settings of all measurements here."""

    spark: SparkSession
    broker: Broker
    repetitions: int
    scale: float

    def rows(self, size: Size) -> int:
        return max(1, int(size.rows * self.scale))

    def read(self, topic: str, **options: str) -> DataFrame:
        connection = {"service.url": self.broker.service_url, "admin.url": self.broker.admin_url}
        # topics are split only where splitting is measured
        split = {"maxRecordsPerPartition": "0"}
        return self.spark.read.format("pulsar").options(**{**connection, **split, **options}, topic=topic).load()

    def timed(self, what: str, rows: int, partitions: int, frames: Iterator[tuple[DataFrame, str | None]]) -> Figure:
        """Write each frame to its topic, or to nowhere. The first is a warm-up."""
        seconds = []
        for frame, topic in frames:
            writer = frame.write.mode("append").format("pulsar" if topic else "noop")
            if topic:
                writer = writer.options(**{"service.url": self.broker.service_url, "topic": topic})
            begin = time.perf_counter()
            writer.save()
            seconds.append(time.perf_counter() - begin)
        return Figure(what, rows, partitions, seconds[1:] or seconds)


def reading(bench: Bench) -> Iterator[Figure]:
    """Measure values as bytes from 1, 2 and 4 partitions, all columns, and one partition in several splits."""
    for size in SIZES:
        rows = bench.rows(size)
        for partitions in PARTITIONS:
            topic = f"persistent://public/default/read-{size.bytes}-{partitions}"
            anyio.run(fill, bench.broker, topic, rows, size.bytes, partitions)
            values = (bench.read(topic).select("value") for _ in range(bench.repetitions + 1))
            yield bench.timed(f"read, {size.name}", rows, partitions, ((each, None) for each in values))
            if partitions == 1:
                whole = (bench.read(topic) for _ in range(bench.repetitions + 1))
                yield bench.timed(f"read, {size.name}, all columns", rows, 1, ((each, None) for each in whole))
                for splits in PARTITIONS[1:]:
                    at_most = str(-(-rows // splits))
                    parts = (
                        bench.read(topic, maxRecordsPerPartition=at_most).select("value")
                        for _ in range(bench.repetitions + 1)
                    )
                    name = f"read, {size.name}, one partition in {splits} splits"
                    yield bench.timed(name, rows, splits, ((each, None) for each in parts))


def writing(bench: Bench) -> Iterator[Figure]:
    """Measure values as bytes to 1, 2 and 4 partitions, from as many tasks."""
    for size in SIZES:
        rows = bench.rows(size)
        for partitions in PARTITIONS:
            made = bench.spark.range(0, rows, 1, partitions)
            values = made.selectExpr(f"cast(lpad(cast(id as string), {size.bytes}, '0') as binary) as value")
            targets = []
            for run in range(bench.repetitions + 1):
                topic = f"persistent://public/default/write-{size.bytes}-{partitions}-{run}"
                anyio.run(create, bench.broker, topic, partitions)
                targets.append((values, topic))
            yield bench.timed(f"write, {size.name}", rows, partitions, iter(targets))
