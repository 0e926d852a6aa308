"""Every scenario four ways: the client under trio and asyncio, with our broker and with Apache Pulsar's."""

from __future__ import annotations

import pytest

from .compare import differences, mutations
from .conftest import Observe
from .scenario import load

SCENARIOS = load()
LEAST = 80

WAYS = [
    pytest.param(broker, loop, marks=[pytest.mark.heavy] if broker == "pulsar" else [], id=f"{broker}-{loop}")
    for broker in ("pulsarium", "pulsar")
    for loop in ("trio", "asyncio")
]

# The first test of each way waits for all of them.
pytestmark = pytest.mark.timeout(600)


def test_there_are_enough() -> None:
    assert len(SCENARIOS) >= LEAST


@pytest.mark.parametrize(("broker", "loop"), WAYS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(observation: Observe, scenario: str, broker: str, loop: str) -> None:
    observed, expected = observation(scenario, broker, loop), SCENARIOS[scenario].expected
    if observed.error is not None:
        raise observed.error
    assert not differences(expected, observed.facts), f"\nexpected {expected}\nobserved {observed.facts}"
    overlooked = [where for where, other in mutations(expected) if not differences(other, observed.facts)]
    assert not overlooked
