"""The self-test of adapters: our own passes, and each broken one is found.

An adapter whose topics are queues takes the place of a client, so that most tests need no broker.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from pulsarium.conformance import selftest
from pulsarium.conformance.protocol import OPERATIONS
from pulsarium.conformance.selftest import TRIALS, Check, Verdict, check, checks, misfit

from .played import PlayedSide

OURS: Final = [sys.executable, "-P", "-m", "pulsarium.conformance.adapters.ours"]
DUTIES: Final = ["unknown operations", "requests during receive", "end of input"]
ADAPTER: Final = """
import os
from collections import defaultdict
from queue import Empty, Queue
from pulsarium.conformance.adapters import lines
from pulsarium.conformance.adapters.lines import Refusal
from pulsarium.conformance.protocol import Unsupported

about = {"client": "Queues", "version": "1", "topics": ["classic"], "lacks": {"seek": "no such call"}}
things, topics = {}, defaultdict(Queue)
serve = lambda: lines.serve_in_threads(Adapter(), about, lambda error: "Other")
others = None
answer_to = lines.answer_to

def answered(request, operations, *rest):
    is_other = others and request["do"] not in ["hello", *operations]
    return others(request) if is_other else answer_to(request, operations, *rest)

lines.answer_to = answered

def open_as(request, thing):
    things[request["as"]] = thing

def opened(handle):
    if handle not in things:
        raise Refusal("AlreadyClosed", f"nothing is open as {handle}")
    return things[handle]

def fail(error):
    raise error

class Adapter:
    def open(self, request):
        open_as(request, request["url"])
    def close(self, request):
        opened(request["handle"])
    def producer(self, request):
        opened(request["client"])
        open_as(request, topics[request["topic"]])
    def consumer(self, request):
        opened(request["client"])
        open_as(request, topics[request["topics"][0]])
    def send(self, request):
        queue = opened(request["producer"])
        for each in request["messages"]:
            queue.put({"id": "1", "value": each["value"]})
        return {"ids": ["1" for each in request["messages"]]}
    def receive(self, request):
        queue = opened(request["consumer"])
        try:
            return {"messages": [queue.get(timeout=request["seconds"])]}
        except Empty:
            return {"messages": []}
    def acknowledge(self, request):
        opened(request["consumer"])

"""


def adapter(change: str = "") -> Sequence[str]:
    """Return the command of the adapter of queues, after a change of its program."""
    return [sys.executable, "-P", "-c", f"{ADAPTER}{change}\nserve()"]


def found(command: Sequence[str], folder: Path) -> dict[str, Check]:
    return {each.operation: each for each in checks(command, PlayedSide(), folder)}


def test_our_adapter_passes_every_check(tmp_path: Path) -> None:
    told = list(check(OURS, tmp_path))
    assert [(each.operation, each.reason) for each in told if each.verdict is not Verdict.ANSWERS] == []
    assert [each.operation for each in told] == [*OPERATIONS, *DUTIES]


def test_a_bug_in_front_of_our_adapter_is_found(tmp_path: Path) -> None:
    bug = [sys.executable, "-P", "-m", "pulsarium.conformance.faulty", "says last-message-id.place [1, 2]"]
    (bad,) = [each for each in check([*bug, *OURS], tmp_path) if each.is_bad]
    assert bad.operation == "last-message-id"
    assert bad.reason.startswith('sent {"do": "last-message-id", "consumer": "')
    assert bad.reason.endswith('got ok {"place": [1, 2]}: ok.place must be ["integer", "integer", "integer"]')


def test_every_operation_has_a_trial_with_the_fields_that_the_protocol_promises() -> None:
    assert TRIALS.keys() == OPERATIONS.keys() - {"hello"}
    for name, trial in TRIALS.items():
        assert bool(trial.ok) == ("Return" in OPERATIONS[name].about), name
        assert all(f"`{field}`" in OPERATIONS[name].about for field in trial.ok), name


def test_an_operation_that_the_client_does_not_have_is_told_with_its_reason(tmp_path: Path) -> None:
    told = found(adapter(), tmp_path)
    answered = {name for name, each in told.items() if each.verdict is Verdict.ANSWERS}
    assert answered == {"hello", "open", "close", "producer", "send", "consumer", "receive", "acknowledge", *DUTIES}
    assert told["seek"] == Check("seek", Verdict.NONE, "no such call")
    assert told["reader"] == Check("reader", Verdict.NONE, "hello does not name it")


def test_an_operation_that_needs_a_missing_one_is_not_tried(tmp_path: Path) -> None:
    told = found(adapter("del Adapter.send"), tmp_path)
    assert told["receive"] == Check("receive", Verdict.UNTRIED, "the client has no send")
    assert not any(each.is_bad for each in told.values())


@pytest.mark.parametrize(
    ("change", "operation", "reason"),
    [
        ("Adapter.send = lambda self, request: {}", "send", 'got ok {}: ok.ids must be ["text"]'),
        (
            "Adapter.receive = lambda self, request: {'messages': [{'id': 7}]}",
            "receive",
            "ok.messages[0].value must be",
        ),
        ("Adapter.close = lambda self, request: None", "close", "nothing is open as nobody, so answer with an error"),
        ("Adapter.open = lambda self, request: fail(Refusal('Odd', 'x'))", "open", "an unknown kind of error"),
        ("Adapter.open = lambda self, request: fail(Refusal('Connect', 'x'))", "open", "got the error Connect: x"),
        ("Adapter.open = lambda self, request: fail(Unsupported('x'))", "open", "leave open out of the operations"),
        ("Adapter.open = lambda self, request: os._exit(3)", "open", "the process ended"),
        ("others = lambda request: os._exit(3)", "flush", "the process ended"),
        ("others = lambda request: {'id': request['id'], 'ok': {}}", "flush", "answer with unsupported"),
        ("about['topics'] = []", "hello", "hello names no topics"),
        ("about['lacks']['send'] = 'x'", "hello", "both name send"),
        ("about['lacks'] = ['seek']", "hello", 'ok.lacks must be "object"'),
        ("Adapter.fly = Adapter.close", "hello", "unknown operations"),
    ],
)
def test_a_broken_adapter_is_found(tmp_path: Path, change: str, operation: str, reason: str) -> None:
    bad = next(each for each in checks(adapter(change), PlayedSide(), tmp_path) if each.is_bad)
    assert bad.operation == operation
    assert reason in bad.reason


def test_an_adapter_that_answers_one_request_after_another_is_found(tmp_path: Path) -> None:
    serial = """
