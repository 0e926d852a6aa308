"""Compose files: the project's own, with a volume and a health check, and a cluster of several containers."""

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
CLUSTER = Path(__file__).parent / "cluster.yaml"


class Project:
    """The services of a compose file, on free ports, under a name of their own."""

    def __init__(self, cli: str, image: str, file: Path = FILE) -> None:
        self.cli = cli
        self._file = file
        self.name = f"pulsarium{uuid.uuid4().hex[:12]}"
        self._environment = {**os.environ, "PULSARIUM_IMAGE": image, "PULSAR_PORT": "0", "PULSAR_HTTP_PORT": "0"}

    def compose(self, *arguments: str) -> str:
        command = [str(ENGINE), "compose", "--project-name", self.name, "--file", str(self._file), *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def broker(self) -> Container:
        return self.container("pulsar")

    def container(self, service: str) -> Container:
        return Container(self.cli, self.compose("ps", "--all", "--quiet", service).strip())


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


@pytest.fixture
def cluster(container_cli: str, image: str) -> Iterator[Project]:
    project = Project(container_cli, image, CLUSTER)
    yield project
    project.compose("down", "--volumes")


def test_a_cluster_of_several_containers_exchanges_messages(cluster: Project) -> None:
    cluster.compose("up", "--detach")
    broker, proxy = cluster.container("broker"), cluster.container("proxy")
    broker.wait_for("the broker", lambda: "messaging service is ready" in broker.log)
    proxy.wait_for("the proxy", lambda: "the service is ready" in proxy.log)
    assert '"serviceUrl" : "http://broker:8080"' in broker.exec("bin/pulsar-admin", "clusters", "get", "c1")
    assert cluster.container("zookeeper").exec("bin/pulsar-zookeeper-ruok.sh") == "imok\n"
    assert "BookieID:bookie:3181" in cluster.container("bookie").exec("bin/bookkeeper", "shell", "listbookies", "-rw")
    proxy.exec("bin/pulsar-client", "produce", "orders", "--messages", "through")
    read = ("bin/pulsar-client", "consume", "orders", "-s", "s", "-p", "Earliest", "-n", "1")
    assert "through" in proxy.exec(*read)
    for service in ("zookeeper", "bookie", "broker", "proxy"):
        cluster.container(service).exec("healthcheck")


def _become_healthy(broker: Container) -> None:
    def healthy() -> bool:
        if broker.cli == "podman":  # its timers are systemd's, which may not be there
            subprocess.run([broker.cli, "healthcheck", "run", broker.name], capture_output=True, check=False)
        return broker.inspect("{{.State.Health.Status}}") == "healthy"

    broker.wait_for("health", healthy)
