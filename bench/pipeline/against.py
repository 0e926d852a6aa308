"""Compare the data source `pulsar` with the connector for the JVM, on the same broker and the same data.

A data source that does nothing shows the part of Spark itself (`floor.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from bench.brokers import ROOT, Broker, Launch, pulsarium_command
from bench.pipeline import floor
from bench.pipeline.one_session import Cost, Read, Session, Write
from bench.pipeline.spent import PARTS
from bench.pipeline.topics import BATCH, create, fill
from bench.reference import jars
from pulsarium.client import AvroSchema, JsonSchema, Schema, connect, connect_admin

OURS, JVM, FLOOR = "pulsarium", "JVM", "nothing"
SOURCES = {JVM: "org.apache.spark.sql.pulsar.PulsarProvider", OURS: "pulsar", FLOOR: floor.NAME}
PARTITIONS = 4
FIRST = "first read in a session, 100 B"
FIRST_WRITE = "first write in a session, 100 B"
TARGETS = {"read JSON": 0.7, "write 100 B": 0.7, FIRST_WRITE: 0.7}
"""Ratios to reach beside the connector for the JVM. The others are 1."""
_BESIDE = ("pulsar", "bouncy-castle", "opentelemetry", "bcpkix", "bcprov", "bcutil")
"""Jars of the connector that Spark does not have itself, by a part of their names."""
_RECORD = {
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


_KEEP = [
    word
    for setting in (
        "defaultRetentionTimeInMinutes=-1",
        "defaultRetentionSizeInMB=-1",
        "brokerDeleteInactiveTopicsEnabled=false",
    )
    for word in ("--set", setting)
]


class NoPeer(RuntimeError):
    """Refuse a comparison without the connector. The text says what is missing."""


def connector(given: str | None) -> list[str]:
    """Return the jars of the connector. Raise `NoPeer` without them."""
    if given is None:
        raise NoPeer("the comparison with the JVM connector is skipped: pass --jvm-connector JAR")
    if not Path(given).is_file():
        raise NoPeer(f"the comparison with the JVM connector is skipped: there is no file {given}")
    folder = jars.fetch(jars.CACHE, jars.SPARK)
    beside = sorted(str(each) for each in folder.glob("*.jar") if any(part in each.name for part in _BESIDE))
    return [str(Path(given).resolve()), *beside]


@dataclass(frozen=True)
class Figure:
    """A figure of both systems, and of a data source that does nothing: the cost in each session."""

    name: str
    rows: int
    costs: Mapping[str, list[Cost]]

    def seconds(self, system: str) -> float:
        """Return the median of a system."""
        return median(each.seconds for each in self.costs[system])

    @property
    def ratio(self) -> float:
        """Return how many times as fast as the connector for the JVM the data source `pulsar` is."""
        return self.seconds(JVM) / self.seconds(OURS)

    @property
    def is_missed(self) -> bool:
        return self.ratio < TARGETS.get(self.name, 1)


def compare(peer: Sequence[str], scale: float, repetitions: int) -> list[Figure]:
    """Return all figures, each with as many costs of a system as there are repetitions."""
    found: dict[str, Figure] = {}
    launch = Launch([*pulsarium_command(), *_KEEP])
    try:
        reads = anyio.run(_fill, launch.broker, scale)
        for repetition in range(repetitions):
            for system in SOURCES:
                writes = anyio.run(_targets, launch.broker, scale, f"{system}-{repetition}")
                costs = _session(launch.broker, system, peer if system == JVM else [], reads, writes)
                if system != FLOOR:
                    anyio.run(_check, launch.broker, writes)
                everything: list[Read | Write] = [*reads, *writes]
                for each in everything:
                    made = found.setdefault(each.figure, Figure(each.figure, each.rows, {name: [] for name in SOURCES}))
                    made.costs[system].append(costs[each.figure])
                print(f"{system}, session {repetition + 1} of {repetitions}", file=sys.stderr, flush=True)
    finally:
        launch.stop()
    return list(found.values())


def _session(
    broker: Broker, system: str, peer: Sequence[str], reads: Sequence[Read], writes: Sequence[Write]
) -> Mapping[str, Cost]:
    connection = {"service.url": broker.service_url, "admin.url": broker.admin_url}
    asked = Session(SOURCES[system], peer, connection, broker.pid, reads, writes).encode()
    program = [sys.executable, "-P", "-m", "bench.pipeline.one_session"]
    done = subprocess.run(program, input=asked, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise NoPeer(f"the session of {system} failed: see its log above")
    return {figure: Cost(**cost) for figure, cost in json.loads(done.stdout.splitlines()[-1]).items()}


async def _fill(broker: Broker, scale: float) -> list[Read]:
    rows = {name: max(PARTITIONS, int(scale * count)) for name, count in _ROWS.items()}
    await fill(broker, "read-100", rows["100"], 100, PARTITIONS)
    await fill(broker, "read-1000", rows["1000"], 1000, PARTITIONS)
    await fill(broker, "read-one", rows["100"], 100, 1)
    await _records(broker, "read-json", JsonSchema(_RECORD), rows["records"])
    await _records(broker, "read-avro", AvroSchema(_RECORD), rows["records"])
    return [
        Read(FIRST, "read-100", rows["100"], 100, PARTITIONS, {}),
        Read("read 100 B", "read-100", rows["100"], 100, PARTITIONS, {}),
        Read("read 1 KB", "read-1000", rows["1000"], 1000, PARTITIONS, {}),
        Read("read JSON", "read-json", rows["records"], 0, PARTITIONS, {}),
        Read("read Avro", "read-avro", rows["records"], 0, PARTITIONS, {}),
        Read("read one partition", "read-one", rows["100"], 100, 1, {}),
        Read("read one partition, minPartitions=2", "read-one", rows["100"], 100, 2, {"minPartitions": "2"}),
    ]


_ROWS = {"100": 400_000, "1000": 100_000, "records": 200_000}


async def _records(broker: Broker, topic: str, schema: Schema[Any], count: int) -> None:
    await create(broker, topic, PARTITIONS)
    async with (
        connect(broker.service_url) as client,
        client.create_producer(
            topic, schema=schema, batching_max_messages=BATCH, max_pending_messages=20 * BATCH
        ) as producer,
    ):
        for number in range(count):
            record = {"id": number, "name": f"name-{number % 1000}", "price": number / 2, "qty": number % 100}
            await producer.submit(record | {"active": number % 2 == 0, "note": "n" * 30})
        await producer.flush()


async def _targets(broker: Broker, scale: float, suffix: str) -> list[Write]:
    rows = {name: max(PARTITIONS, int(scale * count)) for name, count in _ROWS.items()}
    made = [
        Write(FIRST_WRITE, f"write-first-{suffix}", rows["100"], 100),
        Write("write 100 B", f"write-100-{suffix}", rows["100"], 100),
        Write("write 1 KB", f"write-1000-{suffix}", rows["1000"], 1000),
        Write("write records", f"write-records-{suffix}", rows["records"], 0),
    ]
    for each in made:
        await create(broker, each.topic, PARTITIONS)
    return made


async def _check(broker: Broker, writes: Sequence[Write]) -> None:
    """Raise `NoPeer` when a topic has another number of messages than rows were written."""
    async with connect_admin(broker.admin_url) as admin:
        for each in writes:
            stats = await admin.topics.get_partitioned_stats(each.topic)
            if stats["msgInCounter"] != each.rows:
                raise NoPeer(f"{each.topic} has {stats['msgInCounter']} messages, and {each.rows} rows were written")


def table(figures: Sequence[Figure]) -> str:
    """Return the medians as a Markdown table. A ratio above 1 means that the data source `pulsar` is faster."""
    lines = [
        "| rows a second, median | JVM connector | pulsarium | ratio | target | a data source that does nothing |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for each in figures:
        shown = {
            system: f"{each.seconds(system):,.1f} s"
            if each.name == FIRST
            else f"{each.rows / each.seconds(system):,.0f}"
            for system in SOURCES
        }
        ratio = f"{each.ratio:.2f}" + (" (missed)" if each.is_missed else "")
        target = f"{TARGETS.get(each.name, 1):g}"
        lines.append(f"| {each.name} | {shown[JVM]} | {shown[OURS]} | {ratio} | {target} | {shown[FLOOR]} |")
    return "\n".join(lines)


def profile(figures: Sequence[Figure]) -> str:
    """Return the seconds of CPU of each missed figure by the parts of a session, as a Markdown table, or ""."""
    missed = [each for each in figures if each.is_missed]
    if not missed:
        return ""
    head = " | ".join(PARTS)
    lines = [f"| seconds, median | system | all | CPU of {head} |", "|---|---|--:|" + "--:|" * len(PARTS)]
    for each in missed:
        for system in SOURCES:
            parts = [median(cost.cpu.get(part, 0) for cost in each.costs[system]) for part in PARTS]
            cells = " | ".join(f"{seconds:.2f}" for seconds in parts)
            lines.append(f"| {each.name} | {system} | {each.seconds(system):.2f} | {cells} |")
    return "\n".join(lines)


def as_json(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    return [asdict(each) for each in figures]
