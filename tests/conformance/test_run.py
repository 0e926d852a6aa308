"""The kit's engine, with an adapter and brokers that the test plays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pulsarium.conformance.protocol import Adapter, AdapterFault, ClientError, Unsupported, greet
from pulsarium.conformance.run import Result, Runner, Verdict, matching
from pulsarium.conformance.scenario import Scenario, Stage
from pulsarium.conformance.scenarios import SCENARIOS
from tests.capture.lint.scalable_talk import HIGH_KEY, LOW, Scalable

from .played import PlayedSide, adapter


def scenario(run: Callable[[Stage], None], **fields: Any) -> Scenario:
    return Scenario("one", "C2", "Keyed: <b>select</b> the segment.", "wire protocol 5", run=run, **fields)


def play(
    folder: Path,
    run: Callable[[Stage], None],
    command: Sequence[str] = (),
    side: PlayedSide | None = None,
    **fields: Any,
) -> Result:
    runner = Runner(command or adapter(), side or PlayedSide(), "pulsar-5.0", folder)
    (result,) = runner.run([scenario(run, **fields)])
    return result


def opens(stage: Stage) -> None:
    stage.producer(stage.topic(2))


def test_a_client_that_does_everything_passes(tmp_path: Path) -> None:
    side = PlayedSide()
    assert play(tmp_path, opens, side=side).verdict is Verdict.PASS
    assert [each[0] for each in side.asked] == ["partition"]


def test_a_client_that_does_something_else_fails_with_the_reason(tmp_path: Path) -> None:
    result = play(tmp_path, lambda stage: stage.equal({3}, {1, 2}, "segments"))
    assert (result.verdict, result.reason) == (Verdict.FAIL, "segments: {3}, and not {1, 2}")


def test_an_error_of_the_client_fails_the_scenario(tmp_path: Path) -> None:
    refused = {"error": {"kind": "NotFound", "text": "no such topic"}}
    result = play(tmp_path, opens, adapter(producer=refused))
    assert (result.verdict, result.reason) == (Verdict.FAIL, "the client failed: NotFound: no such topic")


@pytest.mark.parametrize(("kind", "verdict"), [("NotFound", Verdict.PASS), ("Other", Verdict.FAIL)])
def test_an_expected_error_must_have_its_kind(tmp_path: Path, kind: str, verdict: Verdict) -> None:
    command = adapter(producer={"error": {"kind": kind, "text": "x"}})
    assert play(tmp_path, lambda stage: stage.refused("NotFound", "producer", topic="x"), command).verdict is verdict


def test_a_missing_operation_is_unsupported_and_never_a_pass(tmp_path: Path) -> None:
    result = play(tmp_path, lambda stage: stage.ask("transaction"))  # type: ignore[arg-type]
    assert (result.verdict, result.reason) == (Verdict.UNSUPPORTED, "the client has no transaction")


def test_an_option_that_the_client_lacks_is_unsupported_with_its_reason(tmp_path: Path) -> None:
    about = {"protocol": 2, "topics": ["classic"], "operations": ["open", "close", "producer"]}
    command = adapter(hello={"ok": {**about, "lacks": {"producer.chunk": "no chunks"}}})
    result = play(tmp_path, lambda stage: opens_with(stage, chunk=True), command)
    assert (result.verdict, result.reason) == (Verdict.UNSUPPORTED, "producer.chunk: no chunks")
    assert result.needs >= {"open", "producer", "producer.chunk"}


def opens_with(stage: Stage, **options: Any) -> None:
    stage.producer(stage.topic(), **options)


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ({"protocol": 1}, "version 1 of the protocol"),
        ({"topics": ["flat"]}, "unknown kinds of topics"),
        ({"lacks": {"open.wings": "none"}}, "unknown operations or options"),
    ],
)
def test_an_adapter_that_speaks_another_protocol_is_an_error(tmp_path: Path, told: Any, fault: str) -> None:
    about = {"protocol": 2, "topics": ["classic"], "operations": ["open"], **told}
    result = play(tmp_path, opens, adapter(hello={"ok": about}))
    assert (result.verdict, fault in result.reason) == (Verdict.ERROR, True)


def test_an_adapter_runs_scenarios_until_it_does_not_pass_one(tmp_path: Path) -> None:
    pids: list[object] = []

    def looks(stage: Stage) -> None:
        pids.append(stage._adapter._process.pid)
        stage.that(len(pids) != 2, "the second one fails")

    Runner(adapter(), PlayedSide(), "pulsar-5.0", tmp_path).run([scenario(looks)] * 3)
    assert pids[0] == pids[1] != pids[2]


def test_an_operation_that_the_client_refuses_late_is_unsupported_too(tmp_path: Path) -> None:
    assert play(tmp_path, opens, adapter(producer={"unsupported": "no"})).verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize("answer", [None, {"error": {"kind": "Strange"}}, {"fine": 1}])
def test_a_broken_adapter_says_nothing_about_its_client(tmp_path: Path, answer: Any) -> None:
    assert play(tmp_path, opens, adapter(producer=answer)).verdict is Verdict.ERROR


def test_a_command_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    assert play(tmp_path, opens, ["/no/such/program"]).verdict is Verdict.ERROR


def test_frames_that_break_a_rule_fail_a_scenario_that_would_pass(tmp_path: Path) -> None:
    talk = Scalable()
    talk.halves()
    talk.open(LOW)
    talk.put(HIGH_KEY)
    result = play(tmp_path, opens, side=PlayedSide(talk.records))
    assert result.verdict is Verdict.FAIL
    assert result.rules == ("key-in-wrong-segment",)
    allowed = frozenset({"key-in-wrong-segment"})
    assert play(tmp_path, opens, side=PlayedSide(talk.records), may_break=allowed).verdict is Verdict.PASS


def test_the_history_has_the_messages_that_segments_confirmed(tmp_path: Path) -> None:
    talk = Scalable()
    talk.halves()
    talk.open(LOW)
    talk.put("a")
    talk.put("a", sequence=1, receipt=False)

    def look(stage: Stage) -> None:
        history = stage.history()
        assert [(each.segment.id, each.key, each.value) for each in history.stored] == [(1, "a", "x")]
        assert [(segment.id, name) for segment, name in history.producers] == [(1, "p-seg-1")]

    assert play(tmp_path, look, side=PlayedSide(talk.records)).verdict is Verdict.PASS


def test_answers_may_come_in_any_order(tmp_path: Path) -> None:
    program = """
