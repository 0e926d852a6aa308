"""Every scenario four ways: the client under trio and asyncio, with our broker and with Apache Pulsar's."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest

from tests.foreign.broker_process import Address

from .compare import differences, mutations
from .runner import Observation, observe
from .scenario import Scenario, load

SCENARIOS = load()

WAYS = [
    pytest.param(broker, loop, marks=[pytest.mark.heavy] if broker == "pulsar" else [], id=f"{broker}-{loop}")
    for broker in ("pulsarium", "pulsar")
    for loop in ("trio", "asyncio")
]


def wrong(scenario: Scenario, observation: Observation) -> str | None:
    """Return in words how a scenario went otherwise than it should."""
    if observation.error is not None:
        return f"{scenario.name}:\n{''.join(traceback.format_exception(observation.error))}"
    if lines := differences(scenario.expected, observation.facts):
        return "\n".join([f"{scenario.name}: observed {observation.facts}", *lines])
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("broker", "loop"), WAYS)
def test_every_scenario_observes_what_it_expects(
    brokers: Callable[[str, bool], Address], keys: dict[str, object], broker: str, loop: str
) -> None:
    observations: dict[str, Observation] = {}
    for transactions in (False, True):
        chosen = [each for each in SCENARIOS.values() if each.transactions is transactions]
        observations |= observe(chosen, brokers(broker, transactions), loop, keys)
    assert observations.keys() == SCENARIOS.keys()
    told = [wrong(SCENARIOS[name], observation) for name, observation in observations.items()]
    assert not any(told), "\n\n".join(["", *filter(None, told)])


def test_each_change_of_an_expectation_would_be_told() -> None:
    overlooked = [
        (name, where)
        for name, scenario in SCENARIOS.items()
        for where, other in mutations(scenario.expected)
        if not differences(other, scenario.expected)
    ]
    assert overlooked == []
