"""Run the programs and commands of the README and of docs/ as they stand, with only the broker's port replaced."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType

import pytest

from .broker_process import Address
from .conftest import Launch
from .toolchains import GO, JAVA, require

ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(r"^ *<!-- example: (?P<file>\S+) -->\n *```\w+\n(?P<code>.*?)^ *```", re.M | re.S)
SECONDS = 400  # the Go compiler is slow with an empty cache on a busy machine


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "helpers").glob("*/README.md"))]


def test_pages_show_the_programs_of_examples() -> None:
    """A program that a page shows is also a file of examples/ or helpers/, with the same text, which a test runs."""
    shown = [(found["file"], dedent(found["code"])) for page in PAGES for found in EXAMPLE.finditer(page.read_text())]
    assert sorted({file for file, _ in shown}) == [
        "examples/go/hello.go",
        "examples/java/Hello.java",
        "examples/node/websocket_hello.js",
        "examples/python/async_client.py",
        "examples/python/hello.py",
        "examples/python/outgrow.py",
        "examples/python/scalable.py",
        "examples/python/spark_connect.py",
        "examples/python/spark_from_connector.py",
        "examples/python/spark_read.py",
        "examples/python/spark_read_stream.py",
        "examples/python/spark_write.py",
        "examples/python/spark_write_stream.py",
        "examples/python/test_payments.py",
        "examples/python/test_scaling.py",
        "examples/python/transactions.py",
        "examples/python/typed_values.py",
        "examples/python/websocket_hello.py",
        "helpers/go/readme_test.go",
        "helpers/junit/src/test/java/example/OrdersTest.java",
        "helpers/npm/test/readme.jest.js",
        "helpers/rust/tests/readme.rs",
    ]
    for file, code in shown:
        assert (ROOT / file).read_text() == code


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


BLOCK = re.compile(r"^```bash\n(.*?)^```", re.M | re.S)
COMMAND = re.compile(r"^(?:pulsarium (?:admin|client|fault|clock|why|mask|state|capture|lint)|echo) .*$", re.M)


@pytest.mark.parametrize(
    "page", ["README.md", "docs/tutorial.md", "docs/administer.md", "docs/operate.md", "docs/scalable-topics.md"]
)
def test_commands_of_a_page_succeed_in_its_order(page: str, launch: Launch, tmp_path: Path) -> None:
    """The commands take the broker's URLs from the environment."""
    broker = launch().address
    where = {"PULSARIUM_ADMIN_URL": broker.admin_url, "PULSARIUM_SERVICE_URL": broker.service_url}
    lines = [line for block in BLOCK.findall((ROOT / page).read_text()) for line in COMMAND.findall(block)]
    assert lines
    pulsarium = shlex.join([sys.executable, "-P", "-m", "pulsarium"])
    for line in lines:
        output(["bash", "-c", re.sub("^pulsarium", lambda _: pulsarium, line)], tmp_path, where)


@pytest.mark.parametrize("program", ["examples/python/hello.py"], indirect=True)
def test_the_example_in_python_runs(program: Path) -> None:
    assert "Hello from Python" in output([sys.executable, "-P", program])


@pytest.mark.parametrize("program", ["examples/python/async_client.py"], indirect=True)
def test_the_async_client(program: Path) -> None:
    assert "Hello from an async client" in output([sys.executable, "-P", program])


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
