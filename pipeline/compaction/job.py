"""The Spark job of a compaction. `python -m pulsarium.pipeline.compaction.job FOLDER` runs one, as the engine does."""

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
from pulsarium.pipeline.compaction.chunks import CHUNK_SHIFT, Work, remove
from pulsarium.pipeline.errors import error_line
from pulsarium.pipeline.spark import session

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULT = "result.json"


@dataclass(frozen=True)
class Result:
    """What came of it."""

    entries: int = 0
    removed: int = 0
    error: str | None = None

    def save(self, folder: str) -> None:
        path = Path(folder) / RESULT
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self)))
        temporary.replace(path)

    @staticmethod
    def load(folder: str) -> Result | None:
        """What `save` wrote; None where it did not."""
        try:
            return Result(**json.loads((Path(folder) / RESULT).read_text()))
        except FileNotFoundError:
            return None


def run(spark: SparkSession, work: Work) -> Result:
    """Writes out-N.arrow of all chunks. Nothing comes to the driver but a row of numbers for each chunk."""
    if not work.chunks:
        return Result()
    opened = _chunks(spark, work).mapInArrow(partial(opening.open_chunks, work=work), opening.SUMMARY).collect()
    keys = _keys(spark, work)
    last = keys.repartition(_parts(spark, work), "key").groupBy("key").agg(f.max("place").alias("place"))
    kept = last.where("place & 1 = 1").select(f.shiftright("place", CHUNK_SHIFT).alias("chunk"), "place")
    each = _chunks(spark, work).selectExpr("id as chunk", f"cast({rewriting.NO_PLACE} as long) as place")
    by_chunk = kept.union(each).repartitionById(work.chunks, f.col("chunk").cast("int"))
    written = by_chunk.mapInArrow(partial(rewriting.rewrite_chunks, work=work), rewriting.SUMMARY).collect()
    # Pulsar counts messages without a value, and values that the next message of their key replaces; not those which
    # one without a value deletes. Inside a chunk that was counted; between two, the last value in each but the last
    # chunk of its key was replaced, unless the next chunk begins with a message that deletes it.
    replaced = sum(row.with_value for row in opened) - sum(row["keys"] for row in written)
    if any(row.begin_empty for row in opened):
        replaced -= _deleted_between_chunks(keys)
    return Result(sum(row.entries for row in written), sum(row.removed for row in opened) + replaced)


def _chunks(spark: SparkSession, work: Work) -> DataFrame:
    """A task for each chunk."""
    return spark.range(0, work.chunks, 1, work.chunks)


def _keys(spark: SparkSession, work: Work) -> DataFrame:
    schema = "key binary, place long, begins_empty boolean"
    return _chunks(spark, work).mapInArrow(partial(opening.keys_of_chunks, work=work), schema)


def _parts(spark: SparkSession, work: Work) -> int:
    """Of the shuffle by key: a part has about as many keys as a chunk at most, so that it fits into memory."""
    return max(work.chunks, min(spark.sparkContext.defaultParallelism, 2 * work.chunks))


def _deleted_between_chunks(keys: DataFrame) -> int:
    """How many chunks begin with a message that deletes the value which a key had at the end of the chunk before."""
    before = f.lag("place").over(Window.partitionBy("key").orderBy("place"))
    concerned = keys.where("begins_empty").select("key").distinct()
    rows = keys.join(concerned, "key", "left_semi").select("begins_empty", before.alias("before"))
    return rows.where("begins_empty and before & 1 = 1").count()


def main(folder: str) -> int:
    """The child process of an engine: its result goes to a file, what Spark says to stderr."""
    threading.Thread(target=_end_with_the_broker, args=(folder,), daemon=True).start()
    work = Work.load(folder)
    try:
        spark = session("pulsarium compaction", master=work.master, config=dict(_config(work)))
        result = run(spark, work)
        spark.stop()
    except Exception as error:
        Result(error=error_line(str(error)) or repr(error)).save(folder)
        raise
    result.save(folder)
    return 0


def _config(work: Work) -> Iterator[tuple[str, str]]:
    """Whatever Spark keeps goes with the folder, unless the user says where."""
    local = str(Path(work.folder) / "spark")
    Path(local).mkdir(exist_ok=True)
    os.environ["TMPDIR"] = local
    yield "spark.sql.warehouse.dir", local
    yield "spark.driver.defaultJavaOptions", f'"-Djava.io.tmpdir={local}"'  # it is killed, and cannot tidy up
    if work.master.startswith("local"):
        yield "spark.local.dir", local
    yield from work.config


def _end_with_the_broker(folder: str) -> None:
    """Standard input ends when the broker does, however it ends: then nobody wants the result."""
    while os.read(0, 1):  # not sys.stdin, whose lock this thread would hold when the interpreter ends
        pass
    remove(Path(folder))
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
