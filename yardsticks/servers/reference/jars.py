"""Provide the jars of real Pulsars and of pulsar-perf from Maven Central, in a cache that all checkouts share."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "pulsar-reference")


@dataclass(frozen=True)
class Jars:
    """A list of jars: its folder in the cache, its pom.xml, and the properties of the pom.xml."""

    folder: str
    pom: Path
    properties: Mapping[str, str] = field(default_factory=dict)


RELEASE = "4.2.4"
"""The release that tests and yardsticks start, where they name no other."""

_SLF4J_2, _SLF4J_1 = "log4j-slf4j2-impl", "log4j-slf4j-impl"
BROKERS: Mapping[str, Jars] = {
    release: Jars(f"lib-{release}", HERE / "pom.xml", {"pulsar.version": release, "log4j.binding": binding})
    for release, binding in {RELEASE: _SLF4J_2, "4.0.7": _SLF4J_2, "3.0.7": _SLF4J_1}.items()
}
"""The jars of each release that can be started. 4.0.7 and 3.0.7 belong to the lines with long-term support."""
BROKER = BROKERS[RELEASE]
PERF = Jars("perf", HERE / "perf" / "pom.xml")
"""The jars of pulsar-perf, which needs those of the broker too."""
SPARK = Jars("spark", HERE / "spark" / "pom.xml")
"""The jars of the JVM connector for Spark."""

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


def stamp(cache: Path, jars: Jars = BROKER) -> Path:
    """Return the file beside complete jars, which holds the SHA-256 of their pom.xml."""
    return cache / jars.folder / "stamp"


def fetch(cache: Path, jars: Jars = BROKER) -> Path:
    """Return the folder with the jars, after filling it if it is incomplete."""
    complete = stamp(cache, jars)
    folder, fingerprint = complete.parent, hashlib.sha256(jars.pom.read_bytes()).hexdigest()
    if not complete.exists() or complete.read_text().strip() != fingerprint:
        if shutil.which("mvn") is None:
            sys.exit("reference-pulsar: mvn is needed to fetch Pulsar's jars: install Maven")
        shutil.rmtree(folder, ignore_errors=True)
        # File names include group ids, because some of Pulsar's jars differ only in these.
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-Dmdep.prependGroupId=true"]
        given = [f"-D{name}={value}" for name, value in {**jars.properties, "outputDirectory": str(folder)}.items()]
        subprocess.run(["mvn", "-B", "-q", "-f", str(jars.pom), *goal, *given], check=True, stdout=sys.stderr)
        complete.write_text(fingerprint + "\n")
    return folder


if __name__ == "__main__":
    for each in (BROKER, PERF):
        fetch(CACHE, each)
