"""Plants the bug that each scenario names between the kit and our own client: the scenario must find it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarium.conformance import scenario as stage
from pulsarium.conformance.run import Runner, Verdict
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.conformance.side import Sides, our_brokers

OURS = [sys.executable, "-P", "-m", "pulsarium.conformance.adapters.ours"]
BETWEEN = [each.name for each in SCENARIOS.values() if not each.bug.startswith("raw ")]
"""Scenarios whose bug is not one of a raw client, which test_bugs has."""


@pytest.fixture(scope="module")
def sides() -> Iterator[Sides]:
    with our_brokers("pulsar-5.0") as brokers:
        yield brokers


def test_every_scenario_names_a_bug() -> None:
    assert [each.name for each in SCENARIOS.values() if not each.bug] == []


NEVER_RETURNS = "retrying_keys.RetryingKeys.returns = lambda *_: False"
ALWAYS_RETURNS = (
    "of = retrying_keys.order_key\n"
    "retrying_keys.RetryingKeys.returns = lambda self, one: of(one) in self._retries"
    " and one.message_id().entry > min(self._retries[of(one)].refused)"
)
TELLS_NOTHING = "topic_consumer.TopicConsumer._keep_order = lambda *_: None"
REDELIVERS = (
    "tell, drop = commands.negative_ack, receiver.Receiver.drop\n"
    "commands.negative_ack = lambda number, refused, returned=(): tell(number, refused)\n"
    "def dropped(self, entries):\n"
    "    self._send(commands.redeliver(self._consumer_id, sorted(entries)))\n"
    "    drop(self, entries)\n"
    "receiver.Receiver.drop = dropped"
)
KEEPS_PERMITS = (
    "drop = receiver.Receiver.drop\n"
    "def kept(self, entries):\n"
    "    free, self._free = self._free, lambda count: None\n"
    "    drop(self, entries)\n"
    "    self._free = free\n"
    "receiver.Receiver.drop = kept"
)
DOES_NOT_FLUSH = (
    "flush = acknowledgements.AckGroup.flush\n"
    "caller = lambda: sys._getframe(2).f_code.co_name\n"
    "acknowledgements.AckGroup.flush = lambda self: None if caller() == '_keep_order' else flush(self)"
)
FORGETS_KEYS = "topic_consumer.order_key = lambda one: retrying_keys.order_key(one) or b''"
CHANGED = {
    "a-damaged-batch-gives-its-permits-back": "receiver.Receiver._charged = lambda *_, **__: 1",
    "a-damaged-part-of-a-batch-gives-its-permits-back": "receiver.Receiver._charged = lambda *_, **__: 1",
    "permits-are-not-given-to-the-next-consumer": "flow.Permits.opened = lambda self: self._size",
    "a-refused-key-waits-for-its-acknowledgement": NEVER_RETURNS,
    "a-key-is-refused-at-once": TELLS_NOTHING,
    "returned-messages-are-no-redeliveries": REDELIVERS,
    "permits-of-returned-messages-come-back": KEEPS_PERMITS,
    "refused-messages-of-a-key-come-one-by-one": TELLS_NOTHING,
    "a-key-goes-on-when-the-refused-message-is-skipped": ALWAYS_RETURNS,
    "acknowledgements-go-before-a-negative-one": DOES_NOT_FLUSH,
    "messages-without-a-key-wait-for-nobody": FORGETS_KEYS,
}
"""Changes to our client by which it does what a proposal forbids, by the scenario that must find each."""


def test_each_scenario_of_a_proposal_about_clients_has_a_change_that_it_finds() -> None:
    assert CHANGED.keys() == {each.name for each in SCENARIOS.values() if each.pip in (491, 493)}


@pytest.mark.heavy
@pytest.mark.parametrize("name", CHANGED)
def test_a_client_that_does_what_a_proposal_forbids_is_found(
    name: str, sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "PATIENCE", 2.0)
    lines = (
        "import runpy, sys",
        "from pulsarium.client.consumer import acknowledgements, commands, flow, receiver",
        "from pulsarium.client.consumer import retrying_keys, topic_consumer",
        CHANGED[name],
        "runpy.run_module('pulsarium.conformance.adapters.ours', run_name='__main__')",
    )
    command = [sys.executable, "-P", "-c", "\n".join(lines)]
    (result,) = Runner(command, sides, "pulsar-5.0", tmp_path).run([SCENARIOS[name]])
    assert result.verdict is Verdict.FAIL, result.reason


@pytest.mark.heavy
@pytest.mark.parametrize("name", BETWEEN)
def test_a_planted_bug_is_found(name: str, sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PATIENCE", 2.0)
    scenario = SCENARIOS[name]
    faulty = [sys.executable, "-P", "-m", "pulsarium.conformance.faulty", scenario.bug, *OURS]
    (result,) = Runner(faulty, sides, "pulsar-5.0", tmp_path).run([scenario])
    assert result.verdict is Verdict.FAIL, result.reason