def receive(self, request):
    queue = opened(request["consumer"])
    return {"messages": [queue.get()] if queue.qsize() else []}

Adapter.receive = receive
names = [name for name in vars(Adapter) if not name.startswith("_")]
serve = lambda: lines.serve({name: getattr(Adapter(), name) for name in names}, about)
"""
    bad = [each for each in found(adapter(serial), tmp_path).values() if each.is_bad]
    assert [each.operation for each in bad] == ["requests during receive"]
    assert "do each request in a thread or task of its own" in bad[0].reason


def test_an_adapter_that_outlives_its_input_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_END_SECONDS", 0.2)
    told = found(adapter("serve = lambda serve=serve: (serve(), Queue().get())"), tmp_path)
    assert [name for name, each in told.items() if each.is_bad] == ["end of input"]


def test_answers_with_other_ids_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "SECONDS", 0.2)
    program = 'import sys\nfor line in sys.stdin: print(\'{"id": 0, "ok": {}}\', flush=True)'
    told = found([sys.executable, "-c", program], tmp_path)
    reason = 'sent {"do": "hello"}, got no answer in 0.2 s: answer in one line, with the id of the request'
    assert told == {"hello": Check("hello", Verdict.WRONG, reason)}


def test_a_command_that_does_not_start_is_found(tmp_path: Path) -> None:
    told = found(["/no/such/program"], tmp_path)
    assert list(told) == ["hello"]
    assert "check --command" in told["hello"].reason


def test_after_a_crash_the_other_operations_are_tried_in_a_new_process(tmp_path: Path) -> None:
    crash = "Adapter.send = lambda self, request: (os.write(2, b'out of luck'), os._exit(3))"
    told = found(adapter(crash), tmp_path)
    assert [name for name, each in told.items() if each.is_bad] == ["send", "requests during receive"]
    assert "its standard error with 'out of luck'" in told["send"].reason
    assert told["receive"].verdict is Verdict.UNTRIED
    assert told["receive"].reason.startswith("a request that it needs failed: the process ended")
    assert told["consumer"].verdict is Verdict.ANSWERS


@pytest.mark.parametrize(
    ("found", "shape", "wanted"),
    [
        ({"a": 1, "b": True}, {"a": "integer", "b": "true or false"}, ""),
        ({"a": True}, {"a": "integer"}, 'ok.a must be "integer"'),
        ({}, {"a": "text"}, 'ok.a must be "text"'),
        ({"a": None}, {"a?": "text"}, ""),
        ({"a": 1}, {"a?": "text"}, 'ok.a must be "text"'),
        ([1, 2], ["integer"], 'ok must be ["integer"]'),
        ([1, 2], ["integer", "..."], ""),
        ([1, "2"], ["integer", "..."], 'ok[1] must be "integer"'),
        ({"k": "v"}, {"k": "w"}, 'ok.k must be "w"'),
        (None, {"a": "text"}, 'ok must be {"a": "text"}'),
    ],
)
def test_an_answer_is_compared_with_its_shape(found: Any, shape: Any, wanted: str) -> None:
    assert misfit(found, shape) == wanted
