"""Programs on pulsar-perf: the Java client, driven by Pulsar's own tool."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pulsarium.proto import batch, entry
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageMetadata, SingleMessageMetadata
from yardsticks.bench.accounting import cpu_seconds
from yardsticks.bench.wire import SUBSCRIPTION, Connection, leave_subscription, open_producer, send_all
from yardsticks.bench.work import Done, Timed, Work
from yardsticks.servers.reference.jars import BROKER, CACHE, JAVA_OPTIONS, PERF, fetch

IN_FLIGHT = 10_000  # messages: ten of the largest batches
UNLIMITED = 1_000_000_000  # messages a second
BATCH = 100  # messages: a millisecond's share of 100,000 a second
INTERVAL_SECONDS = 1
WARM_LINES = 4
"""Number of first report lines during which the JVM still compiles. Later intervals count."""
GIVE_UP_SECONDS = 240  # pulsar-perf's own limit, so that it never outlives the bench
KILL_SECONDS = 30

RATE = re.compile(r"throughput(?: received)?: ([\d.]+) msgs?/s .*(?:Latency|Ack sent rate)")
P99 = re.compile(r"Aggregated latency stats .* 99pct: +([\d.]+)")


class PerfError(RuntimeError):
    """pulsar-perf ended without completing its work. The text is the end of its output."""


def publish(work: Work) -> Timed:
    """Publish as fast as possible, in batches of up to a thousand messages or a millisecond."""
    asked = ["-r", str(UNLIMITED), "-o", str(IN_FLIGHT), "-s", str(work.size)]
    asked += ["--warmup-time", str(WARM_LINES * INTERVAL_SECONDS)]  # excludes latencies of these seconds
    return Tool(work, ["produce", *asked], "Created 1 producers").run


def consume(work: Work) -> Timed:
    """Consume a backlog of batches of a hundred messages with an Exclusive consumer."""
    leave_subscription(work.service_url, work.topic, "Exclusive")
    open_producer(producer := Connection(work.service_url), work.topic)
    send_all(producer, batches(-(-work.count // BATCH), work.size))
    return Tool(work, ["consume", "-ss", SUBSCRIPTION], "Start receiving from").run


def batches(count: int, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield SEND frames that hold a batch each, with the number 1."""
    payload = batch.pack((SingleMessageMetadata(), b"x" * size) for _ in range(BATCH))
    command = BaseCommand(type=BaseCommand.SEND, send={"producer_id": 0, "sequence_id": 0, "num_messages": BATCH})
    metadata = MessageMetadata(producer_name="bench", num_messages_in_batch=BATCH)
    metadata.publish_time = time.time_ns() // 1_000_000
    for number in range(count):
        command.send.sequence_id = metadata.sequence_id = number
        yield frame(command.SerializeToString(), entry.build(metadata, payload)), 1


def command(arguments: Iterable[str]) -> list[str]:
    classes = f"{fetch(CACHE, PERF)}/*:{fetch(CACHE, BROKER)}/*"
    java = ["java", "-cp", classes, "-Xms512m", "-Xmx512m", *JAVA_OPTIONS, "-Dreference.log.level=info"]
    return [*java, "org.apache.pulsar.testclient.PulsarPerfTestTool", os.devnull, *arguments]


@dataclass(frozen=True)
class Moment:
    """Seconds spent until now: time, and CPU of broker and tool."""

    time: float
    broker: float
    tool: float


class Tool:
    """A run of pulsar-perf.

    The measurement begins after the line with `begin`, when the JVM is warm, and ends with DONE.
    """

    def __init__(self, work: Work, arguments: list[str], begin: str) -> None:
        self._work = work
        self._begin = begin
        limits = ["-m", str(work.count), "-time", str(GIVE_UP_SECONDS), "-i", str(INTERVAL_SECONDS)]
        self._command = command([*arguments, *limits, "-u", work.service_url, work.topic])

    def run(self) -> Done:
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        with process:
            try:
                done = self._watch(process.stdout, process.pid)
                process.terminate()  # closing takes seconds, but the tool prints its summary first
                rest, _ = process.communicate(timeout=KILL_SECONDS)
            finally:
                process.kill()
        if (p99 := P99.search(rest)) and float(p99[1]):
            done.parts["p99"] = float(p99[1])
        return done

    def _watch(self, lines: Iterable[str], pid: int) -> Done:
        since, seen, left = None, 0, float(self._work.count)
        said = []
        for line in lines:
            said.append(line)
            if self._begin in line:
                since = self._moment(pid)
            elif since and "DONE" in line:
                return self._done(int(left), since, self._moment(pid))
            elif seen < WARM_LINES and (rate := RATE.search(line)):
                seen += 1
                rest = left - float(rate[1]) * INTERVAL_SECONDS
                if rest >= self._work.count / 2:  # a short run is never warm
                    left, since = rest, self._moment(pid)
        raise PerfError("".join(said[-30:]))

    def _moment(self, pid: int) -> Moment:
        return Moment(time.perf_counter(), cpu_seconds(self._work.pid), cpu_seconds(pid))

    def _done(self, operations: int, first: Moment, last: Moment) -> Done:
        seconds, broker, tool = last.time - first.time, last.broker - first.broker, last.tool - first.tool
        return Done(operations, seconds=seconds, cpu=tool, broker_cpu=broker)
