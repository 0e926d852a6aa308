"""The file compose.yaml: a broker with a volume, and a health check that others can wait for."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.conftest import ENGINE, Container

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

FILE = Path(__file__).parents[2] / "compose.yaml"


class Project:
    """The services of compose.yaml, on free ports, under a name of their own."""

    def __init__(self, cli: str, image: str) -> None:
        self.cli = cli
        self.name = f"pulsarium{uuid.uuid4().hex[:12]}"
        self._environment = {**os.environ, "PULSARIUM_IMAGE": image, "PULSAR_PORT": "0", "PULSAR_HTTP_PORT": "0"}

    def compose(self, *arguments: str) -> str:
        command = [str(ENGINE), "compose", "--project-name", self.name, "--file", str(FILE), *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def broker(self) -> Container:
        return Container(self.cli, self.compose("ps", "--quiet", "pulsar").strip())


@pytest.fixture
def project(container_cli: str, image: str) -> Iterator[Project]:
    project = Project(container_cli, image)
    yield project
    project.compose("down", "--volumes")


def test_the_broker_becomes_healthy_and_keeps_messages(project: Project) -> None:
    project.compose("up", "--detach", "--no-build")
    broker = project.broker
    _become_healthy(broker)
    broker.exec("bin/pulsar-client", "produce", "orders", "--messages", "kept")
    project.compose("down")
    project.compose("up", "--detach", "--no-build")
    broker = project.broker
    _become_healthy(broker)
    assert "kept" in broker.exec("bin/pulsar-client", "consume", "orders", "-s", "s", "-p", "Earliest", "-n", "1")


def _become_healthy(broker: Container) -> None:
    def healthy() -> bool:
        if broker.cli == "podman":  # its timers are systemd's, which may not be there
            subprocess.run([broker.cli, "healthcheck", "run", broker.name], capture_output=True, check=False)
        return broker.inspect("{{.State.Health.Status}}") == "healthy"

    broker.wait_for("health", healthy)
