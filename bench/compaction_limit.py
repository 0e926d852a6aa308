"""Run scripts/bench compaction-limit: compact a topic of many keys in a broker with little memory."""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bench.accounting import ProcessTree
from bench.brokers import Broker, Launch, pulsarium_command
from bench.compaction import compacted
from bench.raw_driver import PRODUCER_ID, Connection, RawDriverError, open_producer, send_all
from pulsarium.proto import batch, entry
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageMetadata, SingleMessageMetadata

ABOUT = """\
Fills a topic with messages that all have different keys, and compacts copies of the topic by each engine, in a broker
of its own. Prints the seconds, and the CPU seconds and the peak of the resident memory of the broker and of the
processes that it started.

  bounded       the broker itself, within its default key-memory; other keys wait in a file
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
BATCH = 1000
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


def fill(broker: Broker, keys: int, value_size: int) -> None:
    """Publish messages that all have different keys, over a bare socket."""
    connection = Connection(broker.service_url)
    open_producer(connection, TOPIC)
    send_all(connection, ((each, 1) for each in batches(keys, value_size)))
    connection.socket.close()


def batches(keys: int, value_size: int) -> Iterator[bytes]:
    """Yield the SEND frame of each batch. The keys have the same size, so that one template makes all messages."""
    key = "key-%012d"
    single = batch.pack([(SingleMessageMetadata(partition_key=key % 0), b"x" * value_size)])
    template = single.replace(b"%", b"%%").replace((key % 0).encode(), key.encode(), 1)
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id = PRODUCER_ID
    metadata = MessageMetadata(producer_name="bench", publish_time=1)
    for number, start in enumerate(range(0, keys, BATCH)):
        count = min(BATCH, keys - start)
        command.send.sequence_id = metadata.sequence_id = number
        command.send.num_messages = metadata.num_messages_in_batch = count
        payload = template * count % tuple(range(start, start + count))
        yield frame(command.SerializeToString(), entry.build(metadata, payload))


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
        with ProcessTree(launch.broker.pid) as tree:
            try:
                compacted(launch.broker, TOPIC, LIMIT_SECONDS)
                result = f"{time.perf_counter() - begin:.0f}"
            except (OSError, RawDriverError) as error:  # a broker without memory fails, or ends
                result = f"failed: {error}"
    finally:
        launch.stop()
    return engine, result, f"{tree.cpu:.0f}", f"{tree.peak / 1e6:,.0f} MB"


def main(given: Sequence[str]) -> int:
    asked, engines = arguments(given)
    with tempfile.TemporaryDirectory(prefix="pulsarium-bench-") as folder:
        source = Path(folder, "source")
        launch = Launch([*pulsarium_command(), "--data", str(source)])
        try:
            fill(launch.broker, asked.keys, asked.value_size)
        finally:
            launch.stop()
        print(f"{asked.keys:,} keys, {asked.memory:g} GB of address space for a broker without Spark\n")
        print("| engine | seconds | CPU seconds | peak memory |\n|---|--:|--:|--:|", flush=True)
        for engine in engines:
            data = Path(folder, engine, "data")
            shutil.copytree(source, data)
            print(f"| {' | '.join(measure(engine, data, asked))} |", flush=True)
            shutil.rmtree(data.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
