"""Captures as DataFrames."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from glob import glob
from pathlib import Path
from types import TracebackType

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pulsarium.capture.file import MAGIC, SUFFIX
from pulsarium.pipeline.capture.progress import teller
from pulsarium.pipeline.capture.rows import EVERYTHING, TABLES, batches, everything, widened
from pulsarium.proto.commands import COMMANDS, Direction

WHO = ("client", "client_version", "protocol_version")
SENT, BROKEN = "sent", "broken"
"""Outcomes of frames that expect no answer, and of frames that could not be parsed."""

_ACCURACY = 10_000  # percentiles are exact up to this many values
_TASKS_A_CORE = 4
_UNANSWERED = [spec.name for spec in COMMANDS.values() if spec.reply is None and spec.direction is not Direction.BROKER]
_FROM_CLIENT = "direction = 'client->broker'"


class NoCaptures(ValueError):
    """Refuse sources without a capture, and files that are not captures."""


class Captures:
    """Capture files as tables, which are computed on first use. `close`, or the end of `with`, frees their room."""

    def __init__(self, spark: SparkSession, sources: Iterable[str | Path], *, progress: str | None = None) -> None:
        """Find the captures of `sources`: files, folders and globs. Tasks note their progress in the folder `progress`.

        Raise `NoCaptures` when there are none, and for a file that is not a capture.
        """
        self.spark = spark
        self.paths = found(sources)
        self._progress = progress
        self._kept: list[DataFrame] = []

    def __enter__(self) -> Captures:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the tables that Spark keeps on disk."""
        for each in self._kept:
            each.unpersist()
        self._kept.clear()

    @cached_property
    def frames(self) -> DataFrame:
        """Return a table with one row per frame."""
        return self._table("frames")

    @cached_property
    def exchanges(self) -> DataFrame:
        """Return a table with one row per request and its outcome."""
        return self._table("exchanges")

    @cached_property
    def violations(self) -> DataFrame:
        """Return a table with one row per broken rule of `pulsarium.capture.lint`."""
        return self._table("violations")

    @cached_property
    def matrix(self) -> DataFrame:
        """Return the outcomes of each client's commands.

        Columns: client, client_version, protocol_version, command, outcome, count.
        """
        asked = self.exchanges.where(_FROM_CLIENT).select(*WHO, "command", "outcome")
        unasked = F.col("command").isin(_UNANSWERED) | ((F.col("command") == "ACK") & F.col("request_id").isNull())
        others = (
            self.frames.where(_FROM_CLIENT)
            .where(unasked | F.col("broken").isNotNull())
            .select(
                *WHO,
                F.coalesce("command", F.lit("(unreadable)")).alias("command"),
                F.when(F.col("broken").isNull(), SENT).otherwise(BROKEN).alias("outcome"),
            )
        )
        keys = (*WHO, "command", "outcome")
        return _in_order(asked.union(others).groupBy(*keys).count(), *keys)

    @cached_property
    def latencies(self) -> DataFrame:
        """Return the times from clients' requests to their answers, in microseconds.

        Columns: client, client_version, command, count, p50, p90, p99, max.
        """
        keys = ("client", "client_version", "command")
        answered = self.exchanges.where(_FROM_CLIENT).where("latency_us IS NOT NULL")
        parts = F.percentile_approx("latency_us", [0.5, 0.9, 0.99], _ACCURACY)
        spans = answered.groupBy(*keys).agg(
            F.count("*").alias("count"), parts.alias("p"), F.max("latency_us").alias("max")
        )
        parted = [F.col("p")[at].alias(name) for at, name in enumerate(("p50", "p90", "p99"))]
        return _in_order(spans.select(*keys, "count", *parted, "max"), *keys)

    @cached_property
    def over_time(self) -> DataFrame:
        """Return the number of frames in each second.

        Columns: second (a timestamp), direction, command, count.
        """
        second = F.date_trunc("second", "time").alias("second")
        readable = self.frames.where("command IS NOT NULL")
        counts = readable.groupBy(second, "direction", "command").count()
        return _in_order(counts, "second", "direction", "command")

    def broken_rules(self) -> DataFrame:
        """Return the violations, counted by rule.

        Columns: side, rule, client, client_version, count, example, demands, reference.
        """
        keys, rule = ("side", "rule", "client", "client_version"), ("demands", "reference")
        counts = self.violations.groupBy(*keys, *rule).agg(
            F.count("*").alias("count"), F.min("detail").alias("example")
        )
        return _in_order(counts.select(*keys, "count", "example", *rule), *keys)

    @cached_property
    def _everything(self) -> DataFrame:
        """Return a table of all tables, because parsing and judging a capture costs more than all else.

        A file is one task at most: it holds whole connections, so that one task reads it from its first byte to its
        last. Spark keeps the table on disk, because it does not divide the rows of a task: those of ten million frames
        leave no memory for anything else.
        """
        tasks = min(len(self.paths), _TASKS_A_CORE * self.spark.sparkContext.defaultParallelism)
        numbers = self.spark.range(0, len(self.paths), 1, tasks)
        table = numbers.mapInArrow(partial(_read, self.paths, names(self.paths), self._progress), EVERYTHING)
        table.persist(StorageLevel.DISK_ONLY)
        self._kept.append(table)
        return table

    def _table(self, name: str) -> DataFrame:
        columns = [column.split()[0] for column in TABLES[name].split(", ")]
        return self._everything.where(F.col("what") == name).select(*columns)


