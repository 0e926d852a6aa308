"""Helpers for tests of periodic checks: policies, and entries with a publish time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from tests.broker.wire import Bed, plain, serving

NAMESPACE = "public/default"


def set_policies(broker: Broker, **policies: Any) -> None:
    """Set policies of the namespace that the tests use."""
    broker.metadata.put_namespace(NAMESPACE, {**broker.metadata.namespaces[NAMESPACE], **policies})


def fresh(broker: Broker, payload: bytes, age: float = 0, **metadata: Any) -> bytes:
    """Return an entry that was published `age` seconds ago."""
    return plain(payload, publish_time=broker.clock.now_ms() - int(age * 1000), **metadata)


@asynccontextmanager
async def patient(**config: Any) -> AsyncIterator[Bed]:
    """Serve a broker without keep-alive, so that connections may be silent while its checks run."""
    async with serving(Config(keepAliveIntervalSeconds=0, **config)) as bed:
        yield bed
