"""Compare compaction by Spark with the broker's own."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio

from bench.brokers import Launch, pulsarium_command
from bench.compaction import KEPT_SHARE, compacted
from bench.pipeline.figures import Figure
from bench.pipeline.topics import fill_keyed

MESSAGES = (1_000_000, 10_000_000)
SIZE = 100
LIMIT_SECONDS = 1800
TOPIC = "persistent://public/default/compacted"
IN_PROCESS, SPARK = "in process", "Spark"


def figures(scale: float, master: str) -> Iterator[Figure]:
    """Measure each size and engine from the trigger to the end, with the start of Spark."""
    for messages in (max(KEPT_SHARE, int(scale * each)) for each in MESSAGES):
        with tempfile.TemporaryDirectory(prefix="pulsarium-bench-") as folder:
            # both engines compact the same ledgers
            first, second = Path(folder, "first"), Path(folder, "second")
            _fill(first, messages)
            shutil.copytree(first, second)
            spark = "--compaction-engine", "spark", "--compaction-option", f"master={master}"
            yield Figure(f"compact, {IN_PROCESS}", messages, 1, [_seconds(first)])
            yield Figure(f"compact, {SPARK}", messages, 1, [_seconds(second, *spark)])


def _fill(data: Path, messages: int) -> None:
    launch = Launch([*pulsarium_command(), "--data", str(data)])
    try:
        anyio.run(fill_keyed, launch.broker, TOPIC, messages, SIZE, messages // KEPT_SHARE)
    finally:
        launch.stop()


def _seconds(data: Path, *options: str) -> float:
    launch = Launch([*pulsarium_command(), "--data", str(data), *options])
    try:
        begin = time.perf_counter()
        compacted(launch.broker, TOPIC, LIMIT_SECONDS)
        return time.perf_counter() - begin
    finally:
        launch.stop()


def crossover(all_figures: Sequence[Figure]) -> str:
    """Return from how many messages on Spark is quicker, by lines through two points, or "" without both points."""
    found = {
        engine: [(each.rows, each.seconds[0]) for each in all_figures if each.what == f"compact, {engine}"]
        for engine in (IN_PROCESS, SPARK)
    }
    if any(len(points) < 2 for points in found.values()):
        return ""
    lines = []
    for (few, quick), (many, slow) in found.values():
        slope = (slow - quick) / (many - few)
        lines.append((quick - slope * few, slope))
    (base, slope), (spark_base, spark_slope) = lines
    if spark_slope >= slope:
        return "Spark is not quicker here, with any number of messages: it needs more cores."
    return f"Spark is quicker from about {(spark_base - base) / (slope - spark_slope):,.0f} messages on."
