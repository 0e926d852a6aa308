"""Checks of a stream that its topic deduplicates."""

from __future__ import annotations

import pytest

from pulsarium.pipeline.options import Connection, Options
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.sink.once import NoDeduplication, Unchecked, require_deduplication
from pulsarium.rest.policies import DEDUPLICATION
from tests.foreign.broker_process import Address


@pytest.fixture
def connection(broker: Address) -> Connection:
    return Connection(broker.service_url, broker.admin_url)


def test_the_namespaces_policy_and_the_topics(connection: Connection, topic: str) -> None:
    """The topic policy overrides the namespace policy, and applies to partitions. The topic need not exist yet."""
    namespace, local = f"public/{topic[-12:]}", topic.rpartition("/")[2]
    topic = f"persistent://{namespace}/{local}"
    with Pulsar(connection) as pulsar:
        admin = pulsar.client.admin
        pulsar.call(admin.namespaces.create_namespace, namespace)
        with pytest.raises(
            NoDeduplication, match=f"pulsarium admin namespaces set-deduplication --enable {namespace}\n"
        ):
            require_deduplication(connection, topic)
        pulsar.call(admin.namespace_policies[DEDUPLICATION].set, namespace, True)
        require_deduplication(connection, topic)
        require_deduplication.cache_clear()
        pulsar.call(admin.topics.create_partitioned_topic, topic, 2)
        require_deduplication(connection, f"{topic}-partition-1")
        pulsar.call(admin.topic_policies[DEDUPLICATION].set, topic, False)
        for each in (topic, f"{topic}-partition-0"):
            with pytest.raises(NoDeduplication):
                require_deduplication(connection, each)
        pulsar.call(admin.namespace_policies[DEDUPLICATION].set, namespace, False)
        pulsar.call(admin.topic_policies[DEDUPLICATION].set, topic, True)
        require_deduplication(connection, topic)


def test_deduplication_is_not_checked_without_an_admin_url(broker: Address, topic: str) -> None:
    with pytest.warns(Unchecked, match=r"admin\.url"):
        require_deduplication(Connection.of(Options({"service.url": broker.service_url})), topic)
    with pytest.warns(Unchecked, match="cannot find out"):
        require_deduplication(Connection(broker.service_url, "http://127.0.0.1:1"), topic)
