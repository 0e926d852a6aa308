"""Run scripts/bench analyze: analyze captures of official traffic, and measure how the cost grows with the frames."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pulsar

from bench.accounting import ProcessTree
from bench.brokers import Launch, pulsarium_command
from pulsarium.capture.file import CaptureReader, CaptureWriter, Header, Kind, Record

ABOUT = """\
Records connections of the official Python client, repeats them in a capture, and runs `pulsarium analyze` on the
capture. Prints a row for each number of frames: the size of the file, and the seconds, the CPU seconds and the peak of
the resident memory of the command with its Spark.

  scripts/bench analyze                              a million frames, and ten million: half an hour, 3 GB of disk
  scripts/bench analyze 10000 100000                 these numbers of frames
"""
FRAMES = (1_000_000, 10_000_000)
MESSAGES = 100
BLOCK = 1 << 20


def traffic(service_url: str) -> None:
    """Publish with and without batches, receive, acknowledge one by one and cumulatively, and seek."""
    client = pulsar.Client(service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
    for batching in (False, True):
        consumer = client.subscribe(f"analyze-{batching}", "readers")
        producer = client.create_producer(f"analyze-{batching}", batching_enabled=batching)
        for number in range(MESSAGES):
            producer.send_async(b"%100d" % number, lambda result, message_id: None, partition_key=str(number % 7))
        producer.flush()
        received = [consumer.receive(10_000) for _ in range(MESSAGES)]
        for message in received[: MESSAGES // 2]:
            consumer.acknowledge(message)
        consumer.acknowledge_cumulative(received[-1])
        consumer.seek(pulsar.MessageId.earliest)
        consumer.close()
        producer.close()
    client.close()


def recorded(folder: Path) -> list[Record]:
    """Return the events of the official client's connections."""
    path = folder / "traffic.pulscap"
    launch = Launch([*pulsarium_command(), "--capture", str(path)])
    try:
        traffic(launch.broker.service_url)
    finally:
        launch.stop()
    return [*CaptureReader().feed(path.read_bytes())]


def repeated(events: Sequence[Record], frames: int) -> Iterator[Record]:
    """Yield the events again and again, each time on new connections, until there are enough frames."""
    step, first, count = max(event.connection for event in events) + 1, 0, 0
    while count < frames:
        for event in events:
            count += event.kind is Kind.FRAME
            yield replace(event, connection=first + event.connection)
        first += step


def write(path: Path, events: Sequence[Record], frames: int) -> None:
    """Write a capture of at least so many frames."""
    with path.open("wb", buffering=BLOCK) as file:
        writer = CaptureWriter(file.write, Header(0))
        for event in repeated(events, frames):
            writer.record(event)


def measure(path: Path, frames: int) -> str:
    """Analyze a capture, and return a row of the table."""
    begin = time.perf_counter()
    command = [sys.executable, "-P", "-m", "pulsarium", "analyze", str(path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process, ProcessTree(process.pid) as tree:
        if process.wait():
            raise SystemExit(f"bench analyze: pulsarium analyze ended with exit code {process.returncode}")
        seconds = time.perf_counter() - begin
    size = path.stat().st_size / 1e6
    return f"| {frames:,} | {size:,.0f} MB | {seconds:.0f} | {tree.cpu:.0f} | {tree.peak / 1e6:,.0f} MB |"


def main(given: Sequence[str]) -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench analyze", description=ABOUT, formatter_class=layout)
    parser.add_argument("frames", nargs="*", type=int, metavar="FRAMES", help="measure these numbers of frames")
    counts = parser.parse_args(given).frames or FRAMES
    if min(counts) < 1:
        parser.error("FRAMES must be positive")
    with tempfile.TemporaryDirectory(prefix="pulsarium-bench-") as folder:
        events = recorded(Path(folder))
        print("| frames | capture | seconds | CPU seconds | peak memory |\n|--:|--:|--:|--:|--:|", flush=True)
        for frames in counts:
            path = Path(folder, f"{frames}.pulscap")
            write(path, events, frames)
            print(measure(path, frames), flush=True)
            path.unlink()
    return 0
