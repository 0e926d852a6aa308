"""Spark sessions, and the Java that they need."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pulsarium.pipeline import NoJava, SparkTooOld, session
from pulsarium.pipeline.spark import require_java, require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = "openjdk-17-jre-headless"


def fake_java(home: Path, said: str, mode: int = 0o755) -> None:
    """Write a `java` program that prints `said` as its version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n", encoding="utf-8")
    java.chmod(mode)


def test_java_home_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match="JAVA_HOME has none") as raised:
        session()
    assert PACKAGE in str(raised.value)


def test_no_java_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJava, match="there is none on the PATH") as raised:
        session()
    assert PACKAGE in str(raised.value)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "11.0.21" 2023-10-17', "11"),
        ('java version "1.8.0_392"', "1"),
        ("no version at all", "unknown"),
    ],
)
def test_java_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, version: str) -> None:
    fake_java(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match=f"the version of .*java is {version}$") as raised:
        session()
    assert PACKAGE in str(raised.value)


@pytest.mark.skipif(os.geteuid() == 0 and not sys.platform.startswith("linux"), reason="root may run everything")
def test_java_that_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "", mode=0o644)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match="cannot be started"):
        require_java()


@pytest.mark.parametrize("said", ['openjdk version "17.0.9"', 'openjdk version "21" 2023-09-19', 'version "25-ea"'])
def test_java_that_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    fake_java(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    require_java()


@pytest.mark.parametrize("version", ["3.5.1", "4.1.9"])
def test_a_spark_that_is_too_old_is_named_in_one_line(version: str) -> None:
    with pytest.raises(SparkTooOld, match=f"needs Spark 4.2 or later, this is {version}: install it with") as raised:
        require_spark(version)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("version", ["4.2.0", "4.10.0", "5.0.0.dev1"])
def test_a_spark_that_is_new_enough_is_taken(version: str) -> None:
    require_spark(version)


def test_the_session_of_this_process(spark: SparkSession) -> None:
    assert session("other") is spark
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.log.level") == "ERROR"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2", "a given setting overrides the default"
