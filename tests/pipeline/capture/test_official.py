"""Official clients break no rule and no promise in captures of a recording proxy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pulsarium.pipeline.capture.rows import EXCHANGES, FRAMES, VIOLATIONS
from tests.capture.check.judged import judged_file
from tests.foreign.broker_process import Address
from tests.foreign.java_client import java_program
from tests.foreign.lines import LineProgram
from tests.foreign.toolchains import GO, require

from . import captured
from .captured import picked
from .proxy import recording
from .traffic import everyday

FOREIGN = ("ack-cumulative", "chunks", "key-shared", "nack-count", "reader", "seek-id", "unsubscribe", "zero-queue")

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
        if language == "java":
            program = java_program(proxy, tmp_path)
        else:
            command = [str(require(GO)), proxy.service_url, proxy.admin_url]
            program = LineProgram(command, tmp_path / "stderr.log")
        try:
            known = set(program.run("list")["scenarios"])
            for scenario in [each for each in FOREIGN if each in known]:
                topic = f"persistent://public/default/t-{uuid4().hex[:12]}"
                kind = "Exclusive" if scenario == "ack-cumulative" else "Shared"
                program.run(scenario, topic=topic, namespace="public/default", subscription=kind)
        finally:
            program.close()
    assert {(rule, detail.partition(" for ")[0]) for *_, rule, detail in violations(path)} <= KNOWN.get(language, set())
    assert judged_file(path).verdicts == []
    assert len(list(captured.frames(str(path)))) > 100
