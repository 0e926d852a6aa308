"""The official Go client: the scenarios of go/, all in one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.foreign.go_client import ALONE, OF_TRANSACTIONS, ON_EACH_SUBSCRIPTION, go_program

from .broker_process import Address
from .lines import LineProgram
from .scenario import Combination, matrix, on_each_subscription

# Fewer than for other clients, because this client allocates a Deflate state of a megabyte for each ZLIB message.
MESSAGES = 2_000


ON_EXCLUSIVE_AND_FAILOVER = ("ack-cumulative",)


@pytest.fixture(scope="module")
def go(broker: Address, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProgram]:
    program = go_program(broker, tmp_path_factory.mktemp("go"))
    yield program
    program.close()


@pytest.mark.parametrize("combination", matrix())
def test_go_publishes_and_consumes_in_each_combination(go: LineProgram, topic: str, combination: Combination) -> None:
    go.run("matrix", topic=topic, messages=MESSAGES, **combination.arguments())


@pytest.mark.parametrize("scenario", ALONE)
def test_a_scenario_of_go_passes(go: LineProgram, topic: str, own_namespace: str, scenario: str) -> None:
    go.run(scenario, topic=topic, namespace=own_namespace)


def test_a_consumer_of_go_that_is_opened_again_at_once_gets_everything(go: LineProgram, topic: str) -> None:
    go.run("reopen", topic=topic, count=60, messages=40)


@pytest.mark.parametrize(("scenario", "subscription"), on_each_subscription(ON_EACH_SUBSCRIPTION))
def test_go_passes_on_each_subscription(go: LineProgram, topic: str, scenario: str, subscription: str) -> None:
    go.run(scenario, topic=topic, subscription=subscription)


@pytest.mark.parametrize("subscription", ["Exclusive", "Failover"])
@pytest.mark.parametrize("scenario", ON_EXCLUSIVE_AND_FAILOVER)
def test_go_passes_on_exclusive_and_failover(go: LineProgram, topic: str, scenario: str, subscription: str) -> None:
    go.run(scenario, topic=topic, subscription=subscription)


def test_no_scenario_of_go_is_left_out(go: LineProgram) -> None:
    known = {
        *ALONE,
        *ON_EACH_SUBSCRIPTION,
        *ON_EXCLUSIVE_AND_FAILOVER,
        *OF_TRANSACTIONS,
        "matrix",
        "reopen",
        "transform",
    }
    assert set(go.run("list")["scenarios"]) == known
