"""Run programs on brokers, and record times, CPU and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from bench.accounting import Memory, cpu_seconds, memory
from bench.brokers import ROOT, Broker, Launch
from bench.program import Program
from bench.work import Work

LIMIT_SECONDS = 300
LARGE_LIMIT_SECONDS = 1200
IDLE_SECONDS = 1.0


class MeasureError(RuntimeError):
    """A program that failed or timed out. The text holds the output of its process."""


@dataclass(frozen=True)
class Start:
    """A launch of a broker: seconds to CONNECTED and to the ready line, and the memory a second later."""

    connect_seconds: float
    ready_seconds: float
    idle: Memory


@dataclass(frozen=True)
class Run:
    """A run of a program. `broker_cpu` and `client_cpu` are seconds of CPU within `seconds` of time."""

    operations: int
    seconds: float
    broker_cpu: float
    client_cpu: float
    latencies: tuple[float, ...]
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.operations / self.seconds

    @property
    def cpu_us(self) -> float:
        """Return the broker's CPU per operation, in microseconds."""
        return self.broker_cpu / self.operations * 1e6

    @property
    def broker_busy(self) -> float:
        """Return how many cores the broker kept busy: near 1 when a broker of one thread is the limit."""
        return self.broker_cpu / self.seconds

    @property
    def client_busy(self) -> float:
        return self.client_cpu / self.seconds


def measure_start(command: Sequence[str], idle_seconds: float = IDLE_SECONDS, *, kept: bool = False) -> Start:
    launch = Launch(command, kept=kept)
    try:
        time.sleep(idle_seconds)
        return Start(launch.connect_seconds, launch.ready_seconds, memory(launch.broker.pid))
    finally:
        launch.stop()


def alternate(
    program: Program, brokers: Mapping[str, Broker], count: int, warm_ups: int, repetitions: int, marker: str
) -> dict[str, list[Run]]:
    """Run a program on each broker in turn, and return the counted runs by the brokers' names.

    `warm_ups` runs come first and do not count.
    """
    runs: dict[str, list[Run]] = {name: [] for name in brokers}
    for repetition in range(warm_ups + repetitions):
        for name, broker in brokers.items():
            topic = f"persistent://public/default/bench-{marker}-{program.name}-{repetition}"
            run = measure(program, broker, topic, count)
            if repetition >= warm_ups:
                runs[name].append(run)
    return runs


def measure(program: Program, broker: Broker, topic: str, count: int) -> Run:
    """Run a program once in a client process of its own, on a topic of its own, which is deleted afterwards."""
    work = Work(broker.service_url, topic, count, program.size, broker.pid, broker.admin_url)
    try:
        with client_process(program, work) as (go, told):
            told()
            before = cpu_seconds(broker.pid)
            go()
            result = told()
            spent = cpu_seconds(broker.pid) - before
    finally:
        delete(broker, topic)
    latencies = tuple(result["latencies"])
    broker_cpu = spent if result["broker_cpu"] is None else result["broker_cpu"]
    return Run(result["operations"], result["seconds"], broker_cpu, result["cpu"], latencies, result["parts"])


@contextmanager
def client_process(program: Program, work: Work) -> Iterator[tuple[Callable[[], None], Callable[[], dict[str, Any]]]]:
    """Yield two functions for a prepared client: the first starts it, the second waits for its next line."""
    command = [sys.executable, "-P", "-m", "bench.client", program.name, json.dumps(asdict(work))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
        limit = LARGE_LIMIT_SECONDS if program.large else LIMIT_SECONDS
        watchdog = threading.Timer(limit, process.kill)
        watchdog.start()

        def go() -> None:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

        def told() -> dict[str, Any]:
            assert process.stdout is not None
            if line := process.stdout.readline():
                result: dict[str, Any] = json.loads(line)
                return result
            code = process.wait()
            errors.seek(0)
            said = errors.read().decode(errors="replace")[-3000:]
            raise MeasureError(
                f"{program.name} on {work.service_url} ended with exit code {code} (time limit {limit} s):\n{said}"
            )

        try:
            yield go, told
        finally:
            watchdog.cancel()
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                _close(pipe)


def _close(pipe: IO[str] | None) -> None:
    if pipe is not None:
        pipe.close()


def delete(broker: Broker, topic: str) -> None:
    """Delete the topic of a run. Ignore a refusal, which does not affect the figures."""
    path = topic.replace("://", "/")
    request = urllib.request.Request(f"{broker.admin_url}/admin/v2/{path}?force=true", method="DELETE")
    try:
        with urllib.request.urlopen(request, timeout=30):
            pass
    except (urllib.error.URLError, TimeoutError):
        pass
