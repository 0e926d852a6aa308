"""Compaction by Spark in a broker process. Jobs and brokers are killed, and the official client reads the result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pulsar
import pytest

from tests.foreign.admin import Admin
from tests.foreign.broker_process import BrokerProcess
from tests.foreign.deadline import eventually
from tests.pipeline.conftest import KEPT

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]

TOPIC = "persistent://public/default/orders"
KEYS, ROUNDS = 200, 5
PATIENCE = 400.0  # seconds: a Spark session takes 10 s to start, and minutes on a busy machine


class Stage:
    """A data folder, a work folder, and the brokers that use them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data, self.work = folder, folder / "data", folder / "work"
        self.work.mkdir()
        self.brokers: list[BrokerProcess] = []

    def start(self) -> BrokerProcess:
        options = ["--compaction-engine", "spark", "--compaction-option", f"work-dir={self.work}"]
        self.broker = BrokerProcess(
            self.folder / "broker",
            [*options, "--compaction-option", "master=local[2]", "--data", str(self.data), *KEPT],
        )
        self.admin = Admin(self.broker.address.admin_url)
        self.brokers.append(self.broker)
        return self.broker

    def publish(self, version: str) -> None:
        with closing(pulsar.Client(self.broker.address.service_url)) as client:
            producer = client.create_producer(TOPIC, compression_type=pulsar.CompressionType.LZ4)
            for number in range(KEYS * ROUNDS):
                content = f"{version}-{number}".encode() if number % 7 else b""
                producer.send_async(content, None, partition_key=f"k{number % KEYS}")
            producer.flush()

    def compacted(self) -> dict[str, str]:
        """Return the compacted messages by key, as the official client reads them."""
        found = {}
        with closing(pulsar.Client(self.broker.address.service_url)) as client:
            reader = client.create_reader(TOPIC, pulsar.MessageId.earliest, is_read_compacted=True)
            while reader.has_message_available():
                message = reader.read_next()
                assert message.partition_key() not in found
                found[message.partition_key()] = message.data().decode()
        return found

    def processes(self) -> dict[int, int]:
        """Return the ids of the Python and Java processes of a compaction, each with that of its session."""
        command = ["ps", "-ww", "-eo", "pid=,sid=,args="]
        listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        mine = (line.split() for line in listing.splitlines() if str(self.work) in line)
        return {int(pid): int(session) for pid, session, *words in mine if "serve" not in words}

    def begin(self) -> int:
        """Start a compaction, wait until the job and its JVM run, and return the process id of the job."""
        self.admin.compact(TOPIC)
        found = eventually(self._python_and_java, what="Spark", seconds=PATIENCE)
        (job,) = set(found.values())  # the job leads the session of both, and its id need not be the lowest
        return job

    def _python_and_java(self) -> dict[int, int]:
        found = self.processes()
        return found if len(found) > 1 else {}

    def end(self) -> tuple[str, str]:
        told = eventually(
            lambda: (status := self.admin.compaction(TOPIC))["status"] != "RUNNING" and status,
            what="the compaction",
            seconds=PATIENCE,
        )
        return told["status"], told["lastError"]

    def is_clean(self) -> bool:
        return not self.processes() and not any(self.work.iterdir())


def wanted(version: str) -> dict[str, str]:
    last = {f"k{number % KEYS}": number for number in range(KEYS * ROUNDS)}
    return {key: f"{version}-{number}" for key, number in last.items() if number % 7}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    for broker in made.brokers:
        if broker.running:
            broker.kill()


def test_killed_wherever_it_may_be(stage: Stage) -> None:
    stage.start()
    stage.publish("first")
    os.kill(stage.begin(), signal.SIGKILL)
    status, error = stage.end()
    assert status == "ERROR"
    assert error.startswith("the Spark job ended with exit code -9")
    eventually(stage.is_clean, what="the end of Spark", seconds=PATIENCE)

    stage.admin.compact(TOPIC)
    assert stage.end() == ("SUCCESS", "")
    assert stage.compacted() == wanted("first")
    eventually(stage.is_clean, what="the end of Spark", seconds=PATIENCE)

    stage.publish("second")
    stage.begin()
    assert stage.broker.stop() == 0
    eventually(stage.is_clean, what="the end of Spark", seconds=PATIENCE)

    stage.start()
    stage.begin()
    stage.broker.kill()
    eventually(stage.is_clean, what="the end of Spark, though nobody stopped it", seconds=PATIENCE)

    command = [sys.executable, "-P", "-m", "pulsarium", "compact", TOPIC, "--data", str(stage.data)]
    done = subprocess.run(
        [*command, "--master", "local[2]", "--work-dir", str(stage.work)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{TOPIC}: ")
    eventually(stage.is_clean, what="the end of Spark", seconds=PATIENCE)

    stage.start()
    assert stage.compacted() == wanted("second")
