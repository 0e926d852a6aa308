"""docs/command-line.md has what each command prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from pulsarium.cli.main import cli

PAGE = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text("utf-8")


@pytest.mark.parametrize("words", ["serve", "fault add", "admin topics"])
def test_the_page_has_the_help_that_a_command_prints(words: str) -> None:
    command = [sys.executable, "-P", "-c", "from pulsarium.cli.main import main; main()", *words.split(), "--help"]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env={"COLUMNS": "88"})
    shown = "\n".join(line.rstrip() for line in run.stdout.splitlines())
    assert f" pulsarium {words}\n\n" in PAGE
    assert f"```text\n{shown}\n```\n" in PAGE


@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_each_command_has_a_section(name: str) -> None:
    assert f"\n## pulsarium {name}\n" in PAGE


def test_the_help_has_no_marks_of_click() -> None:
    assert "\b" not in PAGE
