"""The conformance kit with the V5 Java client, through the adapter of the package."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pulsarium.conformance.run import Runner, Verdict, matching
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.conformance.side import Sides, our_brokers

from .toolchains import kit_adapter

PASSES = (
    "routing-vectors-four-segments",
    "sends-survive-a-split",
    "queue-reads-sealed-segments",
    "cumulative-ack-across-segments",
    "checkpoint-round-trip",
    "transaction-commit-over-segments",
)

pytestmark = [pytest.mark.heavy, pytest.mark.foreign, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def sides() -> Iterator[Sides]:
    with our_brokers("5.0-m1") as brokers:
        yield brokers


@pytest.fixture(scope="module")
def runner(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("adapter")
    return Runner(kit_adapter(folder), sides, "5.0-m1", folder)


@pytest.mark.parametrize("name", PASSES)
def test_the_java_client_passes(runner: Runner, name: str) -> None:
    (result,) = runner.run(matching(SCENARIOS.values(), [name]))
    assert (result.verdict, result.reason) == (Verdict.PASS, "")


def test_an_absent_topic_is_a_generic_error_of_the_java_client(runner: Runner) -> None:
    (result,) = runner.run(matching(SCENARIOS.values(), ["missing-topic-of-a-producer"]))
    assert result.verdict == Verdict.FAIL
    assert "TopicNotFound" in result.reason
    assert result.reason.endswith("and not with NotFound")
