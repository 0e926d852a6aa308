"""Compose files: the project's own, with a volume, and the forms that other projects publish."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.containers.conftest import Container
from tests.containers.project import Project

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

FILE = Path(__file__).parents[2] / "compose.yaml"
FORMS = Path(__file__).parent / "compose"


class Way(NamedTuple):
    """The service whose pulsar-client sends a message, the one whose pulsar-client receives it, and the topic."""

    sender: str
    receiver: str
    topic: str = "orders"


WAYS: Final = {
    "background": Way("standalone", "standalone"),
    "brokers": Way("broker-1", "broker-1"),
    "cluster": Way("proxy", "proxy"),
    "documentation": Way("broker", "broker"),
    "environment": Way("pulsar", "pulsar"),
    "init": Way("pulsar", "pulsar", "shop/orders/placed"),
    "listeners": Way("pulsar", "application"),
    "settings": Way("pulsar", "pulsar"),
    "tls": Way("pulsar", "pulsar"),
    "token": Way("pulsar", "pulsar"),
    "volumes": Way("pulsar", "pulsar"),
    "websocket": Way("pulsar", "pulsar"),
    "without-workers": Way("broker", "broker"),
}


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, container_cli: str, image: str) -> Iterator[Project]:
    """Yield the project of a compose file, started and healthy. Its tests follow each other."""
    with Project(container_cli, image, request.param) as project:
        project.up()
        yield project


def of_form(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("running", [FORMS / f"{name}.yaml"], indirect=True, ids=[name])


def send(container: Container, topic: str, message: str) -> None:
    container.exec("bin/pulsar-client", "produce", topic, "--messages", message)


def receive(container: Container, topic: str) -> str:
    return container.exec("bin/pulsar-client", "consume", topic, "-s", "s", "-p", "Earliest", "-n", "1")


@pytest.mark.parametrize("running", [FILE], indirect=True, ids=["own"])
def test_the_broker_becomes_healthy_and_keeps_messages(running: Project) -> None:
    send(running.container("pulsar"), "orders", "kept")
    running.down()
    running.up()
    assert "kept" in receive(running.container("pulsar"), "orders")


@pytest.mark.parametrize("running", sorted(FORMS.glob("*.yaml")), indirect=True, ids=lambda file: file.stem)
def test_a_compose_file_passes_its_health_checks_and_exchanges_messages(running: Project) -> None:
    way = WAYS[running.file.stem]
    send(running.container(way.sender), way.topic, "a message")
    assert "a message" in receive(running.container(way.receiver), way.topic)


@of_form("cluster")
def test_a_cluster_of_several_containers_knows_its_parts(running: Project) -> None:
    broker, bookie = running.container("broker"), running.container("bookie")
    assert '"serviceUrl" : "http://broker:8080"' in broker.exec("bin/pulsar-admin", "clusters", "get", "c1")
    assert "BookieID:bookie:3181" in bookie.exec("bin/bookkeeper", "shell", "listbookies", "-rw")


@of_form("brokers")
def test_the_second_broker_of_a_compose_file_is_refused_in_a_line(running: Project) -> None:
    second = running.container("broker-2")
    second.wait_for("the end", lambda: second.inspect("{{.State.Status}}") == "exited")
    assert second.inspect("{{.State.ExitCode}}") == "1"
    assert second.log.count("two containers share no messages") == 1
