"""WebSocket clients of other projects run the examples of docs/websocket.md unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from .broker_process import Address
from .toolchains import NODE, require

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 120
SAID = ["ok 5", "Hello World"]


def run(command: list[str], example: Path, broker: Address, folder: Path, **environment: str) -> list[str]:
    """Run an example on the tests' broker, and return the first words of its lines."""
    copy = folder / example.name
    text = example.read_text()
    assert "ws://localhost:8080" in text
    copy.write_text(text.replace("ws://localhost:8080", broker.admin_url.replace("http://", "ws://")))
    variables: Mapping[str, str] = {**os.environ, **environment}
    done = subprocess.run(
        [*command, str(copy)], env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return [line.partition(" {")[0] for line in done.stdout.splitlines()]


def test_the_python_client_publishes_and_consumes(broker: Address, tmp_path: Path) -> None:
    assert run([sys.executable, "-P"], EXAMPLES / "python" / "websocket_hello.py", broker, tmp_path) == SAID


@pytest.mark.foreign
def test_the_node_client_publishes_and_consumes(broker: Address, tmp_path: Path) -> None:
    modules = require(NODE).parent
    example = EXAMPLES / "node" / "websocket_hello.js"
    assert sorted(run(["node"], example, broker, tmp_path, NODE_PATH=str(modules))) == sorted(SAID)
