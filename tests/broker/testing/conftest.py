"""A broker in a thread, and the official client, which is what most tests of users have."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pulsar
import pytest

from pulsarium.broker.testing import PulsarBroker, running


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
    """Ctrl-C is heeded, also by tests that a shell runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def client_of(broker: PulsarBroker) -> Any:
    """One that says nothing, and closes quickly."""
    return pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
