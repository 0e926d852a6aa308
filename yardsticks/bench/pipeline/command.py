"""Run scripts/bench pipeline."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import anyio

from pulsarium.client import AvroSchema, BytesSchema, JsonSchema, Schema, connect, connect_admin
from pulsarium.pipeline.spark import NoJava, require_java
from yardsticks.bench.brokers import Broker, BrokerError, launched, pulsarium_command
from yardsticks.bench.drivers.compaction import KEPT_SHARE, compacted
from yardsticks.bench.pipeline.session import Job, Session
from yardsticks.bench.report import in_markdown, machine
from yardsticks.servers import ROOT
from yardsticks.servers.reference import jars

MASTER = "PULSARIUM_TEST_SPARK_MASTER"
PARTS = ("read", "write", "compact")

ABOUT = f"""\
Measures the pipeline: rows a second that Spark reads from a Pulsarium broker and writes to it, in sessions of their
own. Then it measures compaction by the broker itself and on Spark, from its start to its end, once. The table is
Markdown.

  scripts/bench pipeline                  everything
  scripts/bench pipeline --quick          a tenth of the messages, one session
  scripts/bench pipeline read write       only these parts (of {", ".join(PARTS)})
  scripts/bench pipeline --against jvm --jvm-connector JAR     beside the connector for the JVM, session by session
  scripts/bench pipeline --workers 1 2 4   on clusters of so many workers with one core each, session by session
  scripts/spark-cluster scripts/bench pipeline     the same on a master and two workers, processes of their own
"""
OURS, JVM = "pulsarium", "JVM connector"
FORMAT, JVM_FORMAT = "pulsar", "org.apache.spark.sql.pulsar.PulsarProvider"
CLUSTER = "local-cluster[{workers},1,1024]"  # one core and 1024 MB for each worker
PARTITIONS = 4
BATCH = 1000
ROWS = {"100": 400_000, "1000": 100_000, "records": 200_000, "compact": 1_000_000}
FIRST, FIRST_WRITE = "first read in a session, 100 B", "first write in a session, 100 B"
TARGETS = {"read JSON": 0.7, "write 100 B": 0.7, FIRST_WRITE: 0.7}
"""Ratios to reach beside the connector for the JVM. The others are 1."""
COMPACTED = "persistent://public/default/compacted"
LIMIT_SECONDS = 1800  # of compaction
BESIDE = ("pulsar", "bouncy-castle", "opentelemetry", "bcpkix", "bcprov", "bcutil")
"""Jars of the connector that Spark does not have itself, by a part of their names."""
RECORD = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "price", "type": ["null", "double"]},
        {"name": "qty", "type": ["null", "int"]},
        {"name": "active", "type": ["null", "boolean"]},
        {"name": "note", "type": ["null", "string"]},
    ],
}
KEEP = ("defaultRetentionTimeInMinutes=-1", "defaultRetentionSizeInMB=-1", "brokerDeleteInactiveTopicsEnabled=false")


class System(NamedTuple):
    """A data source of Spark, and where its sessions run."""

    source: str
    master: str
    jars: Sequence[str] = ()
    cores: int = 0
    """Cores of all workers, or 0 when the table shows no figure per core."""


class NoPeer(RuntimeError):
    """Refuse a comparison without the connector. The text says what is missing."""


@dataclass(frozen=True)
class Figure:
    """The seconds of a read, a write or a compaction, by system, in each session."""

    name: str
    rows: int
    seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Return how many times as fast as the connector for the JVM the data source `pulsar` is."""
        return median(self.seconds[JVM]) / median(self.seconds[OURS])

    @property
    def target(self) -> float:
        return TARGETS.get(self.name, 1)


def connector(given: str | None) -> list[str]:
    """Return the jars of the connector. Raise `NoPeer` without them."""
    if given is None:
        raise NoPeer("the comparison with the JVM connector is skipped: pass --jvm-connector JAR")
    if not Path(given).is_file():
        raise NoPeer(f"the comparison with the JVM connector is skipped: there is no file {given}")
    folder = jars.fetch(jars.CACHE, jars.SPARK)
    beside = sorted(str(each) for each in folder.glob("*.jar") if any(part in each.name for part in BESIDE))
    return [str(Path(given).resolve()), *beside]


# ---- topics


async def create(broker: Broker, topic: str, partitions: int = PARTITIONS) -> None:
    async with connect_admin(broker.admin_url) as admin:
        await admin.topics.create_partitioned_topic(topic, partitions)


async def publish(
    broker: Broker, topic: str, values: Iterable[Any], keys: Iterable[str | None], schema: Schema[Any] | None = None
) -> None:
    async with (
        connect(broker.service_url) as client,
        client.create_producer(
            topic, batching_max_messages=BATCH, max_pending_messages=20 * BATCH, schema=schema or BytesSchema()
        ) as producer,
    ):
        for value, key in zip(values, keys, strict=False):
            await producer.submit(value, partition_key=key)
        await producer.flush()


