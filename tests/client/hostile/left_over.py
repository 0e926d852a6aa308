"""Find tasks, waiters, handlers and connections that a client must not leave behind."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from pulsarium.client.client import Client
from pulsarium.client.connection.connection import Connection


def connections_of(client: Client) -> list[Connection]:
    return list(client._core.brokers._pool._connections.values())


def tasks_of(client: Client) -> int:
    """Return how many tasks run for the client."""
    group: Any = client._core.brokers.task_group
    nursery = getattr(group, "_nursery", None)
    return len(group._tasks) if nursery is None else len(nursery.child_tasks)


async def nothing_left(client: Client) -> None:
    """Wait until everything that the application opened is closed. Idle connections may remain."""
    for _ in range(1000):
        if not _left(client):
            return
        await anyio.sleep(0.001)
    raise AssertionError(_left(client))


def _left(client: Client) -> str:
    pool = client._core.brokers._pool
    alive = [connection for connection in connections_of(client) if not connection.is_lost]
    if len(alive) < len(connections_of(client)):
        return "lost connections are kept"
    if len(pool._opening) > len(alive):
        return f"{len(pool._opening)} locks for {len(alive)} connections"
    if tasks_of(client) > len(alive):
        return f"{tasks_of(client)} tasks for {len(alive)} connections"
    for connection in alive:
        routes = connection._routes
        if routes.waiters or routes.consumers or routes.producers:
            return f"on {connection.address}: {routes.waiters} {routes.consumers} {routes.producers}"
    return ""


@contextmanager
def no_growth(limit: int = 5_000_000) -> Iterator[None]:
    """Fail if the block leaves `limit` bytes or more allocated."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < limit, f"{left} bytes are left"
