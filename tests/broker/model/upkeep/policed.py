"""Helpers for tests of periodic checks: policies, and entries with a publish time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, plain, serving

NAMESPACE = "public/default"


def set_policies(broker: Broker, **policies: Any) -> None:
    """Set policies of the namespace that the tests use."""
    broker.metadata.put_namespace(NAMESPACE, {**broker.metadata.namespaces[NAMESPACE], **policies})


def fresh(broker: Broker, payload: bytes, age: float = 0, **metadata: Any) -> bytes:
    """Return an entry that was published `age` seconds ago."""
    return plain(payload, publish_time=broker.clock.now_ms() - int(age * 1000), **metadata)


def topic_of(broker: Broker, name: str = TOPIC) -> PersistentTopic:
    topic = broker.topics.find(TopicName.parse(name))
    assert isinstance(topic, PersistentTopic)
    return topic


def subscription_of(broker: Broker, name: str = "sub") -> PersistentSubscription:
    return topic_of(broker).subscriptions[name]


@asynccontextmanager
async def patient(**config: Any) -> AsyncIterator[Bed]:
    """Serve a broker without keep-alive, so that connections may be silent while its checks run."""
    async with serving(Config(keepAliveIntervalSeconds=0, **config)) as bed:
        yield bed
