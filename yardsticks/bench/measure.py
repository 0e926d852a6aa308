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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from yardsticks.bench.accounting import Memory, cpu_seconds, memory
from yardsticks.bench.brokers import Broker, launched
from yardsticks.bench.programs import Program, on_client
from yardsticks.bench.work import Done, Work
from yardsticks.servers import ROOT

LIMIT_SECONDS = 300
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
    def client_cpu_us(self) -> float:
        return self.client_cpu / self.operations * 1e6

    @property
    def broker_busy(self) -> float:
        """Return how many cores the broker kept busy: near 1 when a broker of one thread is the limit."""
        return self.broker_cpu / self.seconds

    @property
    def client_busy(self) -> float:
        return self.client_cpu / self.seconds


def measure_start(command: Sequence[str], idle_seconds: float = IDLE_SECONDS, *, kept: bool = False) -> Start:
    with launched(command, kept=kept) as launch:
        time.sleep(idle_seconds)
        return Start(launch.connect_seconds, launch.ready_seconds, memory(launch.broker.pid))


@dataclass(frozen=True)
class Subject:
    """A broker with the clients of the table, or one client on a broker."""

    broker: Broker
    client: str = ""


def alternate(
    program: Program, subjects: Mapping[str, Subject], count: int, warm_ups: int, repetitions: int
) -> dict[str, list[Run]]:
    """Run a program on each subject in turn, and return the counted runs by the subjects' names.

    `warm_ups` runs come first and do not count.
    """
    runs: dict[str, list[Run]] = {name: [] for name in subjects}
    for repetition in range(warm_ups + repetitions):
        for number, (name, subject) in enumerate(subjects.items()):
            topic = f"persistent://public/default/bench-{os.getpid()}-{program.name}-{number}-{repetition}"
            run = measure(on_client(program, subject.client), subject.broker, topic, count)
            if repetition >= warm_ups:
                runs[name].append(run)
    return runs


def measure(program: Program, broker: Broker, topic: str, count: int) -> Run:
    """Run a program once in a client process of its own, on a topic of its own, which is deleted afterwards."""
    work = Work(broker.service_url, topic, count, program.size, broker.pid, broker.admin_url)
    given = (program.driver, program.function, json.dumps(program.options), json.dumps(asdict(work)))
    command = [sys.executable, "-P", "-m", "yardsticks.bench.client", *given]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stderr=errors, env=environment, **pipes) as client,
    ):
        watchdog = threading.Timer(LIMIT_SECONDS, client.kill)
        watchdog.start()

        def told() -> dict[str, Any]:
            assert client.stdout is not None
            if line := client.stdout.readline():
                result: dict[str, Any] = json.loads(line)
                return result
            code = client.wait()
            errors.seek(0)
            said = errors.read().decode(errors="replace")[-3000:]
            how = f"ended with exit code {code} (time limit {LIMIT_SECONDS} s)"
            raise MeasureError(f"{program.name} on {broker.service_url} {how}:\n{said}")

        try:
            told()
            before = cpu_seconds(broker.pid)
            print("go", file=client.stdin, flush=True)
            done = Done(**told())
            spent = cpu_seconds(broker.pid) - before
        finally:
            watchdog.cancel()
            client.kill()
            delete(broker, topic)
    assert done.seconds is not None  # the client process sets both
    assert done.cpu is not None
    cpu = spent if done.broker_cpu is None else done.broker_cpu
    return Run(done.operations, done.seconds, cpu, done.cpu, tuple(done.latencies), done.parts)


def delete(broker: Broker, topic: str) -> None:
    """Delete the topic of a run. Ignore a refusal, which does not affect the figures."""
    path = topic.replace("://", "/")
    request = urllib.request.Request(f"{broker.admin_url}/admin/v2/{path}?force=true", method="DELETE")
    with suppress(urllib.error.URLError, TimeoutError), urllib.request.urlopen(request, timeout=30):
        pass
