"""Scenarios against a running broker, behind a proxy that records its frames."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pulsarium.broker.testing import running
from pulsarium.conformance.material import make
from pulsarium.conformance.run import Result, Runner, Verdict, matching
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.conformance.side import given_broker, our_brokers


def play(folder: Path, *names: str, profile: str = "pulsar-4.2", client: str = "ours") -> list[Result]:
    command = [sys.executable, "-P", "-m", f"pulsarium.conformance.adapters.{client}"]
    with running(profile=profile) as broker, given_broker(broker.service_url, broker.admin_url, folder) as sides:
        return Runner(command, sides, "pulsar-5.0", folder).run(matching(SCENARIOS.values(), names))


def test_a_url_that_no_proxy_can_take_is_refused_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pulsar://HOST:PORT or"):
        given_broker("kafka://localhost:9092", "http://localhost:8080", tmp_path)


def test_brokers_of_the_kit_take_proposals() -> None:
    with our_brokers("pulsar-4.2", number=1, pip=[490]) as sides:
        shown = sides.side(None).call("GET", "/pulsarium/topics")
    assert (shown["profile"], shown["proposals"]) == ("pulsar-4.2", ["PIP-490"])


def test_only_brokers_of_their_own_have_the_proposal_of_a_scenario() -> None:
    with our_brokers("pulsar-4.2", number=1) as sides:
        shown = [sides.side(None, pip).call("GET", "/pulsarium/topics")["proposals"] for pip in (491, 0)]
    assert shown == [["PIP-491"], []]


def test_brokers_with_several_keys_are_those_of_their_keys(tmp_path: Path) -> None:
    """A scenario writes the document that its own brokers read."""
    with our_brokers("pulsar-5.0", number=1) as sides:
        first, again, other = (sides.side(make(tmp_path / name), 490) for name in ("a", "a", "b"))
        assert (first is again, first is other) == (True, False)
        assert first.call("GET", "/pulsarium/topics")["proposals"] == ["PIP-488", "PIP-490"]


@pytest.mark.heavy
def test_frames_of_a_running_broker_are_read(tmp_path: Path) -> None:
    names = ("a-message-compressed-with-lz4", "without-batches-each-message-is-an-entry", "a-compacted-batch*")
    assert [result.verdict for result in play(tmp_path, *names)] == [Verdict.PASS] * 3


@pytest.mark.heavy
def test_what_a_running_broker_cannot_do_is_unsupported(tmp_path: Path) -> None:
    names = (
        "routing-lazy-producers",
        "a-token-is-accepted",
        "topics-are-found-*",
        "unconfirmed-*",
        "a-damaged-batch-*",
    )
    found = {result.scenario.name: (result.verdict, result.reason) for result in play(tmp_path, *names)}
    assert found == {
        "routing-lazy-producers": (Verdict.UNSUPPORTED, "needs a broker of Pulsar 5"),
        "a-token-is-accepted": (Verdict.UNSUPPORTED, "needs a broker with tokens and TLS, which the kit starts"),
        "a-damaged-batch-gives-its-permits-back": (
            Verdict.UNSUPPORTED,
            "needs a broker with PIP-491, which the kit starts",
        ),
        "topics-are-found-from-either-broker": (Verdict.UNSUPPORTED, "needs 2 brokers"),
        "unconfirmed-messages-are-sent-again": (
            Verdict.UNSUPPORTED,
            "needs a broker whose connections the kit can end",
        ),
    }


@pytest.mark.heavy
def test_frames_of_web_sockets_stay_inside_of_a_running_broker(tmp_path: Path) -> None:
    names = ("messages-arrive-in-order", "without-batches-each-message-is-an-entry")
    found = {result.scenario.name: result.reason for result in play(tmp_path, *names, client="websocket")}
    lack = "needs the frames of WebSockets, which are inside of the broker"
    assert found == dict(zip(names, ("", lack), strict=True))
