"""Builds of scenario programs: their sources, and when they are built anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.matrix import clients
from pulsarium.matrix.build import build
from pulsarium.matrix.clients import CLIENTS, Client


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(clients, "FOLDER", tmp_path / "sources")
    monkeypatch.setattr(clients, "work_folder", lambda: tmp_path / "built")
    found = Client("go", "Go", build_tools=("no-such-tool",), run_tools=("sh",), sources=("*.go",))
    found.folder.mkdir(parents=True)
    found.built.mkdir(parents=True)
    (found.folder / "main.go").write_text("1")
    return found


def test_a_change_of_the_sources_asks_for_a_new_build(client: Client) -> None:
    assert client.missing() == "not on PATH: no-such-tool"
    client.stamp.write_text(client.fingerprint())
    assert client.missing() == ""
    build(client)  # a build that did anything would miss its tool
    (client.folder / "other.go").write_text("1")
    assert client.missing() == "not on PATH: no-such-tool"


def test_every_program_says_how_it_is_run() -> None:
    for client in CLIENTS.values():
        assert client.command()
        assert client.module or list(client.folder.glob("*")), client.name


def test_a_build_that_fails_says_what_its_tool_said(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(client.folder))
    tool = client.folder / "go"
    tool.write_text("#!/bin/sh\necho it does not compile\nexit 1\n")
    tool.chmod(0o755)
    with pytest.raises(OSError, match="go build failed: it does not compile"):
        build(client)
    assert not client.is_built


def test_installed_programs_are_built_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_CHECKOUT", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert clients.work_folder() == tmp_path / "cache" / "pulsarium" / "matrix"
