"""Two queries copy one topic, and lose and repeat no message when their driver is killed in the middle."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path

import anyio
import pulsar
import pytest

from pulsarium.client import connect
from tests.foreign.admin import Admin
from tests.foreign.broker_process import PULSAR, PULSARIUM, Address, BrokerProcess
from tests.foreign.deadline import eventually
from tests.foreign.toolchains import REFERENCE, require
from yardsticks.servers.reference.conf import CONFIG, WITHOUT_TRANSACTIONS, changed

from .conftest import CLUSTER_CONFIG, MASTER
from .killed_driver import MARK

MESSAGES = 100_000
PARTITIONS = 2
BATCHES = 5
SOURCE = "persistent://public/default/source"
TARGETS = ("persistent://public/default/first", "persistent://public/default/second")
RUN_SECONDS = 600.0
KILLS = {"pulsarium": ((0.15, 0.45), (0.55, 0.85)), "pulsar": ((0.3, 0.7),)}
"""For each broker and kill, the least and the greatest share of the messages that are in the targets by then."""


@pytest.fixture(params=KILLS)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Address]:
    """Start Pulsarium or a real Pulsar with deduplication, and yield its address."""
    if request.param == "pulsar":
        require(REFERENCE)
    (tmp_path / "broker.conf").write_text(changed(CONFIG.read_text(), WITHOUT_TRANSACTIONS))
    command = PULSAR if request.param == "pulsar" else PULSARIUM
    process = BrokerProcess(tmp_path / "broker", ["--config", str(tmp_path / "broker.conf")], command=command)
    admin = Admin(process.address.admin_url)
    admin.call("POST", "/admin/v2/namespaces/public/default/deduplication", True)
    for topic in (SOURCE, *TARGETS):
        admin.create_partitioned(topic, PARTITIONS)
    yield process.address
    assert process.stop(40.0) == 0


class Driver:
    """A run of the program. The program and its JVM are one process group, without Spark's workers."""

    def __init__(self, given: dict[str, object], log: Path) -> None:
        self._log = log
        program = Path(__file__).with_name("killed_driver.py")
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(program), json.dumps(given)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def check_running(self) -> None:
        assert self._process.poll() is None, f"ended with {self._process.returncode}: {self._tail()}"

    def kill(self) -> None:
        self.check_running()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finish(self) -> None:
        assert self._process.wait(RUN_SECONDS) == 0, self._tail()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-6000:]


@pytest.mark.heavy
@pytest.mark.foreign
@pytest.mark.timeout(2400)
def test_queries_of_a_killed_driver_lose_nothing_and_double_nothing(
    broker: Address, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    chance = random.Random(request.node.name)
    anyio.run(produce, broker)
    admin = Admin(broker.admin_url)
    checkpoints = [tmp_path / f"checkpoint-{number}" for number in range(len(TARGETS))]
    where = {"service.url": broker.service_url, "admin.url": broker.admin_url}
    per_batch = int(partitioned(admin, SOURCE, "storageSize") / BATCHES)
    given: dict[str, object] = {
        "master": os.environ.get(MASTER, "local[2]"),
        "config": {**CLUSTER_CONFIG, "spark.local.dir": str(tmp_path / "local"), "spark.driver.memory": "1g"},
        "source": {
            **where,
            "topic": SOURCE,
            "startingOffsets": "earliest",
            "maxBytesPerTrigger": str(per_batch),
        },
        "sinks": [
            {**where, "topic": topic, "checkpointLocation": str(checkpoint)}
            for topic, checkpoint in zip(TARGETS, checkpoints, strict=True)
        ],
    }
    for low, high in KILLS[request.node.callspec.params["broker"]]:
        point = int(len(TARGETS) * MESSAGES * chance.uniform(low, high))
        with Driver(given, tmp_path / "driver.log") as driver:
            eventually(
                partial(reached, driver, admin, point),
                what=f"{point} messages in the targets",
                seconds=RUN_SECONDS,
            )
            driver.kill()
    with Driver(given, tmp_path / "driver.log") as driver:
        driver.finish()

    for checkpoint in checkpoints:
        assert len([each for each in (checkpoint / "commits").iterdir() if each.name.isdigit()]) >= BATCHES - 2
    for target in TARGETS:
        assert_exactly_the_input(broker, target)


async def produce(broker: Address) -> None:
    """Publish the numbers from 0 on to the partitions in turn. The key of a number is its remainder by 1000."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connect(broker.service_url))
        producers = [
            await stack.enter_async_context(client.create_producer(f"{SOURCE}-partition-{partition}"))
            for partition in range(PARTITIONS)
        ]
        for number in range(MESSAGES):
            # Our client, because the official one takes four times as long.
            await producers[number % PARTITIONS].submit(b"%d" % number, partition_key=f"k{number % 1000}")
        for producer in producers:
            await producer.flush()


def partitioned(admin: Admin, topic: str, figure: str) -> int:
    """Return a figure of the topic's partitioned stats, which covers all partitions."""
    path = topic.replace("persistent://", "/admin/v2/persistent/")
    return int(admin.call("GET", f"{path}/partitioned-stats")[figure])


def reached(driver: Driver, admin: Admin, point: int) -> bool:
    driver.check_running()
    return sum(partitioned(admin, target, "msgInCounter") for target in TARGETS) >= point


def assert_exactly_the_input(broker: Address, target: str) -> None:
    """Assert that each number arrived once. Each target partition keeps the order of each source partition."""
    arrived = bytearray(MESSAGES)
    with closing(pulsar.Client(broker.service_url)) as client:
        for partition in range(PARTITIONS):
            newest = defaultdict[int, int](lambda: -1)
            reader = client.create_reader(
                f"{target}-partition-{partition}", pulsar.MessageId.earliest, receiver_queue_size=10_000
            )
            while reader.has_message_available():
                message = reader.read_next(timeout_millis=30_000)
                data = message.data()
                assert data.startswith(MARK), data
                number = int(data.removeprefix(MARK))
                assert message.partition_key() == f"k{number % 1000}"
                assert not arrived[number], f"{number} came twice"
                assert number > newest[number % PARTITIONS], f"{number} after {newest[number % PARTITIONS]}"
                arrived[number] = 1
                newest[number % PARTITIONS] = number
    lost = [number for number in range(MESSAGES) if not arrived[number]]
    assert not lost, f"{len(lost)} lost, the first {lost[:5]}"
