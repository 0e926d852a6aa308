from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .lines import LineProgram

PROGRAM = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    print("working on", request["scenario"], file=sys.stderr, flush=True)
    if request["scenario"] == "die":
        sys.exit(3)
    failed = request["scenario"] == "fail"
    result = {"ok": not failed, "error": "what went wrong" if failed else "", "got": request.get("value")}
    print(json.dumps(result), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[LineProgram]:
    line_program = LineProgram([sys.executable, "-c", PROGRAM], tmp_path / "log")
    yield line_program
    line_program.close()


def test_one_process_answers_many_requests(program: LineProgram) -> None:
    assert [program.run("echo", value=value)["got"] for value in range(3)] == [0, 1, 2]


def test_a_failure_comes_with_its_error_and_the_log(program: LineProgram) -> None:
    with pytest.raises(AssertionError, match=r"what went wrong\nworking on fail"):
        program.run("fail")
    program.run("echo")


def test_a_program_that_dies_is_started_again(program: LineProgram) -> None:
    with pytest.raises(AssertionError, match="ended with exit code 3"):
        program.run("die")
    assert program.run("echo", value="back")["got"] == "back"
