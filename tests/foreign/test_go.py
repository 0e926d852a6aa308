"""The official Go client: the scenarios of go/, all in one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.foreign.go_client import OF_TRANSACTIONS, go_program

from .broker_process import Address
from .lines import LineProgram
from .scenario import Combination, matrix

# Fewer than for other clients, because this client allocates a Deflate state of a megabyte for each ZLIB message.
MESSAGES = 2_000


@pytest.fixture(scope="module")
def go(broker: Address, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProgram]:
    program = go_program(broker, tmp_path_factory.mktemp("go"))
    yield program
    program.close()


@pytest.mark.parametrize("combination", matrix())
def test_go_publishes_and_consumes_in_each_combination(go: LineProgram, topic: str, combination: Combination) -> None:
    go.run("matrix", topic=topic, messages=MESSAGES, **combination.arguments())


def test_consumers_of_go_learn_who_is_active(go: LineProgram, topic: str) -> None:
    go.run("failover", topic=topic)


def test_a_consumer_of_go_that_is_opened_again_at_once_gets_everything(go: LineProgram, topic: str) -> None:
    go.run("reopen", topic=topic, count=60, messages=40)


def test_no_scenario_of_go_is_left_out(go: LineProgram) -> None:
    known = {*OF_TRANSACTIONS, "failover", "matrix", "reopen", "transform"}
    assert set(go.run("list")["scenarios"]) == known
