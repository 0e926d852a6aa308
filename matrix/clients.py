"""The clients, and the tools that build and run their programs."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
_CHECKOUT: Final = FOLDER.resolve().parent


def work_folder() -> Path:
    """Return the folder for builds: build/ of a checkout, otherwise the user's cache."""
    if (_CHECKOUT / "pyproject.toml").exists():
        return _CHECKOUT / "build" / "matrix"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "pulsarium" / "matrix"


@dataclass(frozen=True)
class Client:
    """A client library in one version.

    module: program of a Python client. needs: modules that the program imports.
    build_tools, run_tools: commands that build the program, and that run it.
    sources: globs in the client's folder.
    runs: command, in which {built} is the folder of the build.
    """

    name: str
    title: str
    module: str = ""
    needs: Sequence[str] = ()
    build_tools: Sequence[str] = ()
    run_tools: Sequence[str] = ()
    sources: Sequence[str] = ()
    runs: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def built(self) -> Path:
        return work_folder() / self.name

    @property
    def stamp(self) -> Path:
        return self.built / "stamp"

    def fingerprint(self) -> str:
        """Return the SHA-256 of the sources."""
        paths = sorted(path for glob in self.sources for path in self.folder.glob(glob) if path.is_file())
        digest = hashlib.sha256()
        for path in paths:
            digest.update(path.relative_to(self.folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()

    @property
    def is_built(self) -> bool:
        return bool(self.module) or (self.stamp.exists() and self.stamp.read_text() == self.fingerprint())

    def missing(self) -> str:
        """Return why the client cannot run here, or "" when it can run or be built."""
        absent = [name for name in self.needs if find_spec(name) is None]
        if absent:
            return f"missing Python modules: {', '.join(absent)}"
        tools = [*self.run_tools, *(() if self.is_built else self.build_tools)]
        absent = [tool for tool in tools if shutil.which(tool) is None]
        return f"not on PATH: {', '.join(absent)}" if absent else ""

    def command(self) -> list[str]:
        if self.module:
            return [sys.executable, "-P", "-m", self.module]
        return [word.replace("{built}", str(self.built)) for word in self.runs]


_JAVA: Final = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    # these classes log the whole configuration of each producer and consumer
    "-Dorg.slf4j.simpleLogger.log.org.apache.pulsar.client.impl.ProducerStatsRecorderImpl=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.pulsar.client.impl.ConsumerStatsRecorderImpl=warn",
)

CLIENTS: Final = {
    client.name: client
    for client in (
        Client(
            "python",
            "Python (C++ core) 3.13.0",
            module="pulsarium.matrix.python.official",
            needs=("pulsar", "fastavro"),
        ),
        Client(
            "java",
            "Java 4.2.4",
            build_tools=("javac", "mvn"),
            run_tools=("java",),
            sources=("pom.xml", "src/**/*"),
            runs=("java", *_JAVA, "-cp", "{built}/classes:{built}/lib/*", "pulsarium.matrix.Main"),
        ),
        Client(
            "go",
            "Go 0.19.0",
            build_tools=("go",),
            sources=("go.mod", "go.sum", "*.go"),
            runs=("{built}/client",),
        ),
        Client(
            "rust",
            "Rust 6.9.1",
            build_tools=("cargo", "cc"),
            sources=("Cargo.toml", "Cargo.lock", "src/*.rs"),
            runs=("{built}/target/debug/pulsarium-matrix",),
            environment={"RUST_BACKTRACE": "1"},
        ),
        Client(
            "websocket",
            "websocket-client 1.9.2",
            module="pulsarium.matrix.python.websocket",
            needs=("websocket", "cryptography"),
        ),
        Client(
            "node",
            "ws 8.18.3 (Node.js)",
            build_tools=("npm",),
            run_tools=("node",),
            sources=("package.json", "package-lock.json", "src/*.js"),
            runs=("node", "{built}/src/main.js"),
        ),
        Client(
            "ours",
            "Pulsarium's own",
            module="pulsarium.matrix.python.ours",
            needs=("anyio", "cryptography", "fastavro"),
        ),
    )
}
