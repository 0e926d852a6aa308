"""Find, create, load, unload and delete the topics of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.client import AssignedBroker
from pulsarium.broker.model.context import Context
from pulsarium.broker.model.errors import (
    NotAllowedError,
    PersistenceError,
    ServiceNotReadyError,
    SourceNotFoundError,
    TopicNotFoundError,
)
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger, ShadowLedger, kept_info
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.news import Kind
from pulsarium.broker.model.policy.policies import (
    AutoCreation,
    Policies,
    auto_creation_of,
    most_topics,
    resolve,
    resolve_system_topic,
)
from pulsarium.broker.model.schema.registry import SchemaRegistry
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.change_events import ChangeEvents, ChangeEventsTopic
from pulsarium.broker.model.topic.log import TopicLog, delete_damaged
from pulsarium.broker.model.topic.migration import Migration
from pulsarium.broker.model.topic.non_persistent import NonPersistentTopic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.shadow import SHADOW_SOURCE, ShadowTopic, shadow_properties, source_of
from pulsarium.broker.model.topic.watchers import Watchers
from pulsarium.broker.model.transaction.coordinator import Participant
from pulsarium.broker.model.transaction.transaction import TransactionPart
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.special_names import is_change_events, is_system_topic, is_transaction_internal
from pulsarium.proto.topic_name import SEGMENT, TopicName

log = PartLog("topics")

MANAGED_LEDGERS = "/managed-ledgers/"
NO_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType({})


class Topics:
    """The topics of a cluster.

    A persistent topic exists with its managed ledger, a non-persistent one while it is in use. Callers ask `Ownership`
    first which broker serves a topic.
    """

    def __init__(self, stores: Context, metadata: Metadata, schemas: SchemaRegistry) -> None:
        self.loaded: dict[str, Topic] = {}
        self.watchers = Watchers()
        self._stores = stores
        self._metadata = metadata
        self._schemas = schemas
        self._metadata.policies_listeners.append(self._policies_changed)
        self.migration = Migration(self.loaded, metadata)
        self._change_events = ChangeEvents(self.exists, self.create, metadata, schemas)
        if stores.config.takes_topic_policies:
            self._metadata.topic_policies_listeners.append(self._change_events.changed)
        self._logs: dict[str, TopicLog | None] = {}  # persistent topics, with None for those not opened since the start
        self._damaged: dict[str, StorageError] = {}  # topics that cannot be opened, with the error
        self._showing: set[str] = set()  # shadow topics whose source is being loaded
        self._leaving: set[str] = set()  # topics whose deletion is not committed yet, and may fail
        self._policies: dict[str, Policies] = {}  # policies by namespace, for topics without policies of their own
        self.restores: Callable[[TopicName], bool] = lambda name: False  # set by the scalable topics
        self.reserves = self.restores

    def recover(self, paths: Iterable[str]) -> None:
        """Learn the persistent topics from the store's paths."""
        self._policies.clear()
        for path in paths:
            if path.startswith(MANAGED_LEDGERS) and path.count("/") == 5:
                name = TopicName.from_managed_ledger(path[len(MANAGED_LEDGERS) :])
                self._logs[str(name)] = None
                self.watchers.created(name)

    # finding

    def exists(self, name: TopicName) -> bool:
        """Return whether a topic exists that is not a partitioned topic itself."""
        return str(name) in (self._logs if name.is_persistent else self.loaded)

    def names(
        self,
        namespace: str,
        *,
        persistent: bool = True,
        non_persistent: bool = False,
        idle: bool = True,
        hidden: Callable[[TopicName], bool] | None = None,
    ) -> list[str]:
        """Return the names of topics in a namespace, with each partition; persistent ones first.

        `idle` includes non-persistent topics without clients. Topics that are `hidden` are left out.
        """
        found: list[str] = []
        if persistent:
            found += self.watchers.listing(namespace).names
        if non_persistent:
            loaded = (item for item in self.loaded.items() if item[0].startswith(f"non-persistent://{namespace}/"))
            found += sorted(name for name, topic in loaded if idle or topic.producers or topic.subscriptions)
        return found if hidden is None else [name for name in found if not hidden(TopicName.parse(name))]

    def find(self, name: TopicName) -> Topic:
        """Return an existing topic, loaded if necessary, or raise `TopicNotFoundError`."""
        if not self.exists(name):
            raise TopicNotFoundError(f"Topic {name} not found")
        return self.loaded.get(str(name)) or self._load(name)

    def loaded_persistent(self) -> list[PersistentTopic]:
        """Return the loaded persistent topics."""
        return [topic for topic in self.loaded.values() if isinstance(topic, PersistentTopic)]

    def find_persistent(self, name: TopicName) -> PersistentTopic:
        """Return an existing persistent topic, loaded if necessary, or raise `TopicNotFoundError`."""
        topic = self.find(name)
        assert isinstance(topic, PersistentTopic)
        return topic

    def persistent(self, text: str) -> PersistentTopic | None:
        """Return the persistent topic with the name `text`, or None."""
        try:
            name = TopicName.parse(text)
        except InvalidTopicName:
            return None
        return self.find_persistent(name) if name.is_persistent and self.exists(name) else None

    def participant(self, part: TransactionPart) -> Participant | None:
        """Return the participant of a transaction, or None for a deleted one."""
        topic = self.persistent(part.topic)
        if topic is None or part.subscription is None:
            return None if topic is None else topic.transactions
        subscription = topic.subscriptions.get(part.subscription)
        return None if subscription is None else subscription.pending_acks

    def find_or_create(self, name: TopicName, *, create: bool, absent: str) -> Topic:
        """Return the topic for a producer or consumer, created if allowed.

        `absent` is the text of the `TopicNotFoundError` for a topic that is not created.
        """
        if (topic := self.loaded.get(str(name))) is not None:
            return topic
        config = self._stores.config
        enabled = config.enablePersistentTopics if name.is_persistent else config.enableNonPersistentTopics
        if not enabled:
            raise NotAllowedError(f"Broker is unable to load {name.domain} topic")
        partitions = self._metadata.partitions_of(name.partitioned_name)
        strays = self._stores.profile.strays_are_topics
        if partitions and name.partition_index < 0 and not strays:
            raise NotAllowedError(f"Found partitioned metadata for non-partitioned topic: {name}")
        if name.partition_index >= partitions > 0:
            if self._stores.profile.refuses_illegal_partitions:
                self._metadata.check_partition(name)
            raise TopicNotFoundError(absent)
        if not self.exists(name):
            if name.is_persistent and is_transaction_internal(name):
                raise NotAllowedError(f"Can not create transaction system topic {name}")
            if not partitions or name.partition_index < 0:
                if not (create and self.may_auto_create(name)):
                    raise TopicNotFoundError(absent, limit="allowAutoTopicCreation" if create else None)
                if not strays:
                    self._metadata.check_partition(name)
            self.check_room(name)
        return self._load(name)

    def may_auto_create(self, name: TopicName) -> bool:
        """Return whether clients may create a topic."""
        if name.is_segment or name.is_scalable:
            return self.restores(name)
        return self._auto_creation(name).allowed and not self.reserves(name)

    def partitions_for_client(self, name: TopicName, *, create: bool) -> int | None:
        """Return the number of partitions for PARTITIONED_METADATA, or None if the topic does not exist.

        The number is 0 for a topic without partitions, or for one that the client may create so. If topics are created
        partitioned, the first request creates one, or raises `NotAllowedError` at maxTopicsPerNamespace.
        """
        partitions = self._metadata.partitions_of(name)
        unasked = name.is_scalable and (create or self._stores.profile.scalable_partitions_unasked)
        if partitions or self.exists(name) or unasked:
            return partitions
        if not (create and self.may_auto_create(name)):
            return None
        partitions = self._auto_creation(name).partitions
        if name.partition_index >= 0 or not partitions or name.is_segment:
            return 0
        self.check_room(name, partitions)
        self._metadata.put_partitioned(name, partitions)
        return partitions

    def _auto_creation(self, name: TopicName) -> AutoCreation:
        return auto_creation_of(name, self._stores.config, self._metadata.namespaces[str(name.namespace_name)])

    def check_room(self, name: TopicName, added: int = 1) -> None:
        """Raise `NotAllowedError` at maxTopicsPerNamespace. Segments count apart, and later partitions do not count."""
        namespace = str(name.namespace_name)
        most = most_topics(self._stores.config, self._metadata.namespaces.get(namespace) or {})
        if most <= 0 or is_system_topic(name):
            return
        there = len(self.names(namespace, hidden=is_system_topic)) if name.is_persistent else 0
        if name.is_scalable or name.is_segment:
            there = sum(each.startswith(f"{SEGMENT}://{namespace}/") for each in self._logs)
        if there + added > most:
            text = "Exceed maximum number of topics in namespace."
            raise NotAllowedError(text, limit="maxTopicsPerNamespace", allowed=most)

    # policies

    def policies_of(self, name: TopicName) -> Policies:
        """Return the policies of a topic, which need not exist."""
        namespace, config = str(name.namespace_name), self._stores.config
        own, kept = self._metadata.topic_policies_of(name), self._metadata.namespaces.get(namespace)
        if is_system_topic(name):
            return resolve_system_topic(name, config, kept or {}, own)
        if own or kept is None:
            return resolve(config, kept or {}, own)
        if namespace not in self._policies:
            self._policies[namespace] = resolve(config, kept)
        return self._policies[namespace]

    def loaded_of(self, namespace: str, name: TopicName | None = None) -> list[Topic]:
        """Return the loaded topics of a namespace, or only the topic `name` with its partitions."""
        if name is None:
            return [topic for topic in self.loaded.values() if str(topic.name.namespace_name) == namespace]
        names = (name, *map(name.partition, range(self._metadata.partitions_of(name))))
        return [self.loaded[each] for each in map(str, names) if each in self.loaded]

    def _policies_changed(self, namespace: str, name: TopicName | None) -> None:
        if name is None:
            self._policies.pop(namespace, None)
        for topic in self.loaded_of(namespace, name):
            policies = self.policies_of(topic.name)
            if policies != topic.policies:
                topic.set_policies(policies)

    def settings_changed(self) -> None:
        """Apply changed settings of the broker."""
        self._policies.clear()
        for topic in self.loaded.values():
            topic.set_policies(self.policies_of(topic.name))

    # life

    def create(self, name: TopicName, properties: Mapping[str, str] = NO_PROPERTIES) -> Topic:
        """Return a topic, created or loaded if necessary."""
        return self.loaded.get(str(name)) or self._load(name, properties)

    def _load(self, name: TopicName, properties: Mapping[str, str] = NO_PROPERTIES) -> Topic:
        topic: Topic
        if name.is_persistent:
            log = self._logs.get(str(name))
            if str(name) in self._leaving:
                raise ServiceNotReadyError("Topic is temporarily unavailable")
            if log is not None:
                if not isinstance(log.ledger, ShadowLedger):
                    log.reopen()
            elif str(name) in self._logs:
                try:
                    log = self._opened(name)
                except StorageError as error:
                    raise PersistenceError(str(error)) from error
            else:
                log = self._logs[str(name)] = self._log(name, properties)
                self.watchers.created(name)
                self._stores.news.tell(Kind.TOPIC_CREATED, topic=name)
            if properties:
                log.ledger.set_properties(properties)
            if isinstance(log.ledger, ShadowLedger):
                self._show_source(name, log, log.ledger)
            try:
                topic = self._kind(name, log)(name, self._stores.of(name), self.policies_of(name), log)
            except StorageError as error:
                raise PersistenceError(str(error)) from error
            if isinstance(topic, ChangeEventsTopic):
                self._change_events.watch(topic)
        else:
            topic = NonPersistentTopic(name, self._stores.of(name), self.policies_of(name))
            self._stores.news.tell(Kind.TOPIC_CREATED, topic=name)
        self.loaded[str(name)] = topic
        self._stores.moves.meet(topic)
        self.migration.check(topic)
        return topic

    @staticmethod
    def _kind(name: TopicName, log: TopicLog) -> type[PersistentTopic]:
        if is_change_events(name):
            return ChangeEventsTopic
        return ShadowTopic if isinstance(log.ledger, ShadowLedger) else PersistentTopic

    def _log(self, name: TopicName, properties: Mapping[str, str] = NO_PROPERTIES) -> TopicLog:
        """Open the log of a topic, stored or new.

        A topic with entries of its own never becomes a shadow topic, whatever its properties say.
        """
        path = name.managed_ledger_path
        kept, kind = kept_info(path, self._stores), ManagedLedger
        known = {each.key: each.value for each in kept.properties} if kept is not None else properties
        has_entries = kept is not None and any(
            self._stores.storage.stored_runs(each.ledgerId) for each in kept.ledgerInfo
        )
        if SHADOW_SOURCE in shadow_properties(name, known, self._metadata) and not has_entries:
            kind = ShadowLedger
        return TopicLog(path, self._stores.of(name), kind, kept, partial(self.unload, name))

    def _show_source(self, name: TopicName, log: TopicLog, ledger: ShadowLedger) -> None:
        """Attach a shadow topic to its source, or raise `SourceNotFoundError`."""
        source = source_of(name, ledger.properties, self._metadata)
        if source is None or str(name) in self._showing or not self.exists(source):
            raise SourceNotFoundError
        self._showing.add(str(name))  # a topic that is its own source, by whatever detour, has none
        try:
            topic = self.find_persistent(source)
        finally:
            self._showing.discard(str(name))
        ledger.show(topic.ledger)
        log.reopen()

    def unload(self, name: TopicName, assigned: AssignedBroker | None = None) -> None:
        """Unload a topic, and disconnect its clients. `assigned` names the broker that serves it now.

        A topic is loaded again once a client comes back.
        """
        if not self.exists(name):
            raise TopicNotFoundError(f"Topic {name} not found")
        topic = self.loaded.pop(str(name), None)
        if topic is not None:
            topic.close(assigned)
            self._stores.news.tell(Kind.UNLOADED, topic=name)

    def delete(self, name: TopicName, *, force: bool, why: str = "") -> None:
        """Delete a topic with its subscriptions, messages and schema. Without `force`, connected clients forbid this.

        `why` is for people, if nobody asked for it. The topic is gone at once. If the deletion is not committed, the
        topic is back, and can be deleted again.
        """
        topic = self._openable(name)
        if topic is not None:
            if not force:
                topic.check_unused(self.policies_of)
            topic.close(deleted=True)
            del self.loaded[str(name)]
            for shadow in topic.shadows:
                if self.exists(shadow):  # the shadow topic may be deleted too
                    self.unload(shadow)
        self._stores.moves.forget(str(name))
        self._stores.news.tell(Kind.TOPIC_DELETED, topic=name, why=why)
        if name.is_persistent:
            log = self._logs.pop(str(name))
            if log is not None:
                log.delete()
            else:
                delete_damaged(name.managed_ledger_path, self._stores)
            self.watchers.deleted(name)
            self._leaving.add(str(name))
            self._stores.turn.after_commit(partial(self._deleted, name, log))
        if name.partition_index < 0 and not name.is_segment:  # segments share the schema of their scalable topic
            self._schemas.delete(name)
            self._metadata.forget_topic_policies(name)

    def delete_partitioned(self, name: TopicName) -> None:
        """Delete a partitioned topic without its partitions: the metadata, the policies and the schema."""
        self._metadata.delete_partitioned(name)
        self._schemas.delete(name)

    def check_unused(self, name: TopicName) -> None:
        """Raise `TopicHasClientsError` when a topic is in use."""
        topic = self._openable(name)
        if topic is not None:
            topic.check_unused(self.policies_of)

    def _deleted(self, name: TopicName, log: TopicLog | None, error: Exception | None) -> None:
        self._leaving.discard(str(name))
        if error is None:
            self._damaged.pop(str(name), None)
            if log is not None:
                log.forget()
            return
        self._logs[str(name)] = log
        self.watchers.created(name)
        if log is not None:
            log.undelete()

    def _openable(self, name: TopicName) -> Topic | None:
        """Return an existing topic, or None if it is damaged and so not in use."""
        try:
            return self.find(name)
        except PersistenceError:
            return None

    def create_partitions(self, name: TopicName, partitions: int, properties: dict[str, str] | None = None) -> None:
        """Create a partitioned topic, or add partitions with the subscriptions of the first one."""
        before = self._metadata.partitions_of(name)
        self._metadata.put_partitioned(name, partitions, properties)
        if name.is_persistent:
            subscriptions = self._durable_names(name.partition(0)) if before else []
            for index in range(before, partitions):
                try:
                    self.create(name.partition(index))
                except SourceNotFoundError:  # the shadow topic exists, and cannot be loaded before its source exists
                    continue
                added = self.find_persistent(name.partition(index))
                for subscription in subscriptions:
                    added.subscribe(subscription, earliest=True)

    def _durable_names(self, name: TopicName) -> list[str]:
        found = self.find(name).subscriptions.values() if self.exists(name) else ()
        return [each.name for each in found if each.durable]

    def logs(self) -> list[TopicLog]:
        """Return the logs of all persistent topics, opened if necessary."""
        return [log or self._opened(TopicName.parse(name)) for name, log in list(self._logs.items())]

    def _opened(self, name: TopicName) -> TopicLog:
        """Open the stored log of a topic. Raise `StorageError` for a damaged one, which is left as it is."""
        if str(name) not in self._damaged:
            try:
                opened = self._logs[str(name)] = self._log(name)
                return opened
            except Exception as error:  # the same records are not read again before the next start
                log.error("a topic is damaged", topic=name, reason=error)
                self._damaged[str(name)] = StorageError(f"Topic {name} is damaged, and left as it is: {error}")
        raise self._damaged[str(name)]

    def forget_all(self) -> None:
        """Disconnect all clients, and forget all topics, because another state replaces this one."""
        for topic in list(self.loaded.values()):
            topic.close()
        for name, log in self._logs.items():
            self._stores.moves.forget(name)
            if log is not None:
                log.delete()
                log.forget()
            self.watchers.deleted(TopicName.parse(name))
        self.loaded.clear()
        self._logs.clear()
        self._damaged.clear()

    def save(self) -> None:
        """End all compactions and close all cursors, because the broker stops."""
        self.stop_compactions()
        for name, kept in self._logs.items():
            for cursor in kept.cursors.values() if kept is not None else ():
                try:
                    cursor.close()
                except Exception as fault:  # the other cursors must still be stored
                    log.error("a cursor could not be stored", topic=name, subscription=cursor.name, exception=fault)

    def stop_compactions(self) -> None:
        """End compactions that engines run elsewhere."""
        for topic in self.loaded.values():
            topic.stop_compaction()