def numbers(count: int, size: int) -> Iterable[bytes]:
    return (b"%0*d" % (size, number) for number in range(count))


def no_keys() -> Iterable[None]:
    return iter(lambda: None, 0)


async def fill(broker: Broker, rows: dict[str, int]) -> list[Job]:
    """Fill the topics to read, and return their reads."""
    for topic, size, partitions in (("read-100", "100", PARTITIONS), ("read-1000", "1000", PARTITIONS)):
        await create(broker, topic, partitions)
        await publish(broker, topic, numbers(rows[size], int(size)), no_keys())
    await publish(broker, "read-one", numbers(rows["100"], 100), no_keys())
    for topic, schema in (("read-json", JsonSchema(RECORD)), ("read-avro", AvroSchema(RECORD))):
        records = (
            {"id": number, "name": f"name-{number % 1000}", "price": number / 2, "qty": number % 100}
            | {"active": number % 2 == 0, "note": "n" * 30}
            for number in range(rows["records"])
        )
        await create(broker, topic)
        await publish(broker, topic, records, no_keys(), schema)
    return [
        Job(FIRST, "read-100", rows["100"], 100),
        Job("read 100 B", "read-100", rows["100"], 100),
        Job("read 1 KB", "read-1000", rows["1000"], 1000),
        Job("read JSON", "read-json", rows["records"], 0),
        Job("read Avro", "read-avro", rows["records"], 0),
        Job("read one partition", "read-one", rows["100"], 100),
        Job("read one partition, minPartitions=2", "read-one", rows["100"], 100, {"minPartitions": "2"}),
    ]


async def targets(broker: Broker, rows: dict[str, int], suffix: str) -> list[Job]:
    """Create the topics of the writes of a session, and return these."""
    made = [
        Job(FIRST_WRITE, f"write-first-{suffix}", rows["100"], 100),
        Job("write 100 B", f"write-100-{suffix}", rows["100"], 100),
        Job("write 1 KB", f"write-1000-{suffix}", rows["1000"], 1000),
        Job("write records", f"write-records-{suffix}", rows["records"], 0),
    ]
    for each in made:
        await create(broker, each.topic)
    return made


async def check(broker: Broker, writes: Sequence[Job]) -> None:
    """Raise `NoPeer` when a topic has another number of messages than rows were written."""
    async with connect_admin(broker.admin_url) as admin:
        for each in writes:
            stats = await admin.topics.get_partitioned_stats(each.topic)
            if stats["msgInCounter"] != each.rows:
                raise NoPeer(f"{each.topic} has {stats['msgInCounter']} messages, and {each.rows} rows were written")


# ---- measurements


def systems(options: argparse.Namespace, peer: Sequence[str]) -> dict[str, System]:
    """Return the systems to measure by their names. With jars in `peer`, one is the connector for the JVM."""
    if options.workers:
        clusters = [System(FORMAT, CLUSTER.format(workers=number), cores=number) for number in options.workers]
        return {f"{each.cores} worker{'s' * (each.cores > 1)}": each for each in clusters}
    other = {JVM: System(JVM_FORMAT, options.master, peer)} if peer else {}
    return {**other, OURS: System(FORMAT, options.master)}


def sessions(options: argparse.Namespace, rows: dict[str, int], measured: dict[str, System]) -> list[Figure]:
    """Return the figures of reads and writes, of all systems in turn."""
    found: dict[str, Figure] = {}
    settings = [word for setting in KEEP for word in ("--set", setting)]
    with launched(pulsarium_command(*settings)) as launch:
        broker = launch.broker
        connection = {"service.url": broker.service_url, "admin.url": broker.admin_url}
        reads = anyio.run(fill, broker, rows) if "read" in options.parts else []
        for repetition in range(options.repetitions):
            for number, (system, (source, master, jars, _)) in enumerate(measured.items()):
                writes = []
                if "write" in options.parts:
                    writes = anyio.run(targets, broker, rows, f"{number}-{repetition}")
                asked = Session(source, jars, master, connection, reads, writes)
                program = [sys.executable, "-P", "-m", "yardsticks.bench.pipeline.session"]
                run = partial(subprocess.run, stdout=subprocess.PIPE, text=True, check=False)
                done = run(program, input=asked.encode(), env={**os.environ, "PYTHONPATH": str(ROOT)})
                if done.returncode:
                    raise NoPeer(f"the session of {system} failed: see its log above")
                seconds = json.loads(done.stdout.splitlines()[-1])
                anyio.run(check, broker, writes)
                for job in [*reads, *writes]:
                    figure = found.setdefault(job.figure, Figure(job.figure, job.rows))
                    figure.seconds.setdefault(system, []).append(seconds[job.figure])
                print(f"{system}, session {repetition + 1} of {options.repetitions}", file=sys.stderr, flush=True)
    return list(found.values())


