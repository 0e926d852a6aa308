"""Build the programs that need it: `python -m pulsarium.matrix.build java go`. Later runs need no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pulsarium.matrix.clients import CLIENTS, Client


def build(client: Client) -> None:
    """Build a client unless its sources are unchanged. Raise `OSError` with the tool's last lines."""
    if client.is_built:
        return
    client.built.mkdir(parents=True, exist_ok=True)
    client.stamp.unlink(missing_ok=True)
    fingerprint = client.fingerprint()  # of the sources before the build, because they may change during it
    {"java": _java, "go": _go, "rust": _rust, "node": _node}[client.name](client)
    client.stamp.write_text(fingerprint)


def _java(client: Client) -> None:
    """Build a copy, so that the folder of an installed package does not change."""
    source = client.built / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(client.folder, source)
    for old in ("classes", "lib"):
        shutil.rmtree(client.built / old, ignore_errors=True)
    copied = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={client.built}/lib"]
    _run(["mvn", "-B", "-q", *copied, "compile"], source)
    shutil.move(source / "target" / "classes", client.built / "classes")


def _go(client: Client) -> None:
    # Without cgo the client uses a Zstandard in Go, so that no C compiler is needed.
    command = ["go", "build", "-mod=readonly", "-o", str(client.built / "client"), "."]
    _run(command, client.folder, CGO_ENABLED="0")


def _rust(client: Client) -> None:
    """Build the program.

    The build needs protoc, which is taken from Python's grpcio-tools where the system has none.
    """
    environment = {"CARGO_TARGET_DIR": str(client.built / "target")}
    if not (os.environ.get("PROTOC") or shutil.which("protoc")):
        if find_spec("grpc_tools") is None:
            raise OSError("protoc is missing: install it, or the Python package grpcio-tools")
        wrapper = client.built / "protoc"
        wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m grpc_tools.protoc "$@"\n')
        wrapper.chmod(0o755)
        environment["PROTOC"] = str(wrapper)
    _run(["cargo", "build", "--locked", "--quiet"], client.folder, **environment)


def _node(client: Client) -> None:
    """Build a copy, beside which npm puts the packages of package-lock.json."""
    shutil.copytree(client.folder, client.built, dirs_exist_ok=True)
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], client.built)


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
        raise OSError(f"{' '.join(command[:2])} failed: {done.stdout.strip()[-1500:]}")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        try:
            build(CLIENTS[each])
        except OSError as error:
            sys.exit(str(error))
