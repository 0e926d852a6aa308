"""A Spark session that has what this package needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

JAVA = 17  # what Spark 4 runs on, and later versions
_VERSION = re.compile(r'version "(\d+)')

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Spark's own pattern, and what clients prove their role with.
    "spark.sql.redaction.options.regex": "(?i)url|authparams",
    # A batch that is repeated has to have the same partitions, because producers are named by them.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}
LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # One machine: more parts than this cost more than they share out.
    "spark.sql.shuffle.partitions": "8",
}


class NoJava(RuntimeError):
    """No Java that Spark could run on."""


def session(
    name: str = "pulsarium", *, master: str = "local[*]", config: Mapping[str, str] | None = None
) -> SparkSession:
    """The session of this process, made when there is none: with time in UTC, workers of this interpreter, and no port
    but on loopback where `master` is local.

    `config` wins over all of that. NoJava where there is no Java 17.
    """
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    defaults = DEFAULTS | (LOCAL_DEFAULTS if master.startswith("local") else {})
    if SparkSession.getActiveSession() is not None:
        defaults = {}  # it has its own
    for key, value in {**defaults, **(config or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def register(spark: SparkSession) -> None:
    """Make `pulsar` a format of a session whose Python found it not installed but among its `pyFiles`.

    Spark finds what is installed by itself, and looks nowhere else.
    """
    from pulsarium.pipeline.data_source import PulsarDataSource

    spark.dataSource.register(PulsarDataSource)


def require_java() -> None:
    """NoJava, with what to do about it, where JAVA_HOME or the PATH have no Java 17."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    what = f"Spark needs Java {JAVA} or later (Debian: openjdk-17-jre-headless, macOS: brew install openjdk@17)"
    if java is None or not Path(java).exists():
        raise NoJava(f"{what}: {'JAVA_HOME has none' if home else 'none is on the PATH'}")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError as error:
        raise NoJava(f"{what}: {java} does not run: {error.strerror}") from None
    found = _VERSION.search(said)
    if found is None or int(found[1]) < JAVA:
        raise NoJava(f"{what}: {java} is of version {found[1] if found else 'unknown'}")
