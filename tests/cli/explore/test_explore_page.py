"""The program and the commands of docs/explore.md do what the page says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "explore.md").read_text()
PROGRAM = re.findall(r"^```python\n(# orders.py\n.*?)^```", PAGE, re.M | re.S)[0]
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]
FOUND = ("--runs 200", "--decide", "--script", "--only receipt-lost")


def explored(command: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the page in a folder that has the page's program."""
    (tmp_path / "orders.py").write_text(PROGRAM)
    (tmp_path / "found.script").write_text("duplicate SEND 0  # as the page explains\n")
    words = [sys.executable if word == "python" else word for word in shlex.split(command)[1:]]
    return subprocess.run(
        [sys.executable, "-P", "-m", "pulsarium", *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    )


@pytest.mark.parametrize(
    "command", [pytest.param(line, marks=[pytest.mark.heavy] * ("--runs" in line)) for line in COMMANDS]
)
def test_a_command_of_the_page_runs(command: str, tmp_path: Path) -> None:
    run = explored(command, tmp_path)
    assert run.returncode == int(any(word in command for word in FOUND)), run.stdout + run.stderr


@pytest.mark.parametrize("command", [line for line in COMMANDS if "--runs" in line])
def test_the_first_run_of_a_command_of_the_page_makes_no_choice(command: str, tmp_path: Path) -> None:
    run = explored(re.sub(r"--runs \d+", "--runs 1", command), tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_page_shows_the_report_of_its_program() -> None:
    assert "least script: 1 decision\n  receipt-lost SEND 0\n" in PAGE
