"""Transactions of the official Java and Go clients."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.foreign.go_client import OF_TRANSACTIONS as GO_SCENARIOS
from tests.foreign.go_client import go_program
from tests.foreign.java_client import OF_TRANSACTIONS as JAVA_SCENARIOS
from tests.foreign.java_client import java_program

from .admin import Admin
from .broker_process import Address, BrokerProcess, given_address, is_pulsarium
from .lines import LineProgram
from .python.message_index import STAMPING
from .transactional import switched_on

pytestmark = pytest.mark.req("B-29")


@pytest.fixture(scope="module")
def transactional(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Start a broker with transactions, for all tests here."""
    if (given := given_address()) is not None:
        yield given
        return
    process = BrokerProcess(tmp_path_factory.mktemp("transactional"), switched_on())
    yield process.address
    assert process.stop() == 0


@pytest.fixture(scope="module")
def java(transactional: Address, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProgram]:
    program = java_program(transactional, tmp_path_factory.mktemp("java"))
    yield program
    program.close()


@pytest.fixture(scope="module")
def go(transactional: Address, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProgram]:
    program = go_program(transactional, tmp_path_factory.mktemp("go"))
    yield program
    program.close()


@pytest.fixture
def new_topic(transactional: Address) -> str:
    namespace = f"public/transactions-{uuid.uuid4().hex[:12]}"
    Admin(transactional.admin_url).create_namespace(namespace)
    return f"persistent://{namespace}/t"


@pytest.mark.parametrize("scenario", JAVA_SCENARIOS)
def test_a_transaction_of_java_passes(java: LineProgram, new_topic: str, scenario: str) -> None:
    java.run(scenario, topic=new_topic)


@pytest.mark.parametrize("scenario", GO_SCENARIOS)
def test_a_transaction_of_go_passes(go: LineProgram, new_topic: str, scenario: str) -> None:
    if not is_pulsarium():
        pytest.skip("a real broker delivers what this client aborts, because only SEND names the transaction")
    go.run(scenario, topic=new_topic)


@pytest.fixture(scope="module")
def stamping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Start a broker with transactions whose entries have an index."""
    process = BrokerProcess(tmp_path_factory.mktemp("stamping"), [*switched_on(), *STAMPING])
    yield process.address
    assert process.stop() == 0


BY_SCENARIO = {
    # The entries: five aborted messages, their marker, five committed messages, their marker.
    "go": ("transaction-commit", [*range(5), 6, *range(6, 11), None]),
    # The entries: batches of one and of nine aborted messages, their marker, batches of one and of nine, their marker.
    "java": ("transaction-commit-batched", [0, *[1] * 9, 3, 3, *[4] * 9, None]),
}


@pytest.mark.req("S415-24", "S415-25", "S415-42", "S415-43")
@pytest.mark.skipif(not is_pulsarium(), reason="a released broker gives the marker's own id")
@pytest.mark.parametrize("language", BY_SCENARIO)
def test_indexes_of_markers_and_of_what_was_aborted(stamping: Address, tmp_path: Path, language: str) -> None:
    topic = f"persistent://public/default/{language}"
    scenario, wanted = BY_SCENARIO[language]
    program = (go_program if language == "go" else java_program)(stamping, tmp_path / language)
    program.run(scenario, topic=topic)
    program.close()
    path = f"/admin/v2/{topic.replace('://', '/')}/getMessageIdByIndex?index="
    answers = [Admin(stamping.admin_url).answer("GET", f"{path}{index}") for index in range(len(wanted))]
    assert [json.loads(text)["entryId"] if status == 200 else None for status, text in answers] == wanted
