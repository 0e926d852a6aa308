"""The clients that the kit knows: their adapters, and how a release of a client is fetched and built.

A client is named as on the command line: `go` is the release that this package is tested with, and `go@0.18.0` another
one, which the ordinary package client of its language fetches. The adapter is written for the newest release, so an old
one may lack what it calls; then it does not build, or answers with an error.

`python -m pulsarium.conformance.clients java go` builds adapters. Later runs of these need no network.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_ADAPTERS: Final = Path(__file__).parent / "adapters"
_CHECKOUT: Final = Path(__file__).resolve().parents[1]


class NotBuilt(Exception):
    """A client cannot run here: a tool is missing, or its release cannot be fetched or built."""


@dataclass(frozen=True)
class Kind:
    """A client of the kit.

    release: what runs without a version. modules: what its adapter imports, when that is a program in Python. tools:
    commands that build it, and run it. build: function that builds a release in a folder. runs: command, in which
    {built} is this folder.
    """

    title: str
    release: str
    runs: Sequence[str]
    modules: Sequence[str] = ()
    build_tools: Sequence[str] = ()
    run_tools: Sequence[str] = ()
    build: Callable[[Release], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    has_versions: bool = True


@dataclass(frozen=True)
class Release:
    """A client in one version, by its name: `java`, or `java@2.11.4`."""

    name: str

    def __post_init__(self) -> None:
        """Raise `ValueError` for a client that the kit does not know, or a version that it cannot fetch."""
        if self.client not in CLIENTS:
            raise ValueError(f"no client {self.client}: the kit knows {', '.join(CLIENTS)}")
        if self.version and not self.kind.has_versions:
            raise ValueError(f"{self.client} has no other versions: leave @{self.version} away")
        if self.version and not re.fullmatch(r"[\w.+-]+", self.version):
            raise ValueError(f"{self.name}: a version has digits, letters, dots and hyphens")

    @property
    def client(self) -> str:
        return self.name.partition("@")[0]

    @property
    def version(self) -> str:
        """Return the version, or "" for that of the package."""
        return self.name.partition("@")[2]

    @property
    def kind(self) -> Kind:
        return CLIENTS[self.client]

    @property
    def title(self) -> str:
        return f"{self.kind.title} {self.version or self.kind.release}".strip()

    @property
    def sources(self) -> Path:
        return _ADAPTERS / self.client

    @property
    def built(self) -> Path:
        return _work_folder() / self.name

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the environment of the command."""
        own = {name: word.replace("{built}", str(self.built)) for name, word in self.kind.environment.items()}
        if self.client == "python" and self.version:
            own["PYTHONPATH"] = str(self.built / "lib")
        return own

    @property
    def command(self) -> list[str]:
        return [word.replace("{built}", str(self.built)) for word in self.kind.runs]

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the sources, the version and the command, which needs what the build leaves."""
        digest = hashlib.sha256(repr((self.version, self.kind.runs)).encode())
        for path in sorted(each for each in self.sources.rglob("*") if each.is_file()):
            digest.update(path.relative_to(self.sources).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()

    @property
    def is_built(self) -> bool:
        stamp = self.built / "stamp"
        return self._builds is None or (stamp.exists() and stamp.read_text() == self.fingerprint)

    @property
    def _builds(self) -> Callable[[Release], None] | None:
        return _python if self.client == "python" and self.version else self.kind.build

    def prepare(self) -> None:
        """Fetch and build the client unless that was done before. Raise `NotBuilt`."""
        kind = self.kind
        absent = [each for each in kind.modules if find_spec(each) is None and not self.version]
        if absent:
            from pulsarium.proto.installing import remedy  # imported only when something is missing

            raise NotBuilt(f"{self.name} needs the Python modules {', '.join(absent)}: {remedy('conformance')}")
        tools = [*kind.run_tools, *(() if self.is_built else kind.build_tools)]
        if absent := [each for each in tools if shutil.which(each) is None]:
            raise NotBuilt(f"{self.name} needs {', '.join(absent)}, not found on the PATH")
        if self.is_built:
            return
        assert self._builds is not None
        shutil.rmtree(self.built, ignore_errors=True)
        self.built.mkdir(parents=True)
        fingerprint = self.fingerprint  # before the build, during which the sources may change
        self._builds(self)
        (self.built / "stamp").write_text(fingerprint)


def _work_folder() -> Path:
    """Return the folder for builds: build/ of a checkout, otherwise the user's cache."""
    if (_CHECKOUT / "pyproject.toml").exists():
        return _CHECKOUT / "build" / "conformance"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "pulsarium" / "conformance"


def _copied(release: Release) -> Path:
    """Copy the sources, so that the folder of an installed package does not change."""
    source = release.built / "source"
    shutil.copytree(release.sources, source, ignore=shutil.ignore_patterns("target", "node_modules"))
    return source


