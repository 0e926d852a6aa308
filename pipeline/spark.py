"""Open a Spark session with the settings that this package needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

JAVA = 17  # the oldest Java that Spark 4 runs on
OLDEST = (4, 2)
"""The oldest Spark whose data sources have what this package needs."""
_VERSION = re.compile(r'version "(\d+)')

CONNECT = "sc://"
"""The scheme of servers of Spark Connect."""

SESSION_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Spark's own pattern, and the parameters of authentication.
    "spark.sql.redaction.options.regex": "(?i)url|authparams",
    # A repeated micro-batch must have the same partitions, because their numbers name the producers.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}
DEFAULTS = {"spark.ui.enabled": "false", **SESSION_DEFAULTS}
# An error is its reason, without the stack of the server's JVM.
CONNECT_DEFAULTS = {"spark.sql.connect.serverStacktrace.enabled": "false", **SESSION_DEFAULTS}
LOG = Path(__file__).with_name("log4j2.properties")
WORKERS = Path(__file__).with_name("workers")
"""Folder whose `sitecustomize` the Python processes of a local Spark import first."""
LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # On one machine, more shuffle partitions cost more than they share out.
    "spark.sql.shuffle.partitions": "8",
}


class SparkTooOld(ImportError):
    """The installed Spark is too old. The message says how to install another."""


class NoJava(RuntimeError):
    """Java is missing or too old for Spark. The message says how to install it."""


def session(
    name: str = "pulsarium", *, master: str = "local[*]", config: Mapping[str, str] | None = None
) -> SparkSession:
    """Return the session of this process, or start one.

    A new session works in UTC, its workers run this interpreter, and with a local `master` it listens on loopback only.
    It logs errors only, and shows the progress of jobs on a terminal. `config` overrides all settings. Raise `NoJava`
    without Java 17 or later. With a `master` such as "sc://host:15002", the session is one of a Spark Connect server.
    Then this process needs no Java, and the server has its own workers, addresses and logs.
    """
    active = SparkSession.getActiveSession()
    if active is not None and is_remote():
        for key, value in (config or {}).items():
            active.conf.set(key, value)
        return active
    builder = SparkSession.builder.appName(name)
    if master.startswith(CONNECT):
        builder, defaults = builder.remote(master), CONNECT_DEFAULTS
    else:
        require_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        builder = builder.master(master)
        is_local = master.startswith("local")
        defaults = DEFAULTS | _console() | (LOCAL_DEFAULTS if is_local else {})
        if is_local:
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark warns about the name of the machine
    if active is not None:
        defaults = {}  # the active session has its settings
    for key, value in {**defaults, **(config or {})}.items():
        builder = builder.config(key, value)
    with _quick_workers() if master.startswith("local") else nullcontext():
        return builder.getOrCreate()


@contextmanager
def _quick_workers() -> Iterator[None]:
    """Let a JVM that starts meanwhile pass `WORKERS` to its Python processes."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(WORKERS), *filter(None, [before])])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _console() -> dict[str, str]:
    """Return the settings of the log and of the progress bars, which need a terminal."""
    return {
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG.as_uri()}",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }


def require_spark(version: str) -> None:
    """Raise `SparkTooOld` for a version of Spark that this package does not run on."""
    found = tuple(int(each) for each in re.findall(r"\d+", version)[:2])
    if found < OLDEST:
        raise SparkTooOld(
            f"pulsarium.pipeline needs Spark {OLDEST[0]}.{OLDEST[1]} or later, this is {version}: "
            'install it with: pip install --upgrade "pulsarium[spark]"'
        )


def register(spark: SparkSession) -> None:
    """Register the format `pulsar` in a session whose Python got this package among its `pyFiles`.

    Spark finds the data sources of installed packages by itself, and of no others.
    """
    from pulsarium.pipeline.data_source import PulsarDataSource

    spark.dataSource.register(PulsarDataSource)


def require_java() -> None:
    """Raise `NoJava` when neither JAVA_HOME nor the PATH has Java 17 or later."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    what = f"Spark needs Java {JAVA} or later (Debian: openjdk-17-jre-headless, macOS: brew install openjdk@17)"
    if java is None or not Path(java).exists():
        raise NoJava(f"{what}: {'JAVA_HOME has none' if home else 'there is none on the PATH'}")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError as error:
        raise NoJava(f"{what}: {java} cannot be started: {error.strerror}") from None
    found = _VERSION.search(said)
    if found is None or int(found[1]) < JAVA:
        raise NoJava(f"{what}: the version of {java} is {found[1] if found else 'unknown'}")
