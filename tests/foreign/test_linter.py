"""Official clients under the linter: they break only the rules that docs/lint.md names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.foreign.go_client import ALONE as GO_ALONE
from tests.foreign.go_client import ON_EACH_SUBSCRIPTION as GO_ON_EACH
from tests.foreign.java_client import ALONE, ON_EACH_SUBSCRIPTION, java_program

from .admin import Admin
from .broker_process import ADDRESS, COMMAND, Address, BrokerProcess
from .conftest import Launch
from .lines import LineProgram
from .scenario import SUBSCRIPTIONS, Combination
from .toolchains import GO, require

pytestmark = pytest.mark.heavy

KNOWN = {("Pulsar-Go", "redeliver-ids-ignored"), ("Pulsar-Java", "ack-after-close")}
"""Client and rule of each violation that docs/lint.md names."""

PYTHON = Path(__file__).parent / "python"
PYTHON_TESTS = [
    "acknowledgement",
    "batch_index",
    "messages",
    "producers",
    "readers",
    "redelivery",
    "seek",
]
# The scenarios of Java to which most rules apply. All scenarios would take a minute.
JAVA_ALONE = (
    "access-fencing",
    "access-waiting",
    "ack-list",
    "ack-timeout",
    "busy",
    "chunks",
    "consumer-leaves",
    "dead-letter",
    "fields",
    "key-batches",
    "large",
    "nack-batch",
    "non-persistent",
    "producer-again",
    "producer-sequence",
    "reader-batched",
    "reader-message-id",
    "reader-seek",
    "schema-avro",
    "seek-partitions",
    "table-view",
    "too-large",
    "unsubscribe",
    "zero-queue",
)
JAVA_ON_EACH = ("ack-holes", "ack-receipt", "reconnect", "redeliver", "seek-batch")
JAVA_ON_SHARED = ("unload",)
SINGLE = Combination(batched=False, compression="LZ4", subscription="Shared", partitions=3)
BATCHED = Combination(batched=True, compression="ZSTD", subscription="Failover", partitions=1)
MESSAGES = 500


@pytest.fixture
def judged(launch: Launch) -> BrokerProcess:
    """Start a broker whose linter runs."""
    if os.environ.get(COMMAND):
        pytest.skip("another broker has no linter")
    process = launch()
    assert Admin(process.address.admin_url).call("POST", "/lab/violations/start", {})["running"]
    return process


def findings(address: Address) -> set[tuple[str, str]]:
    """Return client and rule of each violation, and print the violations for the report of a failure."""
    said: dict[str, Any] = Admin(address.admin_url).call("GET", "/lab/violations")
    for each in said["violations"]:
        print(each)
    return {(each["client"], each["rule"]) for each in said["violations"]}


def run_all(
    program: LineProgram, address: Address, alone: Iterable[str], on_each: Iterable[str], on_shared: Iterable[str] = ()
) -> None:
    admin = Admin(address.admin_url)
    try:
        for number, scenario in enumerate(alone):
            namespace = f"public/linter-{number}"
            admin.create_namespace(namespace)
            program.run(scenario, topic=f"persistent://{namespace}/t", namespace=namespace)
        for scenario, subscription in (*product(on_each, SUBSCRIPTIONS[:2]), *product(on_shared, ["Shared"])):
            topic = f"persistent://public/default/{scenario}-{subscription}"
            program.run(scenario, topic=topic, subscription=subscription)
        for combination in (SINGLE, BATCHED):
            topic = f"persistent://public/default/{combination}"
            program.run("matrix", topic=topic, messages=MESSAGES, **combination.arguments())
    finally:
        program.close()


def test_each_scenario_of_java_exists() -> None:
    assert {*JAVA_ALONE} <= {*ALONE}
    assert {*JAVA_ON_EACH, *JAVA_ON_SHARED} <= {*ON_EACH_SUBSCRIPTION}


def test_scenarios_of_java_break_only_known_rules(judged: BrokerProcess, tmp_path: Path) -> None:
    address = judged.address
    run_all(java_program(address, tmp_path), address, JAVA_ALONE, JAVA_ON_EACH, JAVA_ON_SHARED)
    assert findings(address) <= KNOWN


def test_scenarios_of_go_break_only_known_rules(judged: BrokerProcess, tmp_path: Path) -> None:
    address = judged.address
    program = LineProgram([str(require(GO)), address.service_url, address.admin_url], tmp_path / "stderr.log")
    run_all(program, address, GO_ALONE, GO_ON_EACH)
    found = findings(address)
    assert found <= KNOWN
    assert ("Pulsar-Go", "redeliver-ids-ignored") in found  # otherwise docs/lint.md names a violation that is gone


def test_tests_in_python_break_only_known_rules(judged: BrokerProcess) -> None:
    """The tests of python/ run again, on the broker with the linter."""
    address = judged.address
    files = [str(PYTHON / f"test_{name}.py") for name in PYTHON_TESTS]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment[ADDRESS] = f"{address.service_url},{address.admin_url}"
    # Failover waits a second for each consumer, and the rules treat Failover like Exclusive.
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-m", "not heavy", "-k", "not Failover", *files]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stdout[-4000:]
    assert findings(address) <= KNOWN
