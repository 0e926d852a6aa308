"""`pulsarium analyze`: what it prints and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from pulsarium.cli.main import cli
from tests.pipeline.capture.captured import small, with_a_fault, write
from tests.pipeline.conftest import spark  # noqa: F401

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["analyze", *arguments], prog_name="pulsarium")


@pytest.fixture
def capture(tmp_path: Path) -> str:
    return str(write(tmp_path / "run.pulscap", [small(), *with_a_fault("permits-exceeded")]))


def test_help_teaches() -> None:
    text = run("--help").output
    for example in ("run.pulscap", "captures/ --out report", "new/ --against old/", "--master spark://host:7077"):
        assert example in text
    for word in ("violations.parquet", "matrix.svg", "Java 17"):
        assert word in text


def test_tables_and_files(spark: SparkSession, capture: str, tmp_path: Path) -> None:  # noqa: F811
    """Violations come first; the folder has all that the help names."""
    out = tmp_path / "report"
    result = run(capture, "--out", str(out))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:2] == ["Violations of the protocol", "--------------------------"]
    assert lines[2].split() == ["side", "rule", "client", "client_version", "count", "example"]
    assert lines[3].startswith("broker  permits-exceeded  Pulsar-Test  1.2.3               1  MESSAGE to consumer 1")
    assert "What became of each command" in lines
    assert {path.suffix for path in out.iterdir()} == {".parquet", ".svg"}


def test_json(spark: SparkSession, capture: str) -> None:  # noqa: F811
    tables = json.loads(run(capture, "--format", "json", "--against", capture).stdout)
    assert [row["rule"] for row in tables["violations"]] == ["permits-exceeded", "broken-frame"]
    assert {"client", "client_version", "protocol_version", "command", "outcome", "count"} == tables["matrix"][0].keys()
    assert {"count", "p50", "p90", "p99", "max"} <= tables["latencies"][0].keys()
    assert tables["differences"] == []


def test_no_capture(tmp_path: Path) -> None:
    result = run(str(tmp_path / "absent.pulscap"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"pulsarium: no capture at {tmp_path}/absent.pulscap\n"


def test_without_java(capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    result = run(capture)
    assert result.exit_code == 1
    assert "Spark needs Java 17 or later" in result.stderr


def test_without_pyspark(capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pulsarium.pipeline")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = run(capture)
    assert result.exit_code == 1
    assert 'pip install "pulsarium[spark]"' in result.stderr
