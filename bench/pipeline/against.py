"""Compare the data source `pulsar` with the connector for the JVM, on the same broker and the same data."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from bench.brokers import ROOT, Broker, Launch, pulsarium_command
from bench.pipeline.one_session import Read, Session, Write
from bench.pipeline.topics import BATCH, create, fill
from bench.reference import jars
from pulsarium.client import AvroSchema, JsonSchema, Schema, connect, connect_admin

OURS, JVM = "pulsarium", "JVM"
SOURCES = {OURS: "pulsar", JVM: "org.apache.spark.sql.pulsar.PulsarProvider"}
PARTITIONS = 4
FIRST = "first read in a session, 100 B"
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


def compare(peer: Sequence[str], scale: float, repetitions: int) -> dict[str, dict[str, list[float]]]:
    """Return the rows a second of each figure and system, or the seconds of the first read."""
    found: dict[str, dict[str, list[float]]] = {}
    launch = Launch([*pulsarium_command(), *_KEEP])
    try:
        reads = anyio.run(_fill, launch.broker, scale)
        for repetition in range(repetitions):
            for system in (JVM, OURS):
                writes = anyio.run(_targets, launch.broker, scale, f"{system}-{repetition}")
                seconds = _session(launch.broker, system, peer if system == JVM else [], reads, writes)
                anyio.run(_check, launch.broker, writes)
                everything: list[Read | Write] = [*reads, *writes]
                for each in everything:
                    taken = seconds[each.figure]
                    figure = taken if each.figure == FIRST else each.rows / taken
                    found.setdefault(each.figure, {}).setdefault(system, []).append(figure)
                print(f"{system}, session {repetition + 1} of {repetitions}", file=sys.stderr, flush=True)
    finally:
        launch.stop()
    return found


def _session(
    broker: Broker, system: str, peer: Sequence[str], reads: Sequence[Read], writes: Sequence[Write]
) -> Mapping[str, float]:
    connection = {"service.url": broker.service_url, "admin.url": broker.admin_url}
    asked = Session(SOURCES[system], peer, connection, reads, writes).encode()
    program = [sys.executable, "-P", "-m", "bench.pipeline.one_session"]
    done = subprocess.run(program, input=asked, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise NoPeer(f"the session of {system} failed: see its log above")
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


async def _fill(broker: Broker, scale: float) -> list[Read]:
    rows = {name: max(PARTITIONS, int(scale * count)) for name, count in _ROWS.items()}
    await fill(broker, "read-100", rows["100"], 100, PARTITIONS)
    await fill(broker, "read-1000", rows["1000"], 1000, PARTITIONS)
    await fill(broker, "read-one", rows["100"], 100, 1)
    await _records(broker, "read-json", JsonSchema(_RECORD), rows["records"])
    await _records(broker, "read-avro", AvroSchema(_RECORD), rows["records"])
    return [
        Read(FIRST, "read-100", rows["100"], {}),
        Read("read 100 B", "read-100", rows["100"], {}),
        Read("read 1 KB", "read-1000", rows["1000"], {}),
        Read("read JSON", "read-json", rows["records"], {}),
        Read("read Avro", "read-avro", rows["records"], {}),
        Read("read one partition", "read-one", rows["100"], {}),
        Read("read one partition, minPartitions=2", "read-one", rows["100"], {"minPartitions": "2"}),
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


def table(found: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return the medians as a Markdown table. A ratio above 1 means that the data source `pulsar` is faster."""
    lines = ["| rows a second, median | JVM connector | pulsarium | ratio |", "|---|--:|--:|--:|"]
    for figure, by_system in found.items():
        theirs, ours = median(by_system[JVM]), median(by_system[OURS])
        ratio = theirs / ours if figure == FIRST else ours / theirs
        unit = " s" if figure == FIRST else ""
        digits = ",.1f" if figure == FIRST else ",.0f"
        lines.append(f"| {figure} | {theirs:{digits}}{unit} | {ours:{digits}}{unit} | {ratio:.2f} |")
    return "\n".join(lines)
