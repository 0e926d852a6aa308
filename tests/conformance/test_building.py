"""Builds of adapters, by a stand-in for the builder."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.conformance import clients
from pulsarium.conformance.clients import Release

# Puts an adapter where Cargo would, and counts its builds.
CARGO = """#!/usr/bin/env bash
while [[ $1 != --target-dir ]]; do shift; done
mkdir -p "$2/debug"
echo built >>"$2/debug/adapter"
"""


@pytest.fixture
def rust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """Return a release whose folder is empty."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("cargo", "cc"):
        (tools / name).write_text(CARGO)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("PROTOC", "protoc")
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    monkeypatch.setattr(clients, "_work_folder", lambda: tmp_path / "builds")
    return Release("rust")


def test_an_adapter_in_rust_is_built_once(rust: Release) -> None:
    for _ in range(2):
        rust.prepare()
    (command,) = rust.command
    assert Path(command).read_text() == "built\n"


def test_an_adapter_in_rust_may_share_the_crates_of_other_programs(
    rust: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "shared"))
    rust.prepare()
    (command,) = rust.command
    assert Path(command).read_bytes() == (tmp_path / "shared" / "debug" / "adapter").read_bytes()
