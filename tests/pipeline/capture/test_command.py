"""Output and files of `pulsarium analyze`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from pulsarium.cli.main import cli
from tests.capture.captures import small, with_a_fault, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["analyze", *arguments], prog_name="pulsarium")


@pytest.fixture
def capture(tmp_path: Path) -> str:
    return str(write(tmp_path / "run.pulscap", [small(), *with_a_fault("permits-exceeded")]))


def test_tables_and_files(spark: SparkSession, capture: str, tmp_path: Path) -> None:
    """The command prints violations first, and writes all files that its help names."""
    out = tmp_path / "report"
    result = run(capture, "--out", str(out))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:2] == ["Violations of the protocol", "--------------------------"]
    assert lines[2].split() == ["side", "rule", "client", "client_version", "count", "example"]
    assert lines[3].startswith("broker  permits-exceeded  Pulsar-Test  1.2.3               1  MESSAGE to consumer 1")
    assert "Outcome of each command" in lines
    assert {path.suffix for path in out.iterdir()} == {".parquet", ".svg"}


def test_the_command_writes_json(spark: SparkSession, capture: str) -> None:
    tables = json.loads(run(capture, "--format", "json", "--against", capture).stdout)
    assert [row["rule"] for row in tables["violations"]] == ["permits-exceeded", "broken-frame"]
    assert {"client", "client_version", "protocol_version", "command", "outcome", "count"} == tables["matrix"][0].keys()
    assert {"count", "p50", "p90", "p99", "max"} <= tables["latencies"][0].keys()
    assert tables["differences"] == []
