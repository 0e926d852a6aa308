"""Toolchains that the tests in Java, Go and other languages need. A test without its toolchain skips or fails."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from yardsticks.servers.reference.jars import CACHE, stamp
from yardsticks.servers.reference.jars import PERF as PERF_JARS

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SETUP = 'run "scripts/setup --foreign"'

JAVA_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    # These classes log the whole configuration of each producer and consumer.
    "-Dorg.slf4j.simpleLogger.log.org.apache.pulsar.client.impl.ProducerStatsRecorderImpl=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.pulsar.client.impl.ConsumerStatsRecorderImpl=warn",
)
"""Options with which `java` runs the clients."""


@dataclass(frozen=True)
class Toolchain:
    """A folder of foreign code, the tools that build and run it, its sources, and the path that its `fetch` builds."""

    folder: Path
    tools: tuple[str, ...]
    sources: tuple[str, ...]
    built: str

    @property
    def product(self) -> Path:
        return self.folder / self.built

    @property
    def stamp(self) -> Path:
        return self.product.parent / "stamp"

    def fingerprint(self) -> str:
        """Return the SHA-256 of the sources' contents, sorted by path, as the `fetch` scripts write it to `stamp`."""
        names = sorted(
            path.relative_to(self.folder).as_posix()
            for pattern in self.sources
            for path in self.folder.glob(pattern)
            if path.is_file()
        )
        return hashlib.sha256(b"".join((self.folder / name).read_bytes() for name in names)).hexdigest()


JAVA = Toolchain(FOLDER / "java", ("java", "javac", "mvn"), ("pom.xml", "src/**/*"), "target/classpath")
RECORDS = Toolchain(FOLDER / "java-records", JAVA.tools, JAVA.sources, JAVA.built)
SPARK_AVRO = Toolchain(FOLDER / "spark-avro", JAVA.tools, ("pom.xml",), JAVA.built)
"""Spark's functions for Avro, a jar."""
ADMIN = Toolchain(FOLDER / "java-admin", JAVA.tools, JAVA.sources, JAVA.built)
CLI = Toolchain(FOLDER / "java-cli", JAVA.tools, JAVA.sources, JAVA.built)
V5 = Toolchain(FOLDER / "java-v5", JAVA.tools, JAVA.sources, JAVA.built)
"""The client of Pulsar 5, for scalable topics."""
REFERENCE = Toolchain(ROOT / "yardsticks" / "servers" / "reference", ("java", "mvn"), ("pom.xml",), str(stamp(CACHE)))
"""A real broker. Only `scripts/setup --foreign` fetches its jars, to the cache of `scripts/reference-pulsar`."""
PERF = Toolchain(
    ROOT / "yardsticks" / "servers" / "reference" / "perf",
    REFERENCE.tools,
    REFERENCE.sources,
    str(stamp(CACHE, PERF_JARS)),
)
"""The program pulsar-perf, which also needs the jars of REFERENCE."""
NODE = Toolchain(FOLDER / "node", ("node", "npm"), ("package.json", "package-lock.json"), "node_modules/ws")
GO = Toolchain(FOLDER / "go", ("go",), ("go.mod", "go.sum", "*.go"), "build/client")

HELPER_GO = Toolchain(ROOT / "helpers" / "go", GO.tools, GO.sources, GO.built)
HELPER_NPM = Toolchain(ROOT / "helpers" / "npm", NODE.tools, NODE.sources, "node_modules/jest")
HELPER_JUNIT = Toolchain(ROOT / "helpers" / "junit", JAVA.tools, JAVA.sources, "target/test-classes")
HELPER_RUST = Toolchain(
    ROOT / "helpers" / "rust", ("cargo", "cc"), ("Cargo.toml", "Cargo.lock", "src/*.rs", "tests/*.rs"), "target/debug"
)
HELPERS = (HELPER_GO, HELPER_NPM, HELPER_JUNIT)
"""The packages that start a broker for tests. That in Rust is built only by `scripts/setup --foreign`."""

RECIPES = ROOT / "examples" / "cookbook"
RECIPES_GO = Toolchain(RECIPES / "go", GO.tools, GO.sources, GO.built)
RECIPES_NPM = Toolchain(RECIPES / "node", NODE.tools, NODE.sources, HELPER_NPM.built)
RECIPES_JUNIT = Toolchain(RECIPES / "java", JAVA.tools, JAVA.sources, HELPER_JUNIT.built)
RECIPES_RUST = Toolchain(RECIPES / "rust", HELPER_RUST.tools, HELPER_RUST.sources, "target/stamp")
"""The recipes of docs/cookbook/. Those in Rust are built with the crates of HELPER_RUST, in its folder."""
CARGO_TEST = ("env", f"CARGO_TARGET_DIR={HELPER_RUST.folder / 'target'}", "cargo", "test", "--offline", "--locked")
"""The command that runs the tests of a folder with these crates."""

TOXIPROXY_JAVA = Toolchain(FOLDER / "toxiproxy-java", JAVA.tools, JAVA.sources, JAVA.built)
TOXIPROXY_GO = Toolchain(FOLDER / "toxiproxy-go", GO.tools, GO.sources, GO.built)
TOXIPROXY_PYTHON = Toolchain(
    FOLDER / "toxiproxy-python", (), ("main.py", "requirements.txt"), str(ROOT / "build" / "toxiproxy-python" / "lib")
)
TOXIPROXY = (TOXIPROXY_JAVA, TOXIPROXY_GO, TOXIPROXY_PYTHON)
"""The clients of Toxiproxy."""


def missing(toolchain: Toolchain) -> str:
    """Return why tests of `toolchain` cannot run here, or "". Tests run only `java`; the other tools build."""
    if not toolchain.product.exists():
        absent = [tool for tool in toolchain.tools if shutil.which(tool) is None]
        lacks = f"no {', '.join(absent)} on PATH; then " if absent else ""
        return f"{lacks}{SETUP}: {toolchain.folder.name} is not built"
    if toolchain.tools[:1] == ("java",) and shutil.which("java") is None:
        return "no java on PATH"
    if not toolchain.stamp.exists() or toolchain.stamp.read_text().strip() != toolchain.fingerprint():
        return f"{SETUP}: {toolchain.folder.name} was built from other sources"
    return ""


def missing_toolchains(
    toolchains: Iterable[Toolchain] = (
        *(JAVA, RECORDS, ADMIN, CLI, V5, GO, NODE, *HELPERS, *TOXIPROXY),
        *(RECIPES_GO, RECIPES_NPM, RECIPES_JUNIT),
    ),
) -> list[str]:
    """Return why tests of toolchains cannot run here, for a summary before a run."""
    return [reason for reason in map(missing, toolchains) if reason]


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("true", "1")


def require(toolchain: Toolchain) -> Path:
    """Return the path that the toolchain's `fetch` built. Without it, skip the test, or fail it where CI=true."""
    reason = missing(toolchain)
    if reason and in_ci():
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    return toolchain.product


def java_command(toolchain: Toolchain, main: str) -> list[str]:
    """Return the command that runs the class `main` of a Java toolchain, or skip the test."""
    target = require(toolchain).parent
    return ["java", *JAVA_OPTIONS, "-cp", f"{target}/classes:{target}/lib/*", main]