def differences(before: Captures, after: Captures, factor: float = 1.5) -> DataFrame:
    """Return the differences between two runs, in the columns what, client, command, outcome, before, after, change.

    `what` is `count` for an outcome (new, gone, more, less), or `p50` and `p99` in microseconds, which are listed when
    they grew or fell by at least `factor`. Versions of clients are not compared, because two runs may differ in them.
    """
    keys = ("what", "client", "command", "outcome")
    runs = {"before": before, "after": after}
    then, now = (_measures(run).withColumn("run", F.lit(name)) for name, run in runs.items())
    both = then.union(now)
    sides = both.groupBy(*keys).agg(*(F.max(F.when(F.col("run") == name, F.col("n"))).alias(name) for name in runs))
    counts, grown = F.col("what") == "count", F.col("after") > F.col("before")
    change = (
        F.when(F.col("before").isNull(), "new")
        .when(F.col("after").isNull(), "gone")
        .when(grown, F.when(counts, "more").otherwise("slower"))
        .otherwise(F.when(counts, "less").otherwise("faster"))
    )
    ratio = F.greatest(F.col("after") / F.col("before"), F.col("before") / F.col("after"))
    changed = sides.where(F.when(counts, ~F.col("before").eqNullSafe(F.col("after"))).otherwise(ratio >= factor))
    return _in_order(changed.withColumn("change", change), *keys)


def _measures(run: Captures) -> DataFrame:
    """Return a table with the columns what, client, command, outcome, n."""
    counts = run.matrix.groupBy("client", "command", "outcome").agg(F.sum("count").cast("double").alias("n"))
    waits = (
        run.exchanges.where(_FROM_CLIENT)
        .where("latency_us IS NOT NULL")
        .groupBy("client", "command")
        .agg(F.percentile_approx("latency_us", [0.5, 0.99], _ACCURACY).alias("p"))
    )
    keys = ("client", "command", "outcome", "n")
    parts = [waits.withColumn("n", F.col("p")[at]).withColumn("outcome", F.lit("")) for at in (0, 1)]
    named = {"count": counts, "p50": parts[0], "p99": parts[1]}
    one, two, three = (table.select(F.lit(what).alias("what"), *keys) for what, table in named.items())
    return one.union(two).union(three)


def _in_order(small: DataFrame, *keys: str) -> DataFrame:
    """Return the table, sorted in one task. Several tasks would cost another job."""
    return small.coalesce(1).sortWithinPartitions(*keys)


def found(sources: Iterable[str | Path]) -> list[str]:
    """Return the paths of all capture files of files, folders and globs, sorted, each once.

    Raise `NoCaptures` when there are none, and for a file that is not a capture.
    """
    paths: set[str] = set()
    for source in map(str, sources):
        matching = sorted(Path(source).rglob(f"*{SUFFIX}")) if Path(source).is_dir() else glob(source, recursive=True)
        files = [Path(each) for each in matching or [source]]
        if not files or not all(file.is_file() for file in files):
            raise NoCaptures(f"no capture at {source}")
        paths.update(str(file.resolve()) for file in files)
    for path in sorted(paths):
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise NoCaptures(f"{path} is not a Pulsarium capture")
    if not paths:
        raise NoCaptures("no captures were given")
    return sorted(paths)


def names(paths: Sequence[str]) -> list[str]:
    """Return the names of captures in tables: their paths below their common folder, without the suffix."""
    folder = os.path.commonpath([os.path.dirname(path) for path in paths])
    return [os.path.relpath(path, folder).removesuffix(SUFFIX) for path in paths]


def _read(
    paths: Sequence[str], names: Sequence[str], progress: str | None, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for name, found in batches(everything(paths[number], names[number], teller(progress, number))):
                yield widened(name, found)
