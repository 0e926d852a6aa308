"""Provide the jars of a real Pulsar and of pulsar-perf from Maven Central, in a cache that all checkouts share."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "pulsar-reference")
BROKER, PERF, SPARK = "lib", "perf", "spark"
POMS = {BROKER: HERE / "pom.xml", PERF: HERE / "perf" / "pom.xml", SPARK: HERE / "spark" / "pom.xml"}
"""Lists of jars, by their folder in the cache.

pulsar-perf's list builds on the broker's. The last list is for the JVM connector for Spark.
"""

# Packages of the JDK that Pulsar opens by reflection, for Netty's direct memory, jline and its own memory metrics.
OPENED = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/java.util.zip",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
    "java.base/sun.net",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
)
JAVA_OPTIONS = (
    *(word for package in OPENED for word in ("--add-opens", f"{package}=ALL-UNNAMED")),
    f"-Dlog4j.configurationFile={HERE / 'log4j2.properties'}",
    "-Djava.net.preferIPv4Stack=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
)
"""Options of `java` for all of them. reference.log.level is the level of their log on standard error."""


def stamp(cache: Path, jars: str = BROKER) -> Path:
    """Return the file beside complete jars, which holds the SHA-256 of their pom.xml."""
    return cache / jars / "stamp"


def fetch(cache: Path, jars: str = BROKER) -> Path:
    """Return the folder with the jars, after filling it if it is incomplete."""
    pom, complete = POMS[jars], stamp(cache, jars)
    folder, fingerprint = complete.parent, hashlib.sha256(pom.read_bytes()).hexdigest()
    if not complete.exists() or complete.read_text().strip() != fingerprint:
        if shutil.which("mvn") is None:
            sys.exit("reference-pulsar: mvn is needed to fetch Pulsar's jars: install Maven")
        shutil.rmtree(folder, ignore_errors=True)
        # File names include group ids, because some of Pulsar's jars differ only in these.
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-Dmdep.prependGroupId=true"]
        target = f"-DoutputDirectory={folder}"
        subprocess.run(["mvn", "-B", "-q", "-f", str(pom), *goal, target], check=True, stdout=sys.stderr)
        complete.write_text(fingerprint + "\n")
    return folder


if __name__ == "__main__":
    for each in (BROKER, PERF):
        fetch(CACHE, each)
