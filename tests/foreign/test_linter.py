"""Official clients under the linter: they break only the rules that docs/lint.md names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.foreign.go_client import go_program
from tests.foreign.java_client import java_program
from tests.foreign.kit import play

from .admin import Admin
from .broker_process import ADDRESS, COMMAND, Address, BrokerProcess
from .conftest import Launch
from .lines import LineProgram
from .scenario import Combination

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
# The scenarios to which most rules apply. All scenarios would take minutes.
OF_BOTH = (
    "a-consumer-may-have-no-queue",
    "a-fencing-producer-takes-the-topic",
    "a-large-message-travels-in-chunks",
    "a-message-goes-to-the-dead-letter-topic",
    "a-negatively-acknowledged-message-brings-its-batch",
    "a-negatively-acknowledged-message-comes-again-on-exclusive",
    "a-non-persistent-topic-delivers-at-once",
    "a-reader-in-the-middle-of-a-batch",
    "a-reader-may-seek",
    "a-seek-into-a-batch",
    "a-seek-to-a-time",
    "a-table-view-has-the-newest-values",
    "a-waiting-producer-opens-when-the-first-closes",
    "acknowledgements-with-a-receipt",
    "an-exclusive-consumer-keeps-others-out",
    "an-exclusive-producer-keeps-others-out",
    "an-unsubscription-deletes-the-subscription",
    "clients-go-on-after-an-unload",
    "each-key-goes-to-one-consumer",
    "messages-of-a-batch-keep-what-they-carry",
    "one-consumer-reads-several-topics",
    "single-acknowledgements-outlive-an-unload",
    "the-next-failover-consumer-goes-on",
    "the-redelivery-count-rises",
    "unacknowledged-messages-go-to-another-shared-consumer",
)
OF_JAVA = (
    "a-seek-moves-all-partitions",
    "a-value-of-schema-avro",
    "all-unacknowledged-messages-come-again",
    "an-unacknowledged-message-comes-again-after-the-timeout",
    "messages-are-received-in-batches",
    "the-last-sequence-id-is-known",
)
"""Scenarios that Go cannot play, or fails."""
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


def run_matrix(program: LineProgram) -> None:
    try:
        for combination in (SINGLE, BATCHED):
            topic = f"persistent://public/default/{combination}"
            program.run("matrix", topic=topic, messages=MESSAGES, **combination.arguments())
    finally:
        program.close()


def test_scenarios_of_java_break_only_known_rules(judged: BrokerProcess, tmp_path: Path) -> None:
    run_matrix(java_program(judged.address, tmp_path))
    play("java", judged.address, tmp_path, [*OF_BOTH, *OF_JAVA])
    assert findings(judged.address) <= KNOWN


def test_scenarios_of_go_break_only_known_rules(judged: BrokerProcess, tmp_path: Path) -> None:
    run_matrix(go_program(judged.address, tmp_path))
    play("go", judged.address, tmp_path, OF_BOTH)
    found = findings(judged.address)
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