def _python(release: Release) -> None:
    wanted = [f"pulsar-client=={release.version}", "fastavro"]
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    installer = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    _run([*installer, "--quiet", "--target", str(release.built / "lib"), *wanted], release.built)


def _java(release: Release) -> None:
    """Compile the adapter with the release of the package, and take the libraries of the asked one."""
    source = _copied(release)
    _run(["mvn", "-B", "-q", "compile"], source)
    (source / "target" / "classes").rename(release.built / "classes")
    copied = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={release.built}/lib"]
    asked = [f"-Dpulsar.version={release.version}"] if release.version else []
    _run(["mvn", "-B", "-q", *copied, *asked], source)


def _go(release: Release) -> None:
    source, module = _copied(release), "github.com/apache/pulsar-client-go"
    if release.version:
        _run(["go", "get", f"{module}@v{release.version}"], source)
        _run(["go", "mod", "tidy"], source)
    # Without cgo the client uses a Zstandard in Go, so that no C compiler is needed.
    _run(["go", "build", "-mod=readonly", "-o", str(release.built / "adapter"), "."], source, CGO_ENABLED="0")


def _rust(release: Release) -> None:
    """Build the adapter. That needs protoc, which Python's grpcio-tools has where the system has none."""
    source, environment = _copied(release), dict[str, str]()
    target = source / os.environ.get("CARGO_TARGET_DIR", "target")
    if not (os.environ.get("PROTOC") or shutil.which("protoc")):
        if find_spec("grpc_tools") is None:
            raise NotBuilt("rust needs protoc: install it, or the Python package grpcio-tools")
        wrapper = release.built / "protoc"
        wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m grpc_tools.protoc "$@"\n')
        wrapper.chmod(0o755)
        environment["PROTOC"] = str(wrapper)
    if release.version:
        manifest = source / "Cargo.toml"
        text, found = re.subn(
            r'(?m)^(pulsar = (?:\{ version = )?")[^"]+"', rf'\g<1>={release.version}"', manifest.read_text()
        )
        assert found == 1
        manifest.write_text(text)
        _run(["cargo", "update", "--quiet", "pulsar"], source)
    _run(["cargo", "build", "--locked", "--quiet", "--target-dir", str(target)], source, **environment)
    shutil.copy(target / "debug" / "adapter", release.built)


def _node(release: Release) -> None:
    source = _copied(release)
    if release.version:
        (package,) = json.loads((source / "package.json").read_text())["dependencies"]
        _run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", f"{package}@{release.version}"], source)
    else:
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], source)


def _run(command: Sequence[str], folder: Path, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise NotBuilt(f"{' '.join(map(str, command[:3]))} failed: {done.stdout.strip()[-1500:]}")


def _module(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", f"pulsarium.conformance.adapters.{name}", *arguments)


_JAVA: Final = (
    *("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    # These classes log the whole configuration of each producer and consumer.
    "-Dorg.slf4j.simpleLogger.log.org.apache.pulsar.client.impl.ProducerStatsRecorderImpl=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.pulsar.client.impl.ConsumerStatsRecorderImpl=warn",
    *("-cp", "{built}/classes:{built}/lib/*"),
)
_OURS: Final = ("anyio", "cryptography")


def _jvm(title: str, release: str) -> Kind:
    runs = (*_JAVA, "pulsarium.Adapter")
    return Kind(title, release, runs, build_tools=("javac", "mvn"), run_tools=("java",), build=_java)


def _npm(title: str, release: str, main: str) -> Kind:
    runs = ("node", f"{{built}}/source/{main}")
    return Kind(title, release, runs, build_tools=("npm",), run_tools=("node",), build=_node)


CLIENTS: Final[Mapping[str, Kind]] = {
    "ours": Kind("Pulsarium's own", "", _module("ours"), _OURS, has_versions=False),
    "ours-asyncio": Kind("Pulsarium's own on asyncio", "", _module("ours", "asyncio"), _OURS, has_versions=False),
    "python": Kind("Python (C++ core)", "3.13.0", _module("python"), ("pulsar", "fastavro")),
    "java": _jvm("Java", "4.2.4"),
    "java-v5": _jvm("Java V5", "5.0.1"),
    "go": Kind("Go", "0.19.0", ("{built}/adapter",), build_tools=("go",), build=_go),
    "rust": Kind(
        "Rust",
        "6.9.1",
        ("{built}/adapter",),
        build_tools=("cargo", "cc"),
        build=_rust,
        environment={"RUST_BACKTRACE": "1"},
    ),
    "websocket": Kind(
        "websocket-client", "1.9.2", _module("websocket"), ("websocket", "cryptography"), has_versions=False
    ),
    "node": _npm("ws (Node.js)", "8.18.3", "src/main.js"),
    "flex": _npm("pulsar-flex (Node.js)", "1.1.1", "adapter.mjs"),
}
"""The clients by name."""


def main(names: Sequence[str]) -> None:
    """Build clients."""
    for each in names:
        try:
            Release(each).prepare()
        except (NotBuilt, ValueError) as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
