"""The command group: help that teaches, and imports that can wait."""

from __future__ import annotations

import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.main import cli
from tests.workers import unmeasured

LATE = {"trio", "google.protobuf", "h11", "sqlite3", "importlib.metadata", "difflib"}


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments, prog_name="pulsarium")
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_the_help_of_pulsarium_teaches(option: str) -> None:
    text = shown(option)
    assert "pulsar://localhost:6650" in text
    assert "\n    pulsarium serve\n" in text
    assert "pulsarium serve --port 0 --http-port 0 --ready-file broker.json" in text
    assert re.search(r"\n  serve +Run a broker", text)


def test_help_of_serve_teaches() -> None:
    text = shown("serve", "--help")
    for example in ("--data ./data", "--config broker.conf --set allowAutoTopicCreation=false", "--profile pulsar-4.2"):
        assert f"pulsarium serve {example}" in text
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Network:", "Storage:", "Behavior:", "TLS:", "Output:", "Other:"]
    for default in ("127.0.0.1", "6650", "8080", "os", "22, or that of the profile's release"):
        assert f"[default: {default}]" in " ".join(text.split())


def test_the_version_is_printed() -> None:
    assert shown("--version") == f"pulsarium {VERSION}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("server", "No such command 'server'; did you mean serve? (see pulsarium --help)"),
        ("admin topisc list", "No such command 'topisc'; did you mean topics? (see pulsarium admin --help)"),
        ("client produse", "No such command 'produse'; did you mean produce? (see pulsarium client --help)"),
        (
            "admin topics list public/default --admin-url x",
            "No such option '--admin-url'; put it directly after `pulsarium admin` (see pulsarium admin topics list",
        ),
        ("client produce t --url x", "No such option '--url'; put it directly after `pulsarium client` (see"),
        (
            "admin functions list",
            "'functions': Pulsarium has no functions, connectors or packages; use Apache Pulsar for them (see",
        ),
        ("admin topics delete public/default/[ --regex", "TOPIC: 'persistent://public/default/[' is no regular"),
        ("client consume [ --regex -s s", "TOPIC: '[' is no regular expression: "),
        ("frobnicate", "No such command 'frobnicate' (see pulsarium --help)"),
        ("--port 1", "No such option '--port' (see pulsarium --help)"),
        ("serve --prot 1", "No such option '--prot'. (Did you mean one of: '--host', '--port', '--profile'?)"),
        ("serve --port x", "Invalid value for '--port': 'x' is not a valid integer"),
        ("serve extra", "Got unexpected extra argument (extra) (see pulsarium serve --help)"),
        ("fault ad", "No such command 'ad'; did you mean add? (see pulsarium fault --help)"),
        ("fault add SEND", "Missing argument 'ACTION'. Choose from: answer, drop"),
        ("clock advance", "pass a DURATION such as 7d, or --to TIME (see pulsarium clock advance --help)"),
        ("client consume t", "Missing option '-s' / '--subscription-name' (see pulsarium client consume --help)"),
        ("capture show --frm x", "No such option '--frm'"),
        ("matrix --jobs x", "Invalid value for '--jobs'"),
    ],
)
def test_a_wrong_command_line_is_one_line_that_leads_to_the_help(line: str, said: str) -> None:
    result = CliRunner().invoke(cli, line.split(), prog_name="pulsarium")
    assert (result.exit_code, result.stdout) == (1 if line.startswith("admin") else 2, "")
    assert result.stderr.startswith(f"pulsarium: {said}")
    assert result.stderr.endswith(" --help)\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("how", [KeyboardInterrupt, click.Abort])
def test_ctrl_c_ends_a_command_with_130_and_without_a_word(
    how: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise how

    monkeypatch.setattr("pulsarium.cli.lab.broker.LabOf.call", interrupted)
    result = CliRunner().invoke(cli, ["why", "t", "s"], prog_name="pulsarium")
    assert (result.exit_code, result.output) == (130, "")


def test_start_up_imports_no_module_that_it_does_not_need() -> None:
    code = "import sys, pulsarium.cli.main, pulsarium.cli.serve; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True, env=unmeasured()
    )
    assert set(run.stdout.split()) & LATE == set()