def compaction(master: str, rows: int) -> Iterable[Figure]:
    """Compact the same ledgers to a tenth by each engine, with the start of Spark."""
    chance = random.Random(COMPACTED)
    keys = (f"key-{chance.randrange(max(1, rows // KEPT_SHARE))}" for _ in range(rows))
    with tempfile.TemporaryDirectory(prefix="pulsarium-bench-") as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        with launched(pulsarium_command("--data", str(first))) as launch:
            anyio.run(publish, launch.broker, COMPACTED, numbers(rows, 100), keys)
        shutil.copytree(first, second)
        spark = ("--compaction-engine", "spark", "--compaction-option", f"master={master}")
        for name, data, more in (("by the broker itself", first, ()), ("by Spark", second, spark)):
            with launched(pulsarium_command("--data", str(data), *more)) as launch:
                begin = time.perf_counter()
                compacted(launch.broker.admin_url, COMPACTED, LIMIT_SECONDS)
                yield Figure(f"compaction {name}", rows, {OURS: [time.perf_counter() - begin]})


def table(figures: Sequence[Figure], cores: Mapping[str, int] | None = None) -> str:
    """Return the medians as a Markdown table. A ratio above 1 means that the data source `pulsar` is faster.

    A system with `cores` has its figure per core in brackets.
    """
    names = [*dict.fromkeys(system for each in figures for system in each.seconds)]
    both = JVM in names
    rows = [["rows a second, median", *names, *(["ratio", "target"] if both else [])]]
    for each in figures:
        missed = " (missed)" if both and each.ratio < each.target else ""
        more = [f"{each.ratio:.2f}{missed}", f"{each.target:g}"] if both else []
        cells = [_cell(each, system, (cores or {}).get(system, 0)) for system in names if system in each.seconds]
        rows.append([each.name, *cells, *more])
    return in_markdown(rows)


def _cell(figure: Figure, system: str, cores: int) -> str:
    seconds = median(figure.seconds[system])
    if figure.name == FIRST:
        return f"{seconds:,.1f} s"
    rate = figure.rows / seconds
    return f"{rate:,.0f} ({rate / cores:,.0f})" if cores else f"{rate:,.0f}"


def main(given: Sequence[str]) -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench pipeline", description=ABOUT, formatter_class=layout)
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help="measure only these")
    add("--quick", action="store_true", help="a tenth of the messages, one session")
    add("--scale", type=float, default=1, metavar="FACTOR", help="multiply the number of messages by FACTOR")
    add("--repetitions", type=int, metavar="N", help="sessions (default: 3)")
    master = os.environ.get(MASTER, "local[*]")
    add("--master", default=master, help=f"Spark's master (default: ${MASTER} or local[*])")
    add("--workers", type=int, nargs="+", metavar="N", help="clusters of N workers with one core each")
    add("--json", metavar="FILE", help='write the figures as JSON to FILE; "-" prints them in place of the table')
    add("--against", choices=["jvm"], help="compare reads and writes with the connector for the JVM")
    add("--jvm-connector", metavar="JAR", help="that connector, built for the Spark installed here")
    options = parser.parse_args(given)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))} (the parts are {', '.join(PARTS)})")
    options.parts = options.parts or (PARTS[:2] if options.against or options.workers else PARTS)
    options.repetitions = options.repetitions or (1 if options.quick else 3)
    scale = options.scale * (0.1 if options.quick else 1)
    if options.repetitions < 1 or scale <= 0 or (options.against and "compact" in options.parts):
        parser.error("at least one session must count, with at least one message, and the connector cannot compact")
    if options.workers and (options.against or min(options.workers) < 1 or "compact" in options.parts):
        parser.error("--workers measures reads and writes of this data source, on clusters of at least one worker")
    rows = {name: max(PARTITIONS, int(scale * count)) for name, count in ROWS.items()}
    figures: list[Figure] = []
    try:
        peer = connector(options.jvm_connector) if options.against else ()
        require_java()
        measured = systems(options, peer)
        if {"read", "write"} & {*options.parts}:
            figures += sessions(options, rows, measured)
        if "compact" in options.parts:
            figures += compaction(options.master, rows["compact"])
    except (NoPeer, BrokerError, NoJava) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 0 if options.against and options.jvm_connector is None else 2
    text = json.dumps({"machine": machine(), "figures": [asdict(each) for each in figures]}, indent=1)
    print(text if options.json == "-" else table(figures, {name: each.cores for name, each in measured.items()}))
    if options.json and options.json != "-":
        Path(options.json).write_text(text + "\n")
    return 0
