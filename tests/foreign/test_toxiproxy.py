"""Toxiproxy's own clients in Java, Go and Python drive the control API."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

import pulsarium.broker
from pulsarium.broker.testing import PulsarBroker

from .toolchains import TOXIPROXY_GO, TOXIPROXY_JAVA, TOXIPROXY_PYTHON, java_command, require

STEPS = [
    "created",
    "echoed",
    "seven toxics",
    "reset",
    "cut",
    "restored",
    "limited",
    "disabled",
    "enabled",
    "deleted",
]


@pytest.fixture
def controlled() -> Iterator[PulsarBroker]:
    with pulsarium.broker.running(toxiproxy_port=0) as broker:
        yield broker


@pytest.fixture
def echo() -> Iterator[str]:
    """Start a server that sends each byte back, and yield its address."""

    class Echo(StreamRequestHandler):
        def handle(self) -> None:
            while data := self.request.recv(1 << 16):
                self.request.sendall(data)

    class Server(ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore connections that end early."""

    with Server(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def steps(*command: str, **environment: str) -> list[str]:
    """Run a program, and return the steps that it has done."""
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )
    assert run.returncode == 0, f"{run.stdout}{run.stderr}"
    return run.stdout.splitlines()


def port_of(broker: PulsarBroker) -> str:
    return str(broker.toxiproxy_url).rpartition(":")[2]


def test_the_java_client(controlled: PulsarBroker, echo: str) -> None:
    assert steps(*java_command(TOXIPROXY_JAVA, "pulsarium.toxiproxy.Main"), port_of(controlled), echo) == STEPS


def test_the_go_client(controlled: PulsarBroker, echo: str) -> None:
    assert steps(str(require(TOXIPROXY_GO)), f"127.0.0.1:{port_of(controlled)}", echo) == STEPS


def test_the_python_client(controlled: PulsarBroker, echo: str) -> None:
    library = require(TOXIPROXY_PYTHON)
    program = str(TOXIPROXY_PYTHON.folder / "main.py")
    assert steps(sys.executable, "-P", program, port_of(controlled), echo, PYTHONPATH=str(library)) == STEPS
