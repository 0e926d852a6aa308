"""Official clients consume, transform and produce under transactions while brokers are killed, stopped and moved."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pulsar
import pytest

from tests.foreign.go_client import go_program
from tests.foreign.java_client import java_program
from yardsticks.servers import free_port

from .admin import Admin, AdminError
from .broker_process import Address, BrokerProcess, is_pulsarium
from .conftest import Launch
from .deadline import eventually
from .lines import LineProgram
from .toolchains import GO, JAVA, require
from .transactional import switched_on

NAMESPACE = "public/transformed"
BROKERS = 2 if is_pulsarium() else 1
COORDINATORS = [f"persistent://pulsar/system/transaction_coordinator_assign-partition-{n}" for n in range(BROKERS)]
PROGRAMS = {"java": java_program, "go": go_program} if is_pulsarium() else {"java": java_program}
"""Programs by language. A real broker delivers what Go aborts, because only SEND names the transaction."""
TIMEOUT_MS = 2000  # of transactions that no client ends any more
COMES_BACK_MS = 60_000  # the longest that a client takes to commit again; the Go client takes longer than Java's


@dataclass
class Loop:
    """A loop of one language from a topic to two others, and the counts that it last reported."""

    program: LineProgram
    topic: str
    subscription: str
    told: dict[str, int] = field(default_factory=dict)

    def do(self, action: str, **arguments: object) -> None:
        self.told = self.program.run(
            "transform",
            action=action,
            topic=self.topic,
            subscription=self.subscription,
            timeout=TIMEOUT_MS,
            **arguments,
        )

    @property
    def outputs(self) -> list[str]:
        return [f"{self.topic}-a", f"{self.topic}-b"]


@dataclass
class Cluster:
    """Brokers in one process, which the test stops and starts again on the same ports."""

    launch: Launch
    data: str
    port: int
    http_port: int

    def __post_init__(self) -> None:
        self.process = self._start()

    def _start(self) -> BrokerProcess:
        many = ("--brokers", str(BROKERS)) if BROKERS > 1 else ()
        return self.launch("--data", self.data, *many, *switched_on(), port=self.port, http_port=self.http_port)

    @property
    def admin(self) -> Admin:
        return Admin(self.process.address.admin_url)

    def restart(self, *, kill: bool) -> None:
        if kill:
            self.process.kill()
        else:
            assert self.process.stop(seconds=30.0) == 0
        self.process = self._start()

    def open_transactions(self) -> list[str]:
        """Return all open transactions, also those that no client ends any more."""
        where = "/admin/v3/transactions/slowTransactions/0?coordinatorId="
        return [txn for number in range(BROKERS) for txn in self.admin.call("GET", f"{where}{number}")]

    def move(self, topic: str, to: Address) -> None:
        """Unload the topic's bundle. Among several brokers, assign the bundle to the given one."""
        where = topic.replace("://", "/")
        bundle = self.admin.text(f"/lookup/v2/topic/{where}/bundle")
        namespace = "/".join(where.split("/")[1:3])
        destination = f"?destinationBroker=localhost:{to.http_port}" if BROKERS > 1 else ""
        self.admin.call("PUT", f"/admin/v2/namespaces/{namespace}/{bundle}/unload{destination}")


@contextmanager
def loops(cluster: Cluster, folder: Path) -> Iterator[list[Loop]]:
    with ExitStack() as stack:
        found = []
        for (language, program), subscription in zip(PROGRAMS.items(), ("Shared", "Failover"), strict=False):
            started = program(cluster.process.address, folder / language)
            started.seconds = COMES_BACK_MS / 1000 + 30
            stack.callback(started.close)
            found.append(Loop(started, f"persistent://{NAMESPACE}/{language}", subscription))
        yield found


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("restarts", [5, pytest.param(50, marks=pytest.mark.heavy)])
@pytest.mark.req("B-29")
def test_each_number_is_in_both_outputs_once(launch: Launch, data: str, tmp_path: Path, restarts: int) -> None:
    for toolchain in (JAVA, GO):
        require(toolchain)
    chance = random.Random(restarts)
    cluster = Cluster(launch, data, free_port(BROKERS), free_port(BROKERS))
    cluster.admin.call("PUT", f"/admin/v2/namespaces/{NAMESPACE}", {"bundles": {"numBundles": 16}})
    cluster.admin.call("POST", f"/admin/v2/namespaces/{NAMESPACE}/deduplication", True)
    keep_all = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    cluster.admin.call("POST", f"/admin/v2/namespaces/{NAMESPACE}/retention", keep_all)
    with loops(cluster, tmp_path) as all_loops:
        for loop in all_loops:
            loop.do("start")
        for _ in range(restarts):
            loop = chance.choice(all_loops)
            loop.do("commit", count=1, limit=COMES_BACK_MS)
            loop.do("progress", count=chance.randrange(1, 20), limit=800 if is_pulsarium() else 10_000)
            for _ in range(chance.randrange(3)):
                loop = chance.choice(all_loops)
                topic = chance.choice([*COORDINATORS, loop.topic, *loop.outputs])
                cluster.move(topic, chance.choice(cluster.process.addresses))
                loop.do("progress", count=chance.randrange(5), limit=200)
            cluster.restart(kill=chance.random() < 0.7 and is_pulsarium())
        for loop in all_loops:
            loop.do("drain")
            assert loop.told["committed"] > restarts // 4, loop.told
        sent = {loop.topic: loop.told["sent"] for loop in all_loops}
        eventually(
            lambda: all(backlog(cluster.admin, loop.topic) == 0 for loop in all_loops) or None,
            what="all input acknowledged",
            seconds=60.0,
            every=0.1,
        )
        for loop in all_loops:
            loop.do("end")
        # Readers see no entry behind the first one of an open transaction until the transaction has ended.
        eventually(lambda: not cluster.open_transactions() or None, what="no transaction open", seconds=60.0, every=0.1)
    for loop in all_loops:
        for output in loop.outputs:
            counted = Counter(read_all(cluster, output))
            wrong = {number: counted[number] for number in range(sent[loop.topic]) if counted[number] != 1}
            assert not wrong, f"{output}, {sent[loop.topic]} sent: number -> times {wrong}; {loop.told}"
            assert counted.total() == sent[loop.topic]
    cluster.process.stop(seconds=30.0)


def backlog(admin: Admin, topic: str) -> int | None:
    """Return the backlog of the topic, or None while the topic moves."""
    try:
        return admin.backlog(topic, "s")
    except AdminError:
        return None


def read_all(cluster: Cluster, topic: str) -> list[int]:
    """Return the numbers that a new reader finds."""
    client = pulsar.Client(cluster.process.address.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    numbers = []
    while reader.has_message_available():
        numbers.append(int(reader.read_next(timeout_millis=30_000).data()))
    client.close()
    return numbers
