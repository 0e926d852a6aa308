"""Cells, columns and outcomes, with a program and a broker that the tests play."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsarium.matrix import runner
from pulsarium.matrix.brokers import Address, Mask
from pulsarium.matrix.cell import Outcome, Result
from pulsarium.matrix.clients import CLIENTS, Client
from pulsarium.matrix.runner import Run, run
from pulsarium.matrix.scenarios import Scenario
from tests.capture.captures import write
from tests.capture.lint.talk import Talk

ADDRESS = Address(["pulsar://broker:6650"], ["http://broker:8080"])
SOURCE = """
import json, sys
def tell(**answer):
    print(json.dumps(answer), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    print(request["scenario"], file=sys.stderr, flush=True)
    match request["scenario"]:
        case "works" | "excused" | "partitioned":
            tell(outcome="pass", reason="", seconds=0.5)
        case "asks":
            for action in ("unload", "terminate", "compact", "dance"):
                tell(do=action)
                done = json.loads(sys.stdin.readline())
            tell(outcome="pass", reason=json.dumps(done), seconds=0.5)
        case "hangs":
            sys.stdin.readline()
        case _:
            tell(outcome="fail", reason="two\\n lines", seconds=0.1)
"""
SCENARIOS = [
    Scenario(name="works", contract="works"),
    Scenario(name="fails", contract="fails"),
    Scenario(name="excused", contract="is not in one client", not_in={"fake": "no such call"}),
    Scenario(name="asks", contract="wants something administrated"),
    Scenario(name="hangs", contract="hangs", seconds=0.2),
    Scenario(name="secured", contract="needs a broker with tokens", secured=True),
    Scenario(name="partitioned", contract="three partitions, deduplicated", partitions=3, deduplication=True),
]


class Fake(Client):
    """A client whose program is SOURCE."""

    def command(self) -> list[str]:
        return [sys.executable, "-P", "-c", SOURCE]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, object]]:
    """Return a list of the calls of the admin API, which all succeed."""
    made: list[tuple[str, str, object]] = []

    def call(url: str, method: str, path: str, body: object = None, *, token: str = "") -> Any:
        assert url == "http://broker:8080"
        made.append((method, path, body))
        return {"status": "SUCCESS"}

    monkeypatch.setattr(runner, "call", call)
    monkeypatch.setitem(CLIENTS, "fake", Fake("fake", "A fake", module="fake"))
    monkeypatch.setitem(CLIENTS, "absent", Client("absent", "Absent", module="absent", needs=("no_such_module",)))
    monkeypatch.setitem(CLIENTS, "unbuilt", Client("unbuilt", "Unbuilt", build_tools=("no-such-tool",)))
    return made


def results(folder: Path, *clients: str, scenarios: list[Scenario] = SCENARIOS) -> dict[str, Result]:
    what = Run(scenarios, clients, ["pip"], [Mask("none")], folder, given=ADDRESS)
    reported: list[Result] = []
    found = run(what, reported.append)
    assert sorted(reported, key=str) == sorted(found, key=str)
    assert len(found) == what.cells
    return {result.cell.scenario: result for result in found}


def test_each_answer_of_a_program_has_its_outcome(tmp_path: Path, calls: list[tuple[str, str, object]]) -> None:
    found = results(tmp_path, "fake")
    told = {name: (result.outcome, result.reason) for name, result in found.items()}
    assert told == {
        "works": (Outcome.PASS, ""),
        "fails": (Outcome.FAIL, "two lines"),
        "excused": (Outcome.UNSUPPORTED, "no such call"),
        "asks": (Outcome.PASS, '{"done": false, "reason": "unknown work: dance"}'),
        "hangs": (Outcome.TIMEOUT, "the program did not answer in time"),
        "secured": (Outcome.UNSUPPORTED, "needs a broker with token authentication and TLS"),
        "partitioned": (Outcome.PASS, ""),
    }
    assert list(found) == [scenario.name for scenario in SCENARIOS]
    assert found["works"].seconds == 0.5


def test_each_cell_has_a_log_of_its_own(tmp_path: Path, calls: list[tuple[str, str, object]]) -> None:
    # A program that hangs has time to write its log first.
    patient = [replace(each, seconds=3.0) if each.name == "hangs" else each for each in SCENARIOS]
    found = results(tmp_path, "fake", scenarios=patient)
    assert {name: (tmp_path / result.log).read_text() for name, result in found.items() if result.log} == {
        name: f"{name}\n" for name in ("works", "fails", "asks", "hangs", "partitioned")
    }


def test_the_runner_prepares_each_namespace(tmp_path: Path, calls: list[tuple[str, str, object]]) -> None:
    results(
        tmp_path, "fake", scenarios=[scenario for scenario in SCENARIOS if scenario.name in ("asks", "partitioned")]
    )
    namespaces = [path.removeprefix("/admin/v2/namespaces/") for _, path, body in calls if body == {}]
    assert len(set(namespaces)) == 2
    asks, partitioned = (f"/admin/v2/persistent/{namespace}" for namespace in namespaces)
    assert [each for each in calls if each[2] != {}] == [
        ("PUT", f"{asks}/asks/unload", None),
        ("POST", f"{asks}/asks/terminate", None),
        ("PUT", f"{asks}/asks/compaction", None),
        ("GET", f"{asks}/asks/compaction", None),
        ("POST", f"/admin/v2/namespaces/{namespaces[1]}/deduplication", True),
        ("PUT", f"{partitioned}/partitioned/partitions", 3),
    ]


def test_a_client_that_is_not_there_is_skipped(tmp_path: Path, calls: list[tuple[str, str, object]]) -> None:
    for client, reason in (
        ("absent", "missing Python modules: no_such_module"),
        ("unbuilt", "not on PATH: no-such-tool"),
    ):
        assert {(result.outcome, result.reason) for result in results(tmp_path, client).values()} == {
            (Outcome.SKIPPED, reason)
        }
    assert calls == []


def test_scenarios_beyond_a_released_broker_do_not_count(
    tmp_path: Path, calls: list[tuple[str, str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner takes a given broker for a released one. The profile pip is none."""

    class Ours:
        address = ADDRESS

        def __init__(self, options: list[str], log: Path) -> None:
            assert options[:4] in (
                ["--profile", "pulsar-4.2", "--max-protocol-version", "15"],
                ["--profile", "pip", "--brokers", "2"],
            )

        def stop(self) -> None: ...

    monkeypatch.setattr(runner, "Served", Ours)
    scenarios = [
        Scenario(name="fails", contract="", not_as_released={"fake": "its fault", "other": "not this one's"}),
        Scenario(name="works", contract="", not_as_released={"fake": "its fault"}),
        Scenario(name="excused", contract="", protocol=16),
        Scenario(name="partitioned", contract="", protocols={"fake": 17, "other": 3}),
    ]
    what = Run(scenarios, ["fake"], ["pulsar-4.2"], [Mask.named("v15")], tmp_path)
    assert [(result.outcome, result.reason) for result in run(what)] == [
        (Outcome.UNSUPPORTED, "its fault"),
        (Outcome.PASS, ""),
        (Outcome.UNSUPPORTED, "needs protocol version 16"),
        (Outcome.UNSUPPORTED, "needs protocol version 17"),
    ]
    assert results(tmp_path, "fake", scenarios=scenarios)["fails"].outcome is Outcome.UNSUPPORTED
    on_pip = Run(scenarios, ["fake"], ["pip"], [Mask.named("none")], tmp_path)
    assert [result.outcome for result in run(on_pip)][:2] == [Outcome.FAIL, Outcome.PASS]


@pytest.mark.parametrize(("wanted", "outcome"), [("none", Outcome.PASS), ("lz4", Outcome.FAIL)])
def test_messages_that_a_client_left_uncompressed_do_not_count(
    tmp_path: Path, calls: object, monkeypatch: pytest.MonkeyPatch, wanted: str, outcome: Outcome
) -> None:
    """Clients do not compress small messages, as the capture shows."""
    talk = Talk()
    talk.greet()
    talk.produce()
    talk.send(0)

    @contextmanager
    def capturing(url: str, path: Path, token: str) -> Iterator[None]:
        yield
        write(path, [talk])

    monkeypatch.setattr(runner, "capturing", capturing)
    scenarios = [Scenario(name="works", contract="", compression=wanted)]
    found = results(tmp_path, "fake", scenarios=scenarios)["works"]
    reason = "" if outcome is Outcome.PASS else "the client sent with compression none"
    assert (found.outcome, found.reason) == (outcome, reason)


def test_preparation_that_is_refused(
    tmp_path: Path, calls: list[tuple[str, str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(url: str, method: str, path: str, body: object = None, *, token: str = "") -> Mapping[str, Any]:
        raise OSError("PUT it: 500")

    monkeypatch.setattr(runner, "call", refuse)
    (result,) = results(tmp_path, "fake", scenarios=SCENARIOS[:1]).values()
    assert (result.outcome, result.reason) == (Outcome.FAIL, "PUT it: 500")


def test_a_mask_is_an_option_of_the_broker() -> None:
    assert Mask.named("none").options() == []
    assert Mask.named("v19").options() == ["--max-protocol-version", "19"]
    for wrong in ("19", "v23", "v", "older"):
        with pytest.raises(ValueError, match="unknown mask"):
            Mask.named(wrong)
