"""Scenarios in four ways: the client under trio and asyncio, with Pulsarium and with Apache Pulsar."""

from __future__ import annotations

import json
from collections.abc import Callable
from traceback import format_exception

import pytest

from tests.client.key_files import KeyFiles
from tests.foreign.broker_process import Address

from .runner import observe
from .scenario import Scenario, load

SCENARIOS = load()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("loop", ["trio", "asyncio"])
@pytest.mark.parametrize("broker", ["pulsarium", pytest.param("pulsar", marks=pytest.mark.heavy)])
def test_every_scenario_observes_what_it_expects(
    brokers: Callable[[str, bool], Address], keys: dict[str, KeyFiles], broker: str, loop: str
) -> None:
    observed: dict[str, object] = {}
    for transactions in (False, True):
        chosen = [one for one in SCENARIOS.values() if one.transactions is transactions]
        observed |= observe(chosen, brokers(broker, transactions), loop, keys)
    differences = [line for name, one in SCENARIOS.items() for line in difference(one, observed[name])]
    assert not differences, "\n".join(differences)


def difference(scenario: Scenario, observed: object) -> list[str]:
    """Return lines about a scenario, or [] if its observation is the expected one. True is not 1."""
    if isinstance(observed, Exception):
        return [f"{scenario.name} raised", *format_exception(observed)]
    if json.dumps(observed, sort_keys=True) == json.dumps(scenario.expected, sort_keys=True):
        return []
    return [f"{scenario.name}\n  expected {scenario.expected}\n  observed {observed}"]
