"""The programs of the README, run as they stand there, with only the broker's port replaced."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .broker_process import Address
from .toolchains import GO, JAVA, require

ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(r"<!-- example: (?P<file>\S+) -->\n```\w+\n(?P<code>.*?)^```", re.M | re.S)
SECONDS = 120  # the Go compiler may have nothing cached


def examples() -> dict[str, str]:
    return {found["file"]: found["code"] for found in EXAMPLE.finditer((ROOT / "README.md").read_text())}


def test_the_readme_shows_the_examples() -> None:
    """Each program is in examples/ too, so that it can be run, and both are the same."""
    shown = examples()
    assert sorted(shown) == [
        "examples/go/hello.go",
        "examples/java/Hello.java",
        "examples/python/async_client.py",
        "examples/python/hello.py",
    ]
    for file, code in shown.items():
        assert (ROOT / file).read_text() == code


@pytest.fixture
def program(broker: Address, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of an example that goes to the tests' broker."""
    source = ROOT / str(request.param)
    copy = tmp_path / source.name
    text = source.read_text()
    assert "pulsar://localhost:6650" in text
    copy.write_text(text.replace("pulsar://localhost:6650", broker.service_url))
    return copy


def output(command: list[str | Path], folder: Path | None = None) -> str:
    run = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=SECONDS)
    return run.stdout


@pytest.mark.parametrize("program", ["examples/python/hello.py"], indirect=True)
def test_python(program: Path) -> None:
    assert "Hello from Python" in output([sys.executable, "-P", program])


@pytest.mark.parametrize("program", ["examples/python/async_client.py"], indirect=True)
def test_the_async_client(program: Path) -> None:
    assert "Hello from an async client" in output([sys.executable, "-P", program])


@pytest.mark.parametrize("program", ["examples/java/Hello.java"], indirect=True)
def test_java(program: Path) -> None:
    classpath = require(JAVA)
    folder = classpath.parent
    assert "Hello from Java" in output(["java", "-cp", classpath.read_text().strip(), program], folder)


@pytest.mark.parametrize("program", ["examples/go/hello.go"], indirect=True)
def test_go(program: Path) -> None:
    require(GO)
    assert "Hello from Go" in output(["go", "run", program], GO.folder)
