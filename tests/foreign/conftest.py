"""A broker that all tests of this folder share, and names that are unique to each test."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TypeAlias

import pulsar
import pytest

from yardsticks.servers import free_port

from .admin import Admin, AdminError
from .broker_process import ADDRESS, COMMAND, Address, BrokerProcess, given_address

HERE = Path(__file__).parent
SHARED_BROKER = pytest.StashKey[BrokerProcess]()
LOG_START = pytest.StashKey[int]()

Launch: TypeAlias = Callable[..., BrokerProcess]

TIMEOUT = 300.0
"""Limit in seconds of a test that has no other. A scenario of another program ends before, and its failure names it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.foreign)
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(TIMEOUT))


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Start the broker that all tests here share, or take the one that the environment names."""
    address = given_address()
    if address is not None:
        yield address
        return
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    request.config.stash[SHARED_BROKER] = process
    yield process.address
    assert process.stop() == 0


@pytest.fixture(scope="session")
def admin(broker: Address) -> Admin:
    return Admin(broker.admin_url)


@pytest.fixture(scope="session")
def namespace(admin: Admin) -> Iterator[str]:
    """Create a namespace that tests share when they only need topics of their own."""
    with _temporary_namespace(admin) as name:
        yield name


@pytest.fixture
def own_namespace(admin: Admin) -> Iterator[str]:
    """Create a namespace for one test that looks at all topics of a namespace."""
    with _temporary_namespace(admin) as name:
        yield name


@pytest.fixture
def topic(namespace: str) -> str:
    """Return a topic name that is unique to the test."""
    return f"persistent://{namespace}/{uuid.uuid4().hex[:12]}"


@pytest.fixture
def official(broker: Address) -> Iterator[pulsar.Client]:
    """Open the official Python client, and close it after the test."""
    client = pulsar.Client(
        broker.service_url, operation_timeout_seconds=30, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
    )
    yield client
    client.close()


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Return a function that starts brokers for a test that stops or kills them: `launch("--data", ..., port=...)`."""
    if given_address() is not None:
        pytest.skip(f"needs brokers of its own: {COMMAND} can start them, {ADDRESS} cannot")
    processes: list[BrokerProcess] = []

    def start(*options: str, port: int = 0, http_port: int = 0) -> BrokerProcess:
        if "--brokers" not in options:  # no other process gets these ports while the broker is stopped
            port, http_port = port or free_port(), http_port or free_port()
        processes.append(BrokerProcess(tmp_path / "broker", options, port, http_port))
        return processes[-1]

    yield start
    for process in processes:
        if process.running:
            process.stop()


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Return a directory for --data."""
    return str(tmp_path / "data")


@contextlib.contextmanager
def _temporary_namespace(admin: Admin) -> Iterator[str]:
    name = f"public/foreign-{uuid.uuid4().hex[:12]}"
    admin.create_namespace(name)
    yield name
    # A broker that the environment names keeps no topics of the tests. The broker may refuse while topics have clients.
    with contextlib.suppress(AdminError):
        admin.delete_namespace(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    process = item.config.stash.get(SHARED_BROKER, None)
    item.stash[LOG_START] = process.log.stat().st_size if process else 0
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the shared broker's log of the test to the report of a failure."""
    report = yield
    process = item.config.stash.get(SHARED_BROKER, None)
    if process and report.failed and LOG_START in item.stash:
        report.sections.append(("Broker log", process.tail(item.stash[LOG_START])))
    return report
