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
    """Opens clients that the test need not close."""
    clients: list[Any] = []

    def open_client() -> Any:
        clients.append(pulsar.Client(broker.service_url, operation_timeout_seconds=30))
        return clients[-1]

    yield open_client
    for client in clients:
        # A test may have closed it, or broken its connection.
        with contextlib.suppress(pulsar.AlreadyClosed):
            client.close()


@pytest.fixture
def client(connect: Connect) -> Any:
    return connect()
