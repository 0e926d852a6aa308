"""Run scripts/bench fixtures: measure the cost of a test on the fixtures of the pytest plugin."""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ABOUT = """\
Measures pytest with files of N tests, each of which has a namespace of its own. The tests of the first file do nothing
more. Those of the second file produce and receive a message with the official Python client, with one client for all,
and those of the third file with a client for each. Seconds are medians of the whole process, with its start and the
broker's. CPU is the time of all its threads. Before that, the start of `with pulsarium.broker.running()` is measured,
with imports and in a process that has imported everything.

  scripts/bench fixtures
  scripts/bench fixtures --tests 100 --repetitions 1
"""

SHARED = """
@pytest.fixture(scope="session")
def client(pulsar_broker):
    client = pulsar.Client(pulsar_broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
    yield client
    client.close()
"""
MESSAGE = """
def test_{number}({client}, pulsar_topic):
    consumer = {client}.subscribe(pulsar_topic, "s")
    producer = {client}.create_producer(pulsar_topic)
    producer.send(b"{number}")
    message = consumer.receive(5000)
    assert message.data() == b"{number}"
    consumer.acknowledge(message)
    producer.close()
    consumer.close()
"""
FILES = {
    "a namespace": ("", "\ndef test_{number}(pulsar_namespace):\n    pass\n"),
    "a message, one client": (SHARED, MESSAGE.replace("{client}", "client")),
    "a message, a client each": ("", MESSAGE.replace("{client}", "pulsar_client")),
}
START = """
import time
begin = time.perf_counter()
import pulsarium.broker
for _ in range(2):
    with pulsarium.broker.running():
        print(time.perf_counter() - begin)
    begin = time.perf_counter()
"""


def source(before: str, test: str, count: int) -> str:
    """Return a file with so many tests."""
    tests = (test.replace("{number}", str(number)) for number in range(count))
    return "".join(["import pulsar\nimport pytest\n", before, *tests])


def run(file: Path, count: int) -> tuple[float, float]:
    """Run a file of tests, and return the seconds and the seconds of CPU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or not re.search(rf"\b{count} passed", done.stdout):
        raise SystemExit(f"bench: the tests failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def starts() -> list[float]:
    """Return the seconds until a broker answers: for the first broker of a process, and for the next."""
    done = subprocess.run([sys.executable, "-P", "-c", START], capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


def main(given: Sequence[str]) -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench fixtures", description=ABOUT, formatter_class=layout)
    parser.add_argument("--tests", type=int, default=500, metavar="N", help="tests in a file (default: 500)")
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="runs of each file (default: 3)")
    options = parser.parse_args(given)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    first, again = (median(each) for each in zip(*(starts() for _ in range(options.repetitions)), strict=True))
    print(f"start: {first:.2f} s with imports, {again * 1000:.0f} ms again\n")
    print(f"| {options.tests} tests, each with | s | CPU s |\n|---|---|---|")
    with TemporaryDirectory() as folder:
        for name, (before, test) in FILES.items():
            file = Path(folder) / "test_generated.py"
            file.write_text(source(before, test, options.tests))
            seconds, cpu = zip(*(run(file, options.tests) for _ in range(options.repetitions)), strict=True)
            print(f"| {name} | {median(seconds):.1f} | {median(cpu):.1f} |", flush=True)
    return 0
