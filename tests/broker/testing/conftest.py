"""A broker in a thread, and the official Python client, as in most tests of users."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from typing import Any

import pulsar
import pytest

from pulsarium.broker.testing import PulsarBroker, running

# Plugins that users need not have are left out. They take seconds in a new folder.
OTHERS = ("cacheprovider", "trio", "anyio", "hypothesispytest", "randomly")
QUIET = ("-W", "error", *(f"-pno:{name}" for name in OTHERS))
PYTEST = (sys.executable, "-P", "-m", "pytest", *QUIET)
"""A pytest of its own, with the plugin."""


@pytest.fixture(scope="module")
def broker() -> Iterator[PulsarBroker]:
    with running() as broker:
        yield broker


@pytest.fixture
def client(broker: PulsarBroker) -> Iterator[Any]:
    client = client_of(broker)
    yield client
    client.close()


@pytest.fixture
def topic(broker: PulsarBroker, request: pytest.FixtureRequest) -> str:
    return f"persistent://{broker.create_namespace(request.node.name)}/topic"


@pytest.fixture
def heeded() -> Iterator[None]:
    """Set Python's handler of SIGINT, because a shell lets background jobs ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def client_of(broker: PulsarBroker) -> Any:
    """Return a client that logs only errors."""
    return pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
