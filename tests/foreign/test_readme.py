"""Run the programs of the README and of docs/ as they stand, with only the broker's port replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from .broker_process import Address
from .conftest import Launch
from .toolchains import GO, JAVA, require

ROOT = Path(__file__).parents[2]
SECONDS = 400  # the Go compiler is slow with an empty cache on a busy machine


@pytest.fixture
def program(broker: Address, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a copy of an example that connects to the tests' broker."""
    source = ROOT / str(request.param)
    copy = tmp_path / source.name
    text = source.read_text()
    assert "pulsar://localhost:6650" in text
    copy.write_text(text.replace("pulsar://localhost:6650", broker.service_url))
    return copy


def output(
    command: list[str | Path], folder: Path | None = None, environment: Mapping[str, str] = MappingProxyType({})
) -> str:
    env = {**os.environ, **environment}
    run = subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert run.returncode == 0, f"{command}: {run.returncode}\n{run.stdout}\n{run.stderr}"
    return run.stdout


@pytest.mark.parametrize("program", ["examples/python/hello.py"], indirect=True)
def test_the_example_in_python_runs(program: Path) -> None:
    assert "Hello from Python" in output([sys.executable, "-P", program])


@pytest.mark.parametrize("program", ["examples/python/async_client.py"], indirect=True)
def test_the_async_client(program: Path) -> None:
    assert "Hello from an async client" in output([sys.executable, "-P", program])


@pytest.mark.parametrize("program", ["examples/python/typed_values.py"], indirect=True)
def test_the_example_of_typed_values(program: Path) -> None:
    assert output([sys.executable, "-P", program]) == "5 for Ada, with care\n"


@pytest.mark.parametrize("program", ["examples/python/scalable.py"], indirect=True)
def test_the_example_of_a_scalable_topic(program: Path) -> None:
    assert output([sys.executable, "-P", program]) == "order-1 created\norder-1 paid\norder-1 shipped\n"


def test_the_transaction_example_commits(launch: Launch, tmp_path: Path) -> None:
    """The program prints the transaction's id, which is known only on a new broker."""
    broker = launch().address
    text = (ROOT / "examples/python/transactions.py").read_text()
    program = tmp_path / "transactions.py"
    program.write_text(text.replace("pulsar://localhost:6650", broker.service_url))
    assert output([sys.executable, "-P", program]) == "COMMITTED (0,0)\n"


@pytest.mark.parametrize("program", ["examples/java/Hello.java"], indirect=True)
def test_the_example_in_java_runs(program: Path) -> None:
    classpath = require(JAVA)
    folder = classpath.parent
    assert "Hello from Java" in output(["java", "-cp", classpath.read_text().strip(), program], folder)


@pytest.mark.timeout(SECONDS + 10)
@pytest.mark.parametrize("program", ["examples/go/hello.go"], indirect=True)
def test_the_example_in_go_runs(program: Path) -> None:
    require(GO)
    assert "Hello from Go" in output(["go", "run", program], GO.folder)
