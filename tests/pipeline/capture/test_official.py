"""Official clients break no rule and no promise in captures of a recording proxy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pulsarium.pipeline.capture.rows import EXCHANGES, FRAMES, VIOLATIONS
from tests.capture.check.judged import judged_file
from tests.foreign.broker_process import Address
from tests.foreign.kit import play

from . import captured
from .captured import picked
from .proxy import recording
from .traffic import everyday

SCENARIOS = (
    "a-consumer-may-have-no-queue",
    "a-cumulative-acknowledgement-covers-all-before",
    "a-large-message-travels-in-chunks",
    "a-reader-from-the-earliest-message",
    "a-seek-to-a-message",
    "an-unsubscription-deletes-the-subscription",
    "each-key-goes-to-one-consumer",
    "the-redelivery-count-rises",
)

KNOWN = {"java": {("ack-after-close", "ACK")}}
"""Known violations by client. Pulsar-Java 4.2.4 sends grouped acknowledgements up to 100 ms after the SUCCESS of
CLOSE_CONSUMER, and a broker ignores them."""


def violations(path: Path) -> list[tuple[Any, ...]]:
    return picked(VIOLATIONS, list(captured.violations(str(path))), "connection number side rule detail")


def test_the_python_client_breaks_no_rule(broker: Address, tmp_path: Path) -> None:
    path = tmp_path / "python.pulscap"
    with recording(broker, path, keep_entry=200) as proxy:
        everyday(proxy.service_url)
    assert violations(path) == []
    assert judged_file(path).verdicts == []
    outcomes = Counter(picked(EXCHANGES, list(captured.exchanges(str(path))), "command outcome"))
    assert outcomes["SUBSCRIBE", "ConsumerBusy"] == 1
    assert outcomes["PARTITIONED_METADATA", "TopicNotFound"] == 1
    assert {command for command, outcome in outcomes if outcome == "ok"} >= {
        *("CONNECT", "LOOKUP", "PRODUCER", "SEND", "SUBSCRIBE", "SEEK", "GET_LAST_MESSAGE_ID"),
        *("UNSUBSCRIBE", "CLOSE_CONSUMER", "CLOSE_PRODUCER"),
    }
    assert {outcome for _, outcome in outcomes} <= {"ok", "ConsumerBusy", "TopicNotFound", "closed"}
    frames = list(captured.frames(str(path)))
    assert set(picked(FRAMES, frames, "client")) == {("Pulsar-CPP",)}
    unnamed = [name for name, topic in picked(FRAMES, frames, "command topic") if topic is None]
    assert set(unnamed) <= {"CONNECT", "CONNECTED", "PING", "PONG", "ERROR", "SUCCESS"}


@pytest.mark.heavy
@pytest.mark.foreign
@pytest.mark.parametrize("language", ["java", "go"])
def test_other_clients_break_no_rule(broker: Address, tmp_path: Path, language: str) -> None:
    path = tmp_path / f"{language}.pulscap"
    with recording(broker, path) as proxy:
        play(language, proxy, tmp_path, SCENARIOS)
    assert {(rule, detail.partition(" for ")[0]) for *_, rule, detail in violations(path)} <= KNOWN.get(language, set())
    assert judged_file(path).verdicts == []
    assert len(list(captured.frames(str(path)))) > 100
