"""The official client, connected to the shared broker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pulsar
import pytest

from ..broker_process import Address

Connect: TypeAlias = Callable[[], Any]


@pytest.fixture
def connect(broker: Address) -> Iterator[Connect]:
    """Return a function that opens clients, and close the clients after the test."""
    clients: list[Any] = []

    def open_client() -> Any:
        clients.append(pulsar.Client(broker.service_url, operation_timeout_seconds=30))
        return clients[-1]

    yield open_client
    for client in clients:
        # A test may have closed the client, or broken its connection.
        with contextlib.suppress(pulsar.AlreadyClosed):
            client.close()


@pytest.fixture
def client(connect: Connect) -> Any:
    return connect()
