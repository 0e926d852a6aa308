"""Run scripts/bench compaction-limit: compact a topic of many keys in a broker with little memory."""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import anyio

from bench.accounting import cpu_seconds, peak_memory
from bench.brokers import Launch, pulsarium_command
from bench.compaction import compacted
from bench.pipeline.topics import fill_distinct
from bench.raw_driver import RawDriverError

ABOUT = """\
Fills a topic with messages that all have different keys, and compacts copies of the topic by each engine, in a broker
of its own. Prints the seconds, the CPU seconds of the broker alone, and the peak of the broker's resident memory.

  bounded       the broker itself, within its default key-memory, in as many passes as the keys need
  all-at-once   the broker itself, with all keys in memory
  spark         Spark, in child processes of the broker

The address space of the broker is limited (RLIMIT_AS), except for spark: a JVM reserves more than it uses, and would
inherit the limit. So its row is for comparison.
"""
ENGINES = {
    "bounded": ["--compaction-engine", "two-phase"],
    "all-at-once": ["--compaction-engine", "two-phase", "--compaction-option", "key-memory=1000000000000"],
    "spark": ["--compaction-engine", "spark"],
}
TOPIC = "persistent://public/default/keys"
LIMIT_SECONDS = 12 * 3600
GB = 2**30

Row: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True)
class Asked:
    """Options of a run."""

    keys: int
    value_size: int
    memory: float
    """In GB."""
    master: str


def arguments(given: Sequence[str]) -> tuple[Asked, list[str]]:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench compaction-limit", description=ABOUT, formatter_class=layout)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"only these of {', '.join(ENGINES)}")
    parser.add_argument("--keys", type=int, default=5_000_000, metavar="N", help="messages and keys (default: 5000000)")
    parser.add_argument("--value-size", type=int, default=20, metavar="BYTES", help="of a message (default: 20)")
    parser.add_argument("--memory", type=float, default=1, metavar="GB", help="address space of a broker (default: 1)")
    parser.add_argument("--master", default="local[*]", metavar="URL", help="Spark's master (default: local[*])")
    found = parser.parse_args(given)
    if unknown := set(found.engines) - ENGINES.keys():
        parser.error(f"unknown engine: {', '.join(sorted(unknown))} (the engines are {', '.join(ENGINES)})")
    if found.keys < 1 or found.value_size < 1 or found.memory <= 0:
        parser.error("--keys, --value-size and --memory must be positive")
    return Asked(found.keys, found.value_size, found.memory, found.master), found.engines or list(ENGINES)


def measure(engine: str, data: Path, asked: Asked) -> Row:
    """Compact the topic of a data folder, and return a row of the table."""
    options = list(ENGINES[engine])
    if engine == "spark":
        options += ["--compaction-option", f"master={asked.master}", "--compaction-option", f"work-dir={data.parent}"]
    launch = Launch([*pulsarium_command(), "--data", str(data), *options])
    begin = time.perf_counter()
    try:
        if engine != "spark":
            limit = int(asked.memory * GB)
            resource.prlimit(launch.broker.pid, resource.RLIMIT_AS, (limit, limit))
        try:
            compacted(launch.broker, TOPIC, LIMIT_SECONDS)
            result = f"{time.perf_counter() - begin:.0f}"
        except (OSError, RawDriverError) as error:  # a broker without memory fails, or ends
            result = f"failed: {error}"
        cpu, peak = cpu_seconds(launch.broker.pid), peak_memory(launch.broker.pid)
    finally:
        launch.stop()
    return engine, result, f"{cpu:.0f}", f"{peak / 1e6:,.0f} MB"


def main(given: Sequence[str]) -> int:
    asked, engines = arguments(given)
    with tempfile.TemporaryDirectory(prefix="pulsarium-bench-") as folder:
        source = Path(folder, "source")
        launch = Launch([*pulsarium_command(), "--data", str(source)])
        try:
            anyio.run(fill_distinct, launch.broker, TOPIC, asked.keys, asked.value_size)
        finally:
            launch.stop()
        print(f"{asked.keys:,} keys, {asked.memory:g} GB of address space for a broker without Spark\n")
        print(
            "| engine | seconds | CPU seconds of the broker | peak memory of the broker |\n|---|--:|--:|--:|",
            flush=True,
        )
        for engine in engines:
            data = Path(folder, engine, "data")
            shutil.copytree(source, data)
            print(f"| {' | '.join(measure(engine, data, asked))} |", flush=True)
            shutil.rmtree(data.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
