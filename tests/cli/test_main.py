"""The command group: help that teaches, and imports that can wait."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.main import cli

LATE = {"trio", "google.protobuf", "h11", "sqlite3", "importlib.metadata", "difflib"}


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments, prog_name="pulsarium")
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_teaches(option: str) -> None:
    text = shown(option)
    assert "pulsar://localhost:6650" in text
    assert "\n    pulsarium serve\n" in text
    assert "pulsarium serve --port 0 --http-port 0 --ready-file broker.json" in text
    assert "\n  serve    Run a broker" in text


def test_help_of_serve_teaches() -> None:
    text = shown("serve", "--help")
    for example in ("--data ./data", "--config broker.conf --set allowAutoTopicCreation=false", "--profile pulsar-4.2"):
        assert f"pulsarium serve {example}" in text
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Network:", "Storage:", "Behaviour:", "TLS:", "Output:", "Other:"]
    for default in ("127.0.0.1", "6650", "8080", "os", "22, and that of a release with its profile"):
        assert f"[default: {default}]" in " ".join(text.split())


def test_version() -> None:
    assert shown("--version") == f"pulsarium {VERSION}\n"


def test_an_unknown_command() -> None:
    result = CliRunner().invoke(cli, ["server"], prog_name="pulsarium")
    assert result.exit_code == 2
    assert "No such command 'server'" in result.output


def test_what_start_up_does_not_need_is_not_imported_first() -> None:
    code = "import sys, pulsarium.cli.main, pulsarium.cli.serve; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True)
    assert set(run.stdout.split()) & LATE == set()
