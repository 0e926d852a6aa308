"""Redirect clients of migrated clusters and namespaces to the new cluster (PIP-188)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pulsarium.broker.model.client import AssignedBroker
from pulsarium.broker.model.namespace.metadata import CLUSTERS, Metadata
from pulsarium.broker.model.topic.base import Topic
from pulsarium.proto.special_names import never_migrates
from pulsarium.proto.topic_name import TopicName

MIGRATION: Final = "migration"  # key of the migration in a cluster's records


class Migration:
    """Migration of topics to another cluster.

    A migrated topic takes no more messages, for good. Consumers are redirected once they have read everything. Topics
    learn of a migration when they are loaded, or with the periodic check (clusterMigrationCheckDurationSeconds).
    """

    def __init__(self, loaded: Mapping[str, Topic], metadata: Metadata) -> None:
        self._loaded = loaded
        self._metadata = metadata

    def url_of(self, name: TopicName) -> AssignedBroker | None:
        """Return where clients of a topic are redirected, or None if the topic has not migrated."""
        cluster: Mapping[str, Any] = self._metadata.records.get(CLUSTERS, self._metadata.cluster, MIGRATION) or {}
        namespace = self._metadata.namespaces.get(str(name.namespace_name), {})
        url = cluster.get("migratedClusterUrl")
        if not url or not (cluster.get("migrated") or namespace.get("migrated")) or never_migrates(name):
            return None
        return AssignedBroker(url.get("brokerServiceUrl") or "", url.get("brokerServiceUrlTls") or "", migrated=True)

    def check_all(self) -> Iterator[None]:
        """Check all loaded topics, one a step."""
        for topic in list(self._loaded.values()):
            if not topic.closed:
                self.check(topic)
            yield

    def check(self, topic: Topic) -> None:
        """Redirect clients of a migrated topic, once they have nothing left to do here."""
        topic.moved_to = self.url_of(topic.name)
        if topic.moved_to is not None:
            topic.send_away()

    def changed(self) -> None:
        """Update the topics that have migrated, after migration was turned on or off."""
        for topic in self._loaded.values():
            if topic.moved_to is not None:
                topic.moved_to = self.url_of(topic.name)
