"""Run the Spark job of a compaction, as the engine does: `python -m pulsarium.pipeline.compaction.job FOLDER`."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from pulsarium.pipeline.compaction import opening, rewriting
from pulsarium.pipeline.compaction.chunks import CHUNK_SHIFT, CompactionTask, remove
from pulsarium.pipeline.errors import error_line
from pulsarium.pipeline.spark import session

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULT = "result.json"


@dataclass(frozen=True)
class JobResult:
    """Result of a job: numbers of entries and of removed messages, or an error."""

    entries: int = 0
    removed: int = 0
    error: str | None = None

    def save(self, folder: str) -> None:
        path = Path(folder) / RESULT
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self)))
        temporary.replace(path)

    @staticmethod
    def load(folder: str) -> JobResult | None:
        """Return the result that `save` wrote, or None."""
        try:
            return JobResult(**json.loads((Path(folder) / RESULT).read_text()))
        except FileNotFoundError:
            return None


def run(spark: SparkSession, work: CompactionTask) -> JobResult:
    """Write out-N.arrow of all chunks, and return the numbers.

    The driver receives only one row of numbers for each chunk.
    """
    if not work.chunks:
        return JobResult()
    opened = _chunks(spark, work).mapInArrow(partial(opening.open_chunks, work=work), opening.SUMMARY).collect()
    keys = _keys(spark, work)
    last = keys.repartition(_parts(spark, work), "key").groupBy("key").agg(f.max("place").alias("place"))
    kept = last.where("place & 1 = 1").select(f.shiftright("place", CHUNK_SHIFT).alias("chunk"), "place")
    each = _chunks(spark, work).selectExpr("id as chunk", f"cast({rewriting.NO_PLACE} as long) as place")
    by_chunk = kept.union(each).repartitionById(work.chunks, f.col("chunk").cast("int"))
    written = by_chunk.mapInArrow(partial(rewriting.rewrite_chunks, work=work), rewriting.SUMMARY).collect()
    # Pulsar counts messages without a value, and values that the next message of their key replaces. It does not count
    # values that a message without a value deletes. The counts inside a chunk are known. Between chunks, each chunk's
    # last value of a key was replaced, except in the key's last chunk. A value is not counted when the next chunk
    # begins with a message that deletes it.
    replaced = sum(row.with_value for row in opened) - sum(row["keys"] for row in written)
    if any(row.begin_empty for row in opened):
        replaced -= _deleted_between_chunks(keys)
    return JobResult(sum(row.entries for row in written), sum(row.removed for row in opened) + replaced)


def _chunks(spark: SparkSession, work: CompactionTask) -> DataFrame:
    """Return a table with a row, and so a task, for each chunk."""
    return spark.range(0, work.chunks, 1, work.chunks)


def _keys(spark: SparkSession, work: CompactionTask) -> DataFrame:
    schema = "key binary, place long, begins_empty boolean"
    return _chunks(spark, work).mapInArrow(partial(opening.keys_of_chunks, work=work), schema)


def _parts(spark: SparkSession, work: CompactionTask) -> int:
    """Return the number of parts of the shuffle by key.

    A part fits into memory: it has about as many keys as a chunk at most.
    """
    return max(work.chunks, min(spark.sparkContext.defaultParallelism, 2 * work.chunks))


def _deleted_between_chunks(keys: DataFrame) -> int:
    """Return how many chunks begin with a message that deletes a key's value in the chunk before."""
    before = f.lag("place").over(Window.partitionBy("key").orderBy("place"))
    concerned = keys.where("begins_empty").select("key").distinct()
    rows = keys.join(concerned, "key", "left_semi").select("begins_empty", before.alias("before"))
    return rows.where("begins_empty and before & 1 = 1").count()


def main(folder: str) -> int:
    """Run the job of a folder as the engine's child process. Write the result to a file; Spark logs to stderr."""
    threading.Thread(target=_end_with_the_broker, args=(folder,), daemon=True).start()
    work = CompactionTask.load(folder)
    try:
        spark = session("pulsarium compaction", master=work.master, config=dict(_config(work)))
        result = run(spark, work)
        spark.stop()
    except Exception as error:
        JobResult(error=error_line(str(error)) or repr(error)).save(folder)
        raise
    result.save(folder)
    return 0


def _config(work: CompactionTask) -> Iterator[tuple[str, str]]:
    """Yield Spark's settings. All of Spark's files go to the job's folder, unless the user's settings say otherwise."""
    local = str(Path(work.folder) / "spark")
    Path(local).mkdir(exist_ok=True)
    os.environ["TMPDIR"] = local
    yield "spark.sql.warehouse.dir", local
    yield "spark.driver.defaultJavaOptions", f'"-Djava.io.tmpdir={local}"'  # a killed JVM cannot clean up
    if work.master.startswith("local"):
        yield "spark.local.dir", local
    yield from work.config


def _end_with_the_broker(folder: str) -> None:
    """Wait until standard input ends with the broker.

    Then remove the folder and kill this process group, because nobody needs the result.
    """
    while os.read(0, 1):  # not sys.stdin, whose lock this thread would hold when the interpreter ends
        pass
    remove(Path(folder))
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
