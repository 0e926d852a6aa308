"""Errors of `pulsarium analyze` before Spark starts. tests/pipeline/capture/test_command.py runs it with Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsarium.cli.analyze import _cell
from pulsarium.cli.main import cli
from pulsarium.pipeline.errors import SPARK_ERRORS
from pulsarium.proto.installing import remedy
from tests.capture.captures import small, with_a_fault, write


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["analyze", *arguments], prog_name="pulsarium")


@pytest.fixture
def capture(tmp_path: Path) -> str:
    return str(write(tmp_path / "run.pulscap", [small(), *with_a_fault("permits-exceeded")]))


def test_the_help_of_analyze_teaches() -> None:
    text = run("--help").output
    for example in ("run.pulscap", "captures/ --out report", "new/ --against old/", "--master spark://host:7077"):
        assert example in text
    for word in ("violations.parquet", "matrix.svg", "Java 17"):
        assert word in text


def test_a_missing_capture_is_refused_by_its_path(tmp_path: Path) -> None:
    result = run(str(tmp_path / "absent.pulscap"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"pulsarium: no capture at {tmp_path}/absent.pulscap\n"


def test_analyze_says_that_java_is_missing(capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    result = run(capture)
    assert result.exit_code == 1
    assert "Spark needs Java 17 or later" in result.stderr


def test_without_pyspark_the_error_names_the_extra(capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pulsarium.pipeline")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = run(capture)
    assert result.exit_code == 1
    assert remedy("spark") in result.stderr


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            "An error occurred while calling o1.x.\n: org.apache.spark.SparkException: no master\n\tat org.apache.X",
            "org.apache.spark.SparkException: no master",
        ),
        ("Job aborted.\nTraceback\n  File x\nOSError: a\x1b[2Jb\n\n\tat java.lang.Thread", r"OSError: a\x1b[2Jb"),
    ],
)
@pytest.mark.parametrize("kind", SPARK_ERRORS)
def test_a_refusal_of_spark_is_one_line(
    capture: str, monkeypatch: pytest.MonkeyPatch, kind: type[Exception], said: str, line: str
) -> None:
    def session(*_: object, **__: object) -> None:
        raise kind(said)

    monkeypatch.setattr("pulsarium.pipeline.session", session)
    result = run(capture, "--master", "x")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"pulsarium: {line}\n")


def test_names_of_clients_do_not_command_the_terminal() -> None:
    assert _cell("a\x1b[2J\nb\x9b") == r"a\x1b[2J\nb\x9b"
    assert _cell(None) == ""
