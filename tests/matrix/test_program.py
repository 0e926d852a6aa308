"""Conversations with a scenario program, also with a program that hangs or ends.

Builds of scenario programs: their sources, and when they are built anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pulsarium.matrix import clients
from pulsarium.matrix.build import build
from pulsarium.matrix.clients import CLIENTS, Client
from pulsarium.matrix.program import Hung, Program

SOURCE = """
import json, os, sys, threading
for line in sys.stdin:
    request = json.loads(line)
    print("said on stderr", file=sys.stderr, flush=True)
    match request["scenario"]:
        case "hangs":
            threading.Event().wait()
        case "dies":
            sys.exit(3)
        case "asks":
            print(json.dumps({"do": "unload", "why": 1}), flush=True)
            answer = json.loads(sys.stdin.readline())
            print(json.dumps({"outcome": "pass", "reason": json.dumps(answer), "seconds": 0.0}), flush=True)
        case "talks":
            print("no JSON", flush=True)
        case _:
            print(json.dumps({"outcome": "pass", "reason": str(os.getpid()), "seconds": 0.0}), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    found = Program([sys.executable, "-P", "-c", SOURCE], tmp_path / "log", {"MATRIX": "1"})
    yield found
    found.close()


def nothing(asked: Mapping[str, Any]) -> None:
    raise AssertionError(asked)


def run(program: Program, scenario: str, seconds: float = 20.0) -> str:
    return str(program.run({"scenario": scenario}, seconds, nothing)["reason"])


def test_one_process_for_many_scenarios(program: Program) -> None:
    assert run(program, "fine") == run(program, "fine")
    assert program.log.read_text() == "said on stderr\n" * 2


def test_the_administrators_part(program: Program) -> None:
    asked: list[Mapping[str, Any]] = []
    answer = program.run({"scenario": "asks"}, 20.0, asked.append)
    assert asked == [{"do": "unload", "why": 1}]
    assert answer["reason"] == '{"done": true}'


def test_a_part_that_is_refused(program: Program) -> None:
    def refuse(asked: Mapping[str, Any]) -> None:
        raise OSError("not today")

    assert program.run({"scenario": "asks"}, 20.0, refuse)["reason"] == '{"done": false, "reason": "not today"}'


@pytest.mark.parametrize(
    ("scenario", "seconds", "said"),
    [
        ("hangs", 0.2, "the program did not answer in time"),
        ("dies", 20.0, "the program ended with exit code 3"),
        ("talks", 20.0, "Expecting"),
    ],
)
def test_the_next_scenario_has_a_new_process(program: Program, scenario: str, seconds: float, said: str) -> None:
    before = run(program, "fine")
    with pytest.raises(Hung, match=said):
        run(program, scenario, seconds)
    assert run(program, "fine") != before


def test_a_program_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    stubborn = SOURCE + "threading.Event().wait()"
    program = Program([sys.executable, "-P", "-c", stubborn], tmp_path / "log", {})
    run(program, "fine")
    program.close(seconds=0.1)
    program.close()


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(clients, "FOLDER", tmp_path / "sources")
    monkeypatch.setattr(clients, "work_folder", lambda: tmp_path / "built")
    found = Client("go", "Go", build_tools=("no-such-tool",), run_tools=("sh",), sources=("*.go",))
    found.folder.mkdir(parents=True)
    found.built.mkdir(parents=True)
    (found.folder / "main.go").write_text("1")
    return found


def test_a_change_of_the_sources_asks_for_a_new_build(client: Client) -> None:
    assert client.missing() == "not on PATH: no-such-tool"
    client.stamp.write_text(client.fingerprint())
    assert client.missing() == ""
    build(client)  # a build that did anything would miss its tool
    (client.folder / "other.go").write_text("1")
    assert client.missing() == "not on PATH: no-such-tool"


def test_every_program_says_how_it_is_run() -> None:
    for client in CLIENTS.values():
        assert client.command()
        assert client.module or list(client.folder.glob("*")), client.name


def test_a_build_that_fails_says_what_its_tool_said(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(client.folder))
    tool = client.folder / "go"
    tool.write_text("#!/bin/sh\necho it does not compile\nexit 1\n")
    tool.chmod(0o755)
    with pytest.raises(OSError, match="go build failed: it does not compile"):
        build(client)
    assert not client.is_built


def test_installed_programs_are_built_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_CHECKOUT", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert clients.work_folder() == tmp_path / "cache" / "pulsarium" / "matrix"
