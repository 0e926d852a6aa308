"""Clusters and namespaces that have moved: their clients are sent to the new cluster (PIP-188)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pulsarium.broker.model.client import Assigned
from pulsarium.broker.model.namespace.metadata import CLUSTERS, Metadata
from pulsarium.broker.model.topic.base import Topic
from pulsarium.proto.topic_name import TopicName, is_system_topic

if TYPE_CHECKING:
    from pulsarium.broker.model.topic.topics import Topics

MIGRATION: Final = "migration"  # what is kept of a cluster


class Migration:
    """A topic that has moved takes no more messages, for good; who has read all of it is sent away too.

    Topics learn of it when they are loaded, others with the periodic check (clusterMigrationCheckDurationSeconds).
    """

    def __init__(self, topics: Topics, metadata: Metadata) -> None:
        self._topics = topics
        self._metadata = metadata

    def url_of(self, name: TopicName) -> Assigned | None:
        """Where clients of a topic are sent; None while it stays."""
        cluster: Mapping[str, Any] = self._metadata.records.get(CLUSTERS, self._metadata.cluster, MIGRATION) or {}
        namespace = self._metadata.namespaces.get(str(name.namespace_name), {})
        url = cluster.get("migratedClusterUrl")
        if not url or not (cluster.get("migrated") or namespace.get("migrated")) or is_system_topic(name):
            return None
        return Assigned(url.get("brokerServiceUrl") or "", url.get("brokerServiceUrlTls") or "", migrated=True)

    def check_all(self) -> Iterator[None]:
        """The periodic check, topic by topic."""
        for topic in list(self._topics.loaded.values()):
            if not topic.closed:
                self.check(topic)
            yield

    def check(self, topic: Topic) -> None:
        """Send away who has nothing left to do there, if it has moved."""
        topic.moved_to = self.url_of(topic.name)
        if topic.moved_to is not None:
            topic.send_away()

    def changed(self) -> None:
        """It was said that somebody moves, or does not: those that know they have moved hear of the latter."""
        for topic in self._topics.loaded.values():
            if topic.moved_to is not None:
                topic.moved_to = self.url_of(topic.name)