import json, sys
first = json.loads(sys.stdin.readline())
second = json.loads(sys.stdin.readline())
for each in (second, first):
    print(json.dumps({"id": each["id"], "ok": {"did": each["do"]}}), flush=True)
"""
    running = Adapter([*adapter()[:2], program], tmp_path / "log")
    answers = [running.begin(name) for name in ("send", "flush")]
    assert [each.wait(30)["did"] for each in answers] == ["send", "flush"]
    running.stop()


def test_errors_of_an_adapter_have_types(tmp_path: Path) -> None:
    command = adapter(
        send={"error": {"kind": "Timeout", "text": ""}},
        flush={"unsupported": "x"},
        hello={"ok": {"protocol": 2, "operations": ["fly"]}},
    )
    running = Adapter(command, tmp_path / "log")
    with pytest.raises(ClientError, match="Timeout"):
        running.begin("send").wait(30)
    with pytest.raises(Unsupported):
        running.begin("flush").wait(30)
    with pytest.raises(AdapterFault, match="unknown operations"):
        greet(running)
    running.stop()


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("operations", [["open"]], "unknown operations"),
        ("operations", None, "unknown operations"),
        ("topics", "classic", "unknown kinds of topics"),
        ("lacks", ["seek"], "no object of reasons"),
        ("lacks", {"fly": "no wings"}, "unknown operations or options: fly"),
        ("url", "http", "unknown URLs"),
        ("proposals", ["PIP-491"], "no list of numbers in proposals"),
        ("proposals", 491, "no list of numbers in proposals"),
    ],
)
def test_a_hello_of_another_shape_is_refused(field: str, value: object, error: str, tmp_path: Path) -> None:
    told = {"protocol": 2, "topics": [], "operations": [], field: value}
    running = Adapter(adapter(hello={"ok": told}), tmp_path / "log")
    with pytest.raises(AdapterFault, match=error):
        greet(running)
    running.stop()


def test_what_an_adapter_started_ends_with_it(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    program = f"import subprocess; subprocess.Popen({sleeper!r})"
    running = Adapter([sys.executable, "-c", program], tmp_path / "log")
    running.stop()
    assert running.has_ended


@pytest.mark.parametrize(
    ("known", "verdict", "reason"),
    [([], Verdict.UNSUPPORTED, "the client does not know PIP-491"), ([491], Verdict.PASS, "")],
)
def test_a_scenario_of_a_proposal_needs_a_client_that_knows_it(
    known: list[int], verdict: Verdict, reason: str, tmp_path: Path
) -> None:
    about = {"protocol": 2, "topics": ["classic"], "operations": ["open", "close", "producer"], "proposals": known}
    result = play(tmp_path, opens, adapter(hello={"ok": about}), pip=491)
    assert (result.verdict, result.reason) == (verdict, reason)


def test_a_proposal_that_does_not_change_the_protocol_needs_no_client_that_knows_it(tmp_path: Path) -> None:
    assert play(tmp_path, opens, adapter(), pip=490).verdict is Verdict.PASS


def test_a_client_of_other_topics_opens_nothing(tmp_path: Path) -> None:
    told = {"protocol": 2, "client": "played", "version": "1", "topics": ["scalable"], "operations": ["open", "close"]}
    result = play(tmp_path, opens, adapter(hello={"ok": told}))
    assert (result.verdict, result.reason) == (Verdict.UNSUPPORTED, "the client has no classic topics")
    assert not result.needs


def test_scenarios_are_chosen_by_name_and_glob() -> None:
    chosen = matching(SCENARIOS.values(), ["routing-*", "close-twice"])
    assert {each.name for each in chosen} > {"routing-vectors-four-segments", "close-twice"}
    with pytest.raises(ValueError, match="no scenario is named x"):
        matching(SCENARIOS.values(), ["x"])
