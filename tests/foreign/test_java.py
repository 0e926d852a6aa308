"""The official Java client: the scenarios of java/, all in one JVM.

The official V5 client of Pulsar 5, with the usual work of applications on scalable topics.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.generated.PulsarApi_pb2 import LZ4
from tests.foreign.java_client import ALONE, OF_TRANSACTIONS, java_program

from .broker_process import COMMAND, Address, BrokerProcess, given_address
from .conftest import Launch
from .key_order import KEYED_MESSAGES, STEPS, assert_ordered_by_key, events, seeds
from .lines import LineProgram
from .raw import RawConsumer
from .scenario import MESSAGES, Combination, matrix
from .toolchains import V5, java_command, require

ROWS_OF_ONE = {"reader-time": "C-08"} | {each: "B-30" for each in ALONE if each.startswith("schema-")}
"""The row that each scenario proves."""

SUBSCRIBING = {
    "dead-letter-batch": ("Shared", "B-23"),
    "dead-letter-initial": ("Shared", "B-23"),
    "deduplication-chunks": ("Exclusive", "B-27"),
    "key-shared-sticky": ("Key_Shared", "B-10"),
    "retry-letter": ("Shared", "B-23"),
}
"""The subscription type of each scenario, and the row that the scenario proves."""

SLOW = {"dead-letter-initial", "key-shared-sticky", "retry-letter"}
"""Scenarios of the heavy suite. The Python tests check the same every day."""

COMPACTED = {
    "compacted-batch": ("S429-10", "S429-11", "S429-13", "S429-14"),
    "compacted-encrypted": ("S429-14", "S429-17"),
}
"""The rows that each scenario proves."""

AROUND_A_RESTART = ("batches-acknowledge", "batches-publish", "batches-rest")
"""Scenarios that test_kept.py runs as its steps."""

OF_ENCRYPTION = ("encryption-consume", "encryption-publish")
"""Scenarios that tests of test_encryption.py combine with our client."""


OF_INTEROP = ("interop-consume", "interop-publish")
"""Scenarios that tests of test_async_interop.py combine with our client."""


@pytest.fixture(scope="module")
def java(broker: Address, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProgram]:
    program = java_program(broker, tmp_path_factory.mktemp("java"))
    yield program
    program.close()


@pytest.mark.parametrize("combination", matrix())
def test_java_publishes_and_consumes_ten_thousand_messages(
    java: LineProgram, topic: str, combination: Combination
) -> None:
    java.run("matrix", topic=topic, messages=MESSAGES, **combination.arguments())


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(each, marks=[pytest.mark.req(ROWS_OF_ONE[each])] if each in ROWS_OF_ONE else []) for each in ALONE],
)
def test_a_scenario_of_java_passes(java: LineProgram, topic: str, own_namespace: str, scenario: str) -> None:
    java.run(scenario, topic=topic, namespace=own_namespace)


@pytest.mark.parametrize(
    ("scenario", "subscription"),
    [
        pytest.param(
            scenario, kind, id=scenario, marks=[pytest.mark.req(row)] + [pytest.mark.heavy] * (scenario in SLOW)
        )
        for scenario, (kind, row) in SUBSCRIBING.items()
    ],
)
def test_java_subscribes_in_each_scenario(
    java: LineProgram, topic: str, own_namespace: str, scenario: str, subscription: str
) -> None:
    java.run(scenario, topic=topic, namespace=own_namespace, subscription=subscription)


@pytest.mark.parametrize(
    "scenario", [pytest.param(scenario, marks=pytest.mark.req(*rows)) for scenario, rows in COMPACTED.items()]
)
def test_java_compacts_into_batches_with_compression_and_encryption(
    java: LineProgram, broker: Address, topic: str, scenario: str
) -> None:
    """The batch is the example of PIP-429."""
    java.run(scenario, topic=topic)
    with RawConsumer(broker, topic, "raw") as consumer:
        metadata = parse_metadata(consumer.entries(1)[0])
    assert (metadata.compression, metadata.num_messages_in_batch) == (LZ4, 4)
    assert bool(metadata.encryption_keys) == (scenario == "compacted-encrypted")


@pytest.mark.parametrize(("seed", "batched"), seeds("1-batched"))
@pytest.mark.req("B-11")
def test_java_keeps_the_order_of_keys_while_consumers_come_and_go(
    java: LineProgram, topic: str, seed: int, batched: bool
) -> None:
    told = java.run("key-shared-churn", topic=topic, seed=seed, batched=batched, messages=KEYED_MESSAGES, steps=STEPS)
    seen = events(told["events"])
    assert_ordered_by_key(seen)
    assert {event.number for event in seen if event.what == "received"} == set(range(KEYED_MESSAGES))


def test_transactions_are_refused(launch: Launch, tmp_path: Path, topic: str) -> None:
    """The default of a released broker is transactionCoordinatorEnabled=false."""
    program = java_program(launch("--set", "transactionCoordinatorEnabled=false").address, tmp_path / "java")
    try:
        program.run("transactions-refused", topic=topic)
    finally:
        program.close()


def test_no_scenario_of_java_is_left_out(java: LineProgram) -> None:
    known = {
        *ALONE,
        *SUBSCRIBING,
        *COMPACTED,
        *AROUND_A_RESTART,
        *OF_ENCRYPTION,
        *OF_INTEROP,
        *OF_TRANSACTIONS,
    }
    known |= {"key-shared-churn", "matrix", "transactions-refused", "transform"}
    assert set(java.run("list")["scenarios"]) == known


SECONDS = 600


CASES = (
    "a stream",
    "a queue",
    "a checkpoint",
    "a group of checkpoint consumers",
    "a split under a stream",
    "a split and a merge under a queue",
    "two stream consumers",
    "a stream consumer that comes back",
    "a stream consumer of a namespace",
    "a transaction that commits",
    "a transaction that aborts",
    "a persistent topic",
    "a migration under a queue",
    "an absent topic",
    "stats and deletion",
)


@pytest.fixture(scope="module", params=["pulsar-5.0", "pip"])
def profile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def failures(profile: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run the program once, on a broker of its own, and return the failure of each case, or ""."""
    require(V5)
    if given_address() is not None:
        pytest.skip(f"needs a broker of its own: {COMMAND} can start it")
    process = BrokerProcess(tmp_path_factory.mktemp(profile), ["--profile", profile])
    try:
        return run(process)
    finally:
        process.kill()


def run(process: BrokerProcess) -> dict[str, str]:
    address = process.address
    done = subprocess.run(
        [*java_command(V5, "pulsarium.v5.Main"), address.service_url, address.admin_url],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(line.split("\t") for line in done.stdout.splitlines())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.heavy
def test_the_v5_client_does(case: str, failures: dict[str, str]) -> None:
    assert failures[case] == ""


@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.heavy
def test_every_case_ran(failures: dict[str, str]) -> None:
    assert tuple(failures) == CASES
