"""Commands and the program of docs/proposals.md, as they stand there."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsarium.broker.testing.starting import Running
from pulsarium.cli.main import cli
from pulsarium.cli.serve import gather, serve
from scripts.pages.proposals import PAGE
from tests.docs.blocks import blocks


def block(part: str) -> str:
    """Return the only block of the page that has this part."""
    (found,) = (each.text for each in blocks(PAGE) if part in each.text)
    return found


def outputs(switch: str, part: str) -> list[str]:
    """Return what the commands of a block print on a broker that the block with the switch starts."""
    asked = serve.make_context("serve", shlex.split(block(f"serve {switch}"))[2:]).params
    lines = [shlex.split(line, comments=True)[1:] for line in block(part).splitlines()]
    with Running(gather(asked, free_ports=True)[0]) as broker:
        where = {"PULSARIUM_ADMIN_URL": broker.admin_url, "PULSARIUM_SERVICE_URL": broker.service_url}
        ran = [CliRunner().invoke(cli, words, prog_name="pulsarium", env=where) for words in lines]
    assert [each.output for each in ran if each.exit_code] == []
    return [each.output for each in ran]


def test_the_commands_show_the_age_of_a_backlog() -> None:
    assert '"oldestBacklogMessageAgeSeconds" : 3600' in outputs("--pip 488 ", "topics stats")[-1]


def test_the_commands_show_the_permits_of_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = outputs("--pip 491", "orders.pulscap")[-1]
    assert "message_permits=1" in shown
    assert "[draft: PIP-491]" in shown


def test_the_program_has_both_keys_between(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", block("import jwt")]
    ran = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    answers = [{"2025": 200, "2026": 401}, {"2025": 200, "2026": 200}, {"2025": 401, "2026": 200}]
    assert ran.stdout == "".join(f"{each}\n" for each in answers)


def test_the_program_receives_the_rest_of_a_key_after_the_refused_message(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", block("ordered_negative_ack=api")]
    ran = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["ann 1 refused", "bob 1", "bob 2", "ann 1", "ann 2"]
