"""Create the contents of a seed file, where they do not exist yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.state.description import Description, SeedError, SeedMessage, SeedTopic, read
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish, Unwatched
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net.slices import Slice
from pulsarium.proto.entry import build
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

PRODUCER: Final = "seed"

__all__ = ["SeedError", "Seeding", "read"]


class Seeding:
    """Create the contents of one seed. Whatever exists stays unchanged, and an existing topic receives no messages.

    Policies of namespaces are the exception: each run sets them to those of the file.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.made = {"tenants": 0, "namespaces": 0, "topics": 0, "subscriptions": 0, "messages": 0}
        self._cluster = cluster
        self._metadata = cluster.metadata
        self._topics = cluster.topics
        self._slice = Slice()

    def check(self, description: Description) -> None:
        """Raise `SeedError` for a tenant or a namespace that neither the file nor the cluster has."""
        spaces = {*self._metadata.namespaces, *description.namespaces}
        tenants = {*self._metadata.tenants, *description.tenants}
        for name in description.namespaces:
            if name.partition("/")[0] not in tenants:
                raise SeedError(f"namespace {name}: its tenant does not exist; describe it under tenants")
        for topic in description.topics:
            if str(topic.name.namespace_name) not in spaces:
                raise SeedError(f"topic {topic.name}: its namespace does not exist; describe it under namespaces")
            there = self._metadata.partitions_of(topic.name)
            exists = there > 0 or self._topics.exists(topic.name)
            if exists and there != topic.partitions:
                raise SeedError(f"topic {topic.name}: the topic exists with {there} partitions, not {topic.partitions}")

    async def make(self, description: Description) -> None:
        """Create everything that the file describes. Other tasks run between two topics or messages."""
        for tenant, info in description.tenants.items():
            if tenant not in self._metadata.tenants:
                self._metadata.put_tenant(tenant, {"allowedClusters": [self._metadata.cluster], **info})
                self.made["tenants"] += 1
        for name, policies in description.namespaces.items():
            before = self._metadata.namespaces.get(name)
            if before is None:
                before = {"replication_clusters": [self._metadata.cluster]}
                self.made["namespaces"] += 1
            self._metadata.put_namespace(name, {**before, **policies})
        for topic in description.topics:
            with _named(topic):
                await self._topic(topic)
            await self._slice.pause()

    async def _topic(self, topic: SeedTopic) -> None:
        name, count = topic.name, topic.partitions
        is_new = not (self._topics.exists(name) or self._metadata.partitions_of(name))
        if is_new:
            self.made["topics"] += 1
            if count:
                self._topics.create_partitions(name, count, dict(topic.properties) or None)
        loaded = self._parts(topic)
        if is_new and topic.properties and not count:
            loaded[0].ledger.set_properties(dict(topic.properties))
        version = b""
        if topic.schema is not None:
            version = self._cluster.schemas.get_or_create(name, topic.schema, self._cluster.clock.now_ms())
        self._subscribe(topic, earliest=True)  # before the messages, which would be deleted without a subscription
        if is_new:
            for number, message in enumerate(topic.messages):
                part = name.partition(message.partition) if count else name
                self._publish(self._loaded(part), number, message, version)
                await self._slice.pause()

    def subscribe_at_the_end(self, description: Description) -> None:
        """Create the subscriptions that begin with the next message, after all messages are committed."""
        for topic in description.topics:
            with _named(topic):
                self._subscribe(topic, earliest=False)

    def _parts(self, topic: SeedTopic) -> list[PersistentTopic]:
        names = [topic.name.partition(index) for index in range(topic.partitions)] or [topic.name]
        return [self._loaded(name) for name in names]

    def _loaded(self, name: TopicName) -> PersistentTopic:
        self._topics.create(name)
        return self._topics.find_persistent(name)

    def _subscribe(self, topic: SeedTopic, *, earliest: bool) -> None:
        parts = self._parts(topic)
        for name in [each for each, first in topic.subscriptions.items() if first is earliest]:
            new = [part for part in parts if name not in part.subscriptions]
            self.made["subscriptions"] += bool(new)
            for part in new:
                part.subscribe(name, earliest=earliest)

    def _publish(self, topic: PersistentTopic, number: int, message: SeedMessage, version: bytes) -> None:
        now = self._cluster.clock.now_ms()
        metadata = pb.MessageMetadata(producer_name=PRODUCER, sequence_id=number, publish_time=now)
        if message.key is not None:
            metadata.partition_key = message.key
        if message.event_time is not None:
            metadata.event_time = message.event_time
        if message.deliver_after_ms is not None:
            metadata.deliver_at_time = now + message.deliver_after_ms
        if message.deliver_at is not None:
            metadata.deliver_at_time = message.deliver_at
        if version:
            metadata.schema_version = version
        for key, value in message.properties.items():
            metadata.properties.add(key=key, value=value)
        entry = build(metadata, message.payload)
        topic.messages_in += 1
        topic.bytes_in += len(entry)
        topic.append(PendingPublish(Unwatched(), entry, number, number))
        self.made["messages"] += 1


@contextmanager
def _named(topic: SeedTopic) -> Iterator[None]:
    """Raise `SeedError` for errors of the broker, such as too many subscriptions. Earlier topics stay."""
    try:
        yield
    except BrokerServiceError as error:
        raise SeedError(f"topic {topic.name}: {error}") from None
