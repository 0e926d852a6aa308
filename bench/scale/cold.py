"""Measure whether a broker answers others while it reads from disk for a late consumer."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.brokers import ROOT
from bench.large import Meter
from bench.raw_driver import PING, Connection, subscribe
from bench.report import percentile
from bench.scale.driving import Peak, Publisher, Taker, broker_of
from bench.work import Done, Timed, Work
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

PAUSE = 0.002
"""Seconds between a PONG and the next PING, so that pings are no load of their own."""
PAGE = 4096
LOOKS = 10_000  # pages asked for


def cold_read(work: Work) -> Timed:
    """Consume `count` messages that a broker stored before its restart, while another process pings it."""
    folder = tempfile.TemporaryDirectory(prefix="pulsarium-bench-")
    data = Path(folder.name, "data")
    with broker_of(work, data) as broker:
        subscribe(waits := Connection(broker.service_url), work.topic)
        waits.socket.close()
        Publisher(broker.service_url, work.topic, work.size).publish(work.count)
    forget_cached(data)

    def timed() -> Done:
        parts = {"cold": 100 - cached(data) * 100}
        with folder, broker_of(work, data) as broker:
            with pinging(broker.service_url) as quiet:
                time.sleep(1)
            with Peak(broker.pid) as peak, pinging(broker.service_url) as latencies:
                meter, begin = Meter(broker.pid), time.perf_counter()
                Taker(broker.service_url, work.topic).take(work.count)
                seconds = time.perf_counter() - begin
            cpu = meter.spent(1) / 1e6
        parts |= {"quiet-p99": percentile(quiet, 99) * 1000, "seconds": seconds, "memory": peak.megabytes}
        parts |= {f"p{part}": percentile(latencies, part) * 1000 for part in (50, 99)}
        parts["max"] = max(latencies) * 1000
        return Done(work.count, parts=parts, seconds=seconds, broker_cpu=cpu)

    return timed


def forget_cached(folder: Path) -> None:
    """Ask the system to drop these files from the page cache, which any process with write access may do."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached(folder: Path) -> float:
    """Return the share of the largest file that is in the page cache."""
    largest = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    pages = largest.stat().st_size // PAGE
    step = max(1, pages // LOOKS)
    there = looked = 0
    with largest.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # a look must not read the next pages ahead
        for page in range(0, pages, step):
            looked += 1
            with suppress(BlockingIOError):
                there += os.preadv(file.fileno(), [bytearray(1)], page * PAGE, os.RWF_NOWAIT)
    return there / looked


@contextmanager
def pinging(service_url: str) -> Iterator[list[float]]:
    """Ping a broker from a process of its own during a block. Afterwards the list holds the latencies in seconds."""
    latencies: list[float] = []
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, service_url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert process.stdout is not None
    with process:
        try:
            process.stdout.readline()  # the process is connected
            yield latencies
            latencies += json.loads(process.communicate("stop\n", timeout=30)[0])
        finally:
            process.kill()


def ping(service_url: str) -> list[float]:
    """Ping until a line arrives on standard input, but at least once, and return the latencies in seconds."""
    connection = Connection(service_url)
    data, latencies = frame(PING), []
    print("connected", flush=True)
    while True:
        begin = time.perf_counter()
        connection.socket.sendall(data)
        connection.expect(BaseCommand.PONG)
        latencies.append(time.perf_counter() - begin)
        if select.select([sys.stdin], [], [], PAUSE)[0]:
            return latencies


if __name__ == "__main__":
    print(json.dumps(ping(sys.argv[1])))
