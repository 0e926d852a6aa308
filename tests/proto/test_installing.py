"""The remedy for a missing extra works in the installation that prints it."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from pulsarium.proto import installing
from pulsarium.proto.errors import MissingExtra
from pulsarium.proto.installing import libraries, remedy


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an environment without pip, of a package that comes from a checkout, the one of this process."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(installing, "find_spec", lambda name: None)
    monkeypatch.setattr(installing, "_source", lambda: "/checkout")
    return tmp_path


def test_the_remedy_is_pip_where_nothing_says_otherwise(prefix: Path) -> None:
    assert remedy("client") == 'install it with: pip install "pulsarium[client]"'
    assert str(MissingExtra("x", "auth", "jwt")) == 'x needs jwt; install it with: pip install "pulsarium[auth]"'


def test_the_remedy_of_pipx_injects_what_the_extra_names_and_is_absent(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (prefix / "pipx_metadata.json").touch()
    installed = metadata.version
    absent = ("anyio", "httpx")

    def version(name: str) -> str:
        if name in absent:
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "version", version)
    assert remedy("client") == "install it with: pipx inject pulsarium 'anyio>=4.4' 'httpx>=0.28'"


def test_the_remedy_of_a_tool_of_uv_installs_the_tool_again(prefix: Path) -> None:
    (prefix / "uv-receipt.toml").touch()
    assert remedy("client") == 'install it with: uv tool install "/checkout[client]"'


def test_the_remedy_of_uvx_runs_the_command_with_the_extra(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(prefix / "archive-v0" / "Kx9"))
    assert remedy("client") == 'install it with: uvx --from "/checkout[client]" pulsarium'


def test_the_remedy_of_an_environment_of_uv_is_uv_s_pip_unless_pip_is_there(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (prefix / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.9.1\n")
    assert remedy("client") == 'install it with: uv pip install "/checkout[client]"'
    monkeypatch.setattr(installing, "find_spec", lambda name: name)
    assert remedy("client") == 'install it with: pip install "pulsarium[client]"'


def test_the_image_sends_to_an_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(installing.IMAGE))
    assert remedy("spark").startswith("the container image does not have it; use an installation with: pip install ")


def test_an_extra_that_names_others_has_their_libraries() -> None:
    names = set(libraries("conformance"))
    assert {*libraries("auth"), *libraries("avro"), *libraries("client")} < names
    assert not any(name.startswith("pulsarium") for name in names)
