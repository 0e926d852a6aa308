"""The scalable topics of a cluster: create, split, merge, migrate and delete them.

A record in the metadata decides which segments a topic has. Each operation notes all its changes in one turn, so one
commit has the new segments with their cursors, the record, and the ends of the sealed segments. After a crash, the
store has either all of them or none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from pulsarium.broker.model.context import Context
from pulsarium.broker.model.errors import NotAllowedError, TopicNotFoundError
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.policy.policies import auto_creation
from pulsarium.broker.model.scalable.layout import Json, Layout, Segment
from pulsarium.broker.model.schema.registry import SchemaRegistry
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.proto.topic_name import PERSISTENT, SCALABLE, SegmentName, TopicName

ROOT: Final = "/topics/"
V5_MANAGED: Final = "__pulsar.v5.managed"  # metadata of producers and consumers that a migration may disconnect

Observer = Callable[["ScalableTopic"], None]  # called after the commit of a change
SetObserver = Callable[["ScalableTopic", bool], None]  # called after the commit, with whether the topic exists now


class ScalableTopicExistsError(NotAllowedError):
    """A topic that exists already, or is scalable already."""


class ScalableTopicNotFoundError(TopicNotFoundError):
    """A scalable topic that does not exist."""

    def __init__(self, name: TopicName) -> None:
        super().__init__(f"Scalable topic not found: {name}")


class LegacyClientsError(NotAllowedError):
    """A migration that would disconnect clients that do not know scalable topics."""


class ScalableTopic:
    """A scalable topic: its layout, its properties, and the override of its auto scale policy.

    `observers` are told after the commit of each change. The record has the subscriptions that REST made, with their
    types, and the names of the registered consumers of each subscription.
    """

    def __init__(self, topics: ScalableTopics, name: TopicName, layout: Layout, properties: Mapping[str, str]) -> None:
        self.name = name
        self.layout = layout
        self.stored = layout  # the layout of the last commit
        self.properties = dict(properties)
        self.policy: Json | None = None
        self.made: dict[str, str] = {}
        self.registered: dict[str, list[str]] = {}
        self.observers: dict[Observer, None] = {}
        self.exists = True
        self.controller: Any | None = None  # the broker that leads it, from its first use on
        self._topics = topics

    def segment_topic(self, segment: Segment) -> TopicName:
        """Return the topic that has the messages of a segment."""
        return segment.topic(self.name)

    @property
    def subscriptions(self) -> list[str]:
        """Return the subscriptions of the record. Their cursors are created on each new segment."""
        return sorted({*self.made, *self.registered})

    def assigned_name(self, segment: Segment) -> TopicName:
        """Return the topic that the controller names for a segment: in 5.0.0-M1 an absent one for a legacy segment."""
        return self.segment_topic(segment) if self._topics.has_buckets else segment.topic_of_its_own(self.name)

    def loaded_segment(self, segment: Segment) -> Topic | None:
        """Return the topic of a segment, or None if it is not loaded."""
        return self._topics.topics.loaded.get(str(self.segment_topic(segment)))

    def opened_segment(self, segment: Segment) -> PersistentTopic | None:
        """Return the topic of a segment, loaded if necessary, or None if it does not exist."""
        topics, name = self._topics.topics, self.segment_topic(segment)
        return topics.find_persistent(name) if topics.exists(name) else None

    def is_drained(self, segment: Segment, subscription: str) -> bool:
        """Return whether a subscription has acknowledged all of a segment. A missing cursor has not."""
        topics, name = self._topics.topics, self.assigned_name(segment)
        found = topics.find_persistent(name).subscriptions.get(subscription) if topics.exists(name) else None
        return found is not None and not found.cursor.backlog()

    # changes

    def split(self, segment_id: int) -> None:
        """Replace a segment by its two halves, and terminate its topic."""
        self._change(self.layout.split(segment_id, now_ms=self._topics.now_ms(self.name)))

    def merge(self, first: int, second: int) -> None:
        """Replace two adjacent segments by one, and terminate their topics."""
        now_ms = self._topics.now_ms(self.name)
        self._change(self.layout.merge(first, second, now_ms=now_ms, with_buckets=self._topics.has_buckets))

    def rebucket(self, segment_id: int, buckets: int) -> None:
        """Replace a segment by one with another number of entry buckets, and terminate its topic."""
        self._change(self.layout.rebucket(segment_id, buckets, now_ms=self._topics.now_ms(self.name)))

    def prune(self, ids: Iterable[int]) -> None:
        """Remove sealed segments, and delete their topics."""
        ids = tuple(ids)
        gone = [self.segment_topic(self.layout.segment(each)) for each in ids]
        self._change(self.layout.prune(ids))
        self._topics.delete_segments(gone, force=True)

    def set_policy(self, policy: Json | None) -> None:
        """Set the override of the auto scale policy, or delete it."""
        self.policy = policy
        self._topics.save(self)

    def save(self) -> None:
        """Store the record."""
        self._topics.save(self)

    def lead(self, broker: Any | None) -> None:
        """Make a broker the controller, and tell the observers. None releases the topic.

        Observers are told at once, before any change that the controller makes next.
        """
        if self.controller is broker:
            return
        self.controller = broker
        if self.stored is self.layout:
            self._tell_now()
        else:
            self.tell()

    def tell(self) -> None:
        """Tell the observers once all changes so far are committed."""
        self._topics.turn.after_commit(lambda error: self._tell_now() if error is None else None)

    def _tell_now(self) -> None:
        for observer in list(self.observers):
            observer(self)

    def _change(self, layout: Layout) -> None:
        self._topics.change(self, layout)

    # the record

    def record(self) -> Json:
        """Return the record as REST of 5.0.1 shows it, except that no deleted topic has one."""
        record = {**self.layout.record(), "properties": self.properties}
        return record if self.policy is None else {**record, "autoScalePolicy": self.policy}


class ScalableTopics:
    """The scalable topics of a cluster, by name."""

    def __init__(self, stores: Context, metadata: Metadata, topics: Topics, schemas: SchemaRegistry) -> None:
        self.topics = topics
        topics.restores, topics.reserves = self._restores, self._reserves
        self.turn = stores.turn
        self.observers: dict[SetObserver, None] = {}
        self._stores = stores
        self._metadata = metadata
        self._schemas = schemas
        self._found: dict[str, ScalableTopic] = {}

    def now_ms(self, name: TopicName) -> int:
        """Return the time of a topic's namespace, in milliseconds since the epoch."""
        return self._stores.of(name).clock.now_ms()

    def recover(self, kept: Mapping[str, bytes]) -> None:
        """Load the records from the store, and forget the old topics."""
        for topic in self._found.values():
            topic.exists = False
        self._found.clear()
        for path, value in kept.items():
            if path.startswith(ROOT):
                record = json.loads(value)
                name = TopicName.parse(record["name"])
                topic = ScalableTopic(self, name, Layout.read(record), record["properties"])
                topic.policy = record.get("autoScalePolicy")
                topic.made, topic.registered = record["subscriptions"], record["consumers"]
                self._found[str(name)] = topic

    # finding

    def find(self, name: TopicName) -> ScalableTopic | None:
        """Return the scalable topic with this name, also for its persistent:// name, or None."""
        return self._found.get(str(scalable_name(name)))

    def get(self, name: TopicName) -> ScalableTopic:
        """Return a scalable topic, or raise `ScalableTopicNotFoundError`."""
        found = self.find(name)
        if found is None:
            raise ScalableTopicNotFoundError(name)
        return found

    def all(self) -> list[ScalableTopic]:
        """Return the scalable topics of all namespaces."""
        return list(self._found.values())

    def names(self, namespace: str, properties: Mapping[str, str] | None = None) -> list[str]:
        """Return the names of a namespace's topics that have all of `properties`, sorted."""
        wanted = (properties or {}).items()
        return sorted(
            name
            for name, topic in self._found.items()
            if name.startswith(f"{SCALABLE}://{namespace}/") and wanted <= topic.properties.items()
        )

    def of_segment(self, name: TopicName) -> tuple[ScalableTopic, Segment] | None:
        """Return the scalable topic and the segment of a segment:// name, or None when the record lacks the segment."""
        of = SegmentName.of(name)
        topic = self.find(of.parent)
        segment = None if topic is None else topic.layout.segments.get(of.id)
        if topic is None or segment is None or segment.topic(topic.name) != name:
            return None
        return topic, segment

    def _restores(self, name: TopicName) -> bool:
        """Return whether a client that names an absent segment creates the segment's topic again, as in 5.0.1."""
        found = self.of_segment(name) if name.is_segment and not self._stores.profile.scalable_as_m1 else None
        return found is not None and found[1].active

    def _reserves(self, name: TopicName) -> bool:
        """Return whether clients may not auto-create a persistent topic, because a scalable topic has its name."""
        return not self._stores.profile.scalable_as_m1 and name.domain == PERSISTENT and self.find(name) is not None

    # creating

    @property
    def has_buckets(self) -> bool:
        """Return whether segments have entry buckets."""
        return self._stores.profile.entry_buckets

    def buckets_of(self, segments: int) -> int:
        """Return the number of entry buckets of each of `segments` new segments."""
        config = self._stores.config
        if not self.has_buckets:
            return 1
        return min(
            max(1, config.scalableTopicEntryBucketBudget // segments), config.scalableTopicEntryBucketMaxPerSegment
        )

    def may_auto_create(self, name: TopicName) -> bool:
        """Return whether a lookup may create the topic."""
        namespace = self._metadata.namespaces.get(str(name.namespace_name))
        if namespace is None and not self._stores.profile.scalable_faults:
            return False
        return auto_creation(self._stores.config, namespace or {}).allowed

    def create(self, name: TopicName, segments: int = 1, properties: Mapping[str, str] | None = None) -> ScalableTopic:
        """Create a topic with segments of equal width. Raise `ScalableTopicExistsError` when it exists."""
        if self.find(name) is not None:
            raise ScalableTopicExistsError(f"Scalable topic already exists: {name}")
        layout = Layout.initial(segments, now_ms=self.now_ms(name), buckets=self.buckets_of(segments))
        return self._add(ScalableTopic(self, name, layout, properties or {}))

    def _add(self, topic: ScalableTopic) -> ScalableTopic:
        active = topic.layout.active()
        self.topics.check_room(topic.name, len(active))
        for segment in active:
            self.topics.create(topic.segment_topic(segment))
        self._found[str(topic.name)] = topic
        self.save(topic)

        def added(error: Exception | None) -> None:
            if error is not None:
                self._found.pop(str(topic.name), None)
                topic.exists = False

        self.turn.after_commit(added)
        self._tell_set(topic, exists=True)
        return topic

    # changing

    def change(self, topic: ScalableTopic, layout: Layout) -> None:
        """Give a topic a new layout: create its new segments with their cursors, and terminate the sealed ones."""
        before = topic.layout
        added = [segment for number, segment in layout.segments.items() if number not in before.segments]
        self.topics.check_room(topic.name, len(added))
        for segment in added:
            child = self.topics.create(topic.segment_topic(segment))
            assert isinstance(child, PersistentTopic)
            for subscription in topic.subscriptions:
                if subscription and subscription not in child.subscriptions:
                    child.subscribe(subscription, earliest=True)
        for segment in layout.segments.values():
            if not segment.active and before.segments[segment.id].active:
                self._terminate(topic.segment_topic(segment))
        topic.layout = layout
        self.save(topic)

        def changed(error: Exception | None) -> None:
            if error is None:
                topic.stored = layout
            elif topic.layout.epoch > before.epoch:  # unless an earlier change of the same era has gone back already
                topic.layout = before

        self.turn.after_commit(changed)
        topic.tell()

    def _terminate(self, name: TopicName) -> None:
        if self.topics.exists(name):
            self.topics.find_persistent(name).terminate()

    def migrate(self, name: TopicName, *, force: bool = False) -> ScalableTopic:
        """Make a persistent topic scalable. Its messages stay in sealed legacy segments.

        Raise `LegacyClientsError` while clients are connected that do not know scalable topics, unless `force`.
        """
        scalable, legacy = scalable_name(name), persistent_name(name)
        if self.find(scalable) is not None:
            raise ScalableTopicExistsError(f"Topic is already scalable: {scalable}")
        names = self.legacy_names(legacy)
        if not self._metadata.partitions_of(legacy) and not self.topics.exists(legacy):
            raise TopicNotFoundError(f"Topic does not exist: {legacy}")
        attached = 0 if force else self._legacy_clients(names)
        if attached:
            raise LegacyClientsError(
                f"{attached} legacy v4 client connection(s) still attached to {legacy}; disconnect them (or all "
                "clients are V5) before migrating, or retry with force=true"
            )
        buckets = self.buckets_of(len(names))
        layout = Layout.migrated([str(each) for each in names], now_ms=self.now_ms(name), buckets=buckets)
        topic = self._add(ScalableTopic(self, scalable, layout, {}))
        for each in names:
            self._terminate(each)
        return topic

    def legacy_names(self, name: TopicName) -> list[TopicName]:
        """Return the partitions of a persistent topic, or the topic itself."""
        partitions = self._metadata.partitions_of(name)
        return [name.partition(index) for index in range(partitions)] if partitions else [name]

    def _legacy_clients(self, names: Iterable[TopicName]) -> int:
        loaded = [self.topics.loaded[str(each)] for each in names if str(each) in self.topics.loaded]
        clients: list[Mapping[str, str]] = []
        for topic in loaded:
            clients += [producer.metadata for producer in topic.producers.by_name.values()]
            clients += [
                each.metadata for subscription in topic.subscriptions.values() for each in subscription.consumers
            ]
        return sum(metadata.get(V5_MANAGED) != "true" for metadata in clients)

    # deleting

    def delete(self, name: TopicName, *, force: bool = False) -> None:
        """Delete a topic with its segments, its subscriptions and its schema. 5.0.0-M1 keeps legacy segments.

        Lookup sessions are told that the topic has no controller any more, except in 5.0.0-M1. Raise
        `TopicHasClientsError` when a segment has clients and the deletion is not forced.
        """
        topic, as_m1 = self.get(name), self._stores.profile.scalable_as_m1
        segments = [topic.segment_topic(segment) for segment in topic.layout.segments.values()]
        existing = [each for each in segments if (each.is_segment or not as_m1) and self.topics.exists(each)]
        if not force:
            for each in existing:
                self.topics.check_unused(each)
        del self._found[str(topic.name)]
        topic.exists = False
        self.turn.store(_path(topic.name), None)

        def deleted(error: Exception | None) -> None:
            if error is not None:
                topic.exists = True
                self._found[str(topic.name)] = topic
            elif not as_m1:
                topic.lead(None)

        self.turn.after_commit(deleted)
        for each in existing:
            self.topics.delete(each, force=True)
        self._schemas.delete(topic.name)
        self._tell_set(topic, exists=False)

    def delete_segments(self, names: Iterable[TopicName], *, force: bool) -> None:
        """Delete the topics of segments. A legacy segment is deleted with its persistent topic only."""
        for name in names:
            if name.is_segment and self.topics.exists(name):
                self.topics.delete(name, force=force)

    # the store

    def save(self, topic: ScalableTopic) -> None:
        """Store a topic's record."""
        record = {"name": str(topic.name), **topic.record(), "subscriptions": topic.made, "consumers": topic.registered}
        self.turn.store(_path(topic.name), json.dumps(record).encode())

    def _tell_set(self, topic: ScalableTopic, *, exists: bool) -> None:
        def tell(error: Exception | None) -> None:
            if error is None:
                for observer in list(self.observers):
                    observer(topic, exists)

        self.turn.after_commit(tell)


def scalable_name(name: TopicName) -> TopicName:
    """Return the topic:// name of a topic."""
    return TopicName(SCALABLE, name.tenant, name.namespace, name.local_name) if name.domain == PERSISTENT else name


def persistent_name(name: TopicName) -> TopicName:
    """Return the persistent:// name of a scalable topic."""
    return TopicName(PERSISTENT, name.tenant, name.namespace, name.local_name)


def _path(name: TopicName) -> str:
    return f"{ROOT}{name.tenant}/{name.namespace}/{quote_plus(name.local_name, safe='*')}"
