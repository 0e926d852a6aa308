"""Scenarios in four ways: the client under trio and asyncio, with Pulsarium and with Apache Pulsar.

Observations that are the same in every run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from traceback import format_exception

import pytest

from pulsarium.client import ConsumerType, MessageId
from pulsarium.client.errors import ProducerBusy
from tests.client.key_files import KeyFiles
from tests.foreign.broker_process import Address

from .normal import normal
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


def test_ledgers_are_numbered_in_each_partition() -> None:
    ids = [MessageId(70, 1), MessageId(50, 0, -1, 2), MessageId(70, 2), MessageId(60, 3, 1), MessageId(10, 0, 0)]
    assert normal(ids, {}) == ["1:1", "0:0:2", "1:2", "0:3@1", "0:0@0"]


def test_ids_that_are_no_places() -> None:
    assert normal([MessageId.earliest, MessageId.latest, MessageId(-1, -1, 3)], {}) == [
        "earliest",
        "latest",
        "earliest@3",
    ]


def test_of_a_chunked_message_both_ends() -> None:
    assert normal(MessageId(9, 5, first_chunk=MessageId(8, 7)), {}) == "1:5 from 0:7"


def test_everything_else_in_words() -> None:
    facts = {1: (b"a\xff", ProducerBusy("x")), ConsumerType.Shared: {"t-2", "t-1"}, "none": None}
    assert normal(facts, {"t-": ""}) == {"1": ["a\\xff", "ProducerBusy"], "Shared": ["1", "2"], "none": None}
    assert normal("x" * 1000, {}) == "xxxxxxxxxx...xxxxxxxxxx (1000)"


def test_an_object_that_is_no_fact_is_refused() -> None:
    with pytest.raises(TypeError, match="is no fact"):
        normal([object()], {})
