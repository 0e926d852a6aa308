"""The cluster: the shared state of its brokers, and the only owner of metadata and storage."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pulsarium.broker.auth.authentication import Authentication
from pulsarium.broker.auth.authorization import Authorization
from pulsarium.broker.auth.revoked import watch_grants
from pulsarium.broker.auth.tls import TlsContext
from pulsarium.broker.clock import Clock, DelayTicks
from pulsarium.broker.config.dynamic import DynamicSettings
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.config.version import VERSION
from pulsarium.broker.model.context import NamespaceContext
from pulsarium.broker.model.ledger.cache import EntryCache
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.namespace.ownership import Ownership
from pulsarium.broker.model.rate.rates import BrokerLimits, Limits, ResourceGroups
from pulsarium.broker.model.scalable.controller import Controllers
from pulsarium.broker.model.scalable.topics import ScalableTopics
from pulsarium.broker.model.schema.registry import SchemaRegistry
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.broker.model.transaction.coordinators import Coordinators
from pulsarium.broker.model.transaction.scalable import ScalableCoordinators
from pulsarium.broker.model.upkeep import start_upkeep
from pulsarium.broker.publish_buffer import PublishBuffer
from pulsarium.broker.slices import Door, Slice
from pulsarium.broker.storage.interface import WRITTEN_BY, Entries, Storage
from pulsarium.broker.turn import Turn
from pulsarium.proto.topic_name import NON_PERSISTENT, PERSISTENT, TopicName, is_system_topic

if TYPE_CHECKING:
    from pulsarium.broker.broker import Broker
    from pulsarium.broker.lab import Lab
    from pulsarium.broker.model.compaction.compactor import Compactor
    from pulsarium.broker.session.hooks import Hooks

LEDGER_COUNTER = "/counters/ledger-id"
COUNTER_RETRY = 1.0  # seconds
START_COUNTER = "/counters/starts"


class Cluster:
    """Storage, metadata, schemas, topics, clock, turn and brokers. Must be created inside a trio run."""

    def __init__(self, config: Config, profile: Profile, storage: Storage) -> None:
        self.config = config
        self.profile = profile
        self.storage = storage
        self.clock = Clock()
        self._namespaces: dict[str, NamespaceContext] = {}
        self.delay_ticks = DelayTicks(config.delayedDeliveryTickTimeMillis)
        self.door = Door()  # for new connections and HTTP requests
        self.turn = Turn(storage)
        self.cache = EntryCache(storage, config.managedLedgerCacheSizeMB << 20)
        self.compactor: Compactor | None = None
        self.lab: Lab | None = None  # set by open_core
        self.hooks: Hooks | None = None  # set by the lab while it needs them
        self.turn.every_turn(self.cache.trim)
        self.publish_buffer = PublishBuffer(self.turn, self.cache, config.maxMessagePublishBufferSizeInMB << 20)
        self.turn.every_turn(self.publish_buffer.review)
        self.metadata = Metadata(self.turn, config.clusterName)
        self.dynamic = DynamicSettings(config, self.metadata.records)
        self.schemas = SchemaRegistry(self.turn, self.next_ledger_id)
        self.topics = Topics(self, self.metadata, self.schemas)
        self.scalable = ScalableTopics(self, self.metadata, self.topics, self.schemas)
        self._limits: dict[Broker | None, BrokerLimits] = {}
        self._no_limits = BrokerLimits(self.clock)
        self._groups = ResourceGroups(
            self.clock, self.metadata.records, limit_dispatch=profile.resource_groups_limit_dispatch
        )
        self._recover(storage.load_metadata())
        self.authentication = (
            Authentication(config, self.clock.token_expiry.now_ms) if config.authenticationEnabled else None
        )
        self.authorization = (
            Authorization(config, self.metadata, as_released=profile.leaves_schemas_open)
            if config.authorizationEnabled
            else None
        )
        self.tls = TlsContext(config, self.clock.monotonic) if config.has_tls else None
        if self.authorization is not None:
            watch_grants(self.authorization, self.metadata, self.topics)
        self.ownership: Ownership[Broker] = Ownership(config, self.metadata)
        self.controllers = Controllers(self, self.clock, self.metadata, self.scalable, self.ownership)
        self.coordinators: Coordinators[Broker] | None = None  # transactionCoordinatorEnabled
        if config.transactionCoordinatorEnabled:
            self.coordinators = Coordinators(self, self.ownership, self.metadata, self.topics)
        self.scalable_coordinators: ScalableCoordinators[Broker] | None = None
        if config.transactionCoordinatorScalableTopicsEnabled:
            self.scalable_coordinators = ScalableCoordinators(self, self.ownership, self.topics)
        self.dynamic.on_changed = self._settings_changed
        start_upkeep(self.clock, config, self.topics)
        self._producer_names = 0

    # brokers

    @property
    def brokers(self) -> Sequence[Broker]:
        """Return all brokers, also those that are stopped."""
        return self.ownership.members

    def broker_at(self, url: str) -> Broker | None:
        """Return the broker of a service URL or of host:port, which a proxy names, or None."""
        address = url.rpartition("//")[2].rstrip("/")
        return next((broker for broker in self.brokers if address in broker.addresses), None)

    async def unload(self, bundles: Collection[tuple[str, str]], destination: Broker | None = None) -> None:
        """Unload bundles, each (namespace, range): close their topics and disconnect the clients.

        Other work runs between the topics. `destination` serves the bundles afterwards, and clients are told so.
        Without a destination, the next lookup decides.
        """
        ownership, slice_ = self.ownership, Slice()
        namespaces = {namespace for namespace, _ in bundles}
        assigned = None if destination is None else destination.assigned
        with ownership.unloading(bundles):
            for topic in list(self.topics.loaded.values()):
                namespace = str(topic.name.namespace_name)
                if topic.closed or namespace not in namespaces:
                    continue
                if (namespace, ownership.bundle_of(topic.name)) in bundles:
                    self.topics.unload(topic.name, assigned)
                await slice_.pause()
            for namespace, bundle in bundles:
                if destination is None:
                    ownership.release(namespace, bundle)
                else:
                    ownership.assign(namespace, bundle, destination)

    def of(self, topic: TopicName) -> NamespaceContext:
        """Return the context of all topics of a topic's namespace, which has the namespace's clock."""
        namespace = str(topic.namespace_name)
        if namespace not in self._namespaces:
            self._namespaces[namespace] = NamespaceContext(self, self.clock.of(namespace))
        return self._namespaces[namespace]

    def limits_of(self, topic: TopicName) -> BrokerLimits:
        """Return the limits of the broker that serves a topic. System topics have none; unowned topics share one."""
        if is_system_topic(topic):
            return self._no_limits
        owner = self.ownership.owner(topic)
        if owner not in self._limits:
            limits = self._limits[owner] = BrokerLimits(self.clock)
            limits.update(self.config)
        return self._limits[owner]

    def limits_of_group(self, name: str) -> Limits:
        """Return the limits that the topics of a resource group share; "" has none."""
        return self._groups.limits_of(name)

    def _settings_changed(self) -> None:
        for limits in self._limits.values():
            limits.update(self.config)
        self.topics.settings_changed()

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace with its topics, and disconnect their clients."""
        for scalable in self.scalable.names(name):
            self.scalable.delete(TopicName.parse(scalable), force=True)
        for topic in self.topics.names(name, non_persistent=True):
            self.topics.delete(TopicName.parse(topic), force=True)
        for domain in (PERSISTENT, NON_PERSISTENT):
            for parent in map(TopicName.parse, self.metadata.partitioned_of(name, domain)):
                self.metadata.delete_partitioned(parent)
                self.schemas.delete(parent)
        self.metadata.delete_namespace(name)
        self.ownership.forget(name)
        self._namespaces.pop(name, None)
        self.clock.forget(name)

    def next_producer_name(self) -> str:
        """Return a new producer name, never used before, because clients keep theirs over a restart of the broker."""
        name = f"{self.config.clusterName}-{self.starts_before}-{self._producer_names}"
        self._producer_names += 1
        return name

    def save(self) -> None:
        """Save all delayed state, because all brokers stop."""
        for broker in self.brokers:
            broker.close_sessions()
        self.topics.save()
        self.turn.finish()

    # what is stored

    def _recover(self, kept: dict[str, bytes]) -> None:
        """Load the metadata in `kept`."""
        self._kept = kept
        self._folders: dict[str, list[str]] = {}
        for path in kept:
            self._folders.setdefault(path.rpartition("/")[0], []).append(path)
        self._ledger_ids = int(kept.get(LEDGER_COUNTER, b"0"))
        self.starts_before = int(kept.get(START_COUNTER, b"0"))
        self.turn.store(START_COUNTER, str(self.starts_before + 1).encode())
        self.turn.store(WRITTEN_BY, VERSION.encode())
        self.metadata.recover(kept)
        self.dynamic.recover()
        self.schemas.recover(kept)
        self.topics.recover(kept)
        self.scalable.recover(kept)

    def replace(self, kept: dict[str, bytes], entries: Entries) -> None:
        """Replace all state with that of another cluster, or with none, and disconnect the clients.

        Counters continue, because clients may know earlier numbers. The turn must be settled (`Turn.is_settled`). Raise
        `StorageError`, without any change, when the store cannot replace its content.
        """
        reached = {LEDGER_COUNTER: self._ledger_ids, START_COUNTER: self.starts_before + 1}
        counters = {path: str(max(count, int(kept.get(path, b"0")))).encode() for path, count in reached.items()}
        kept = {**kept, **counters}
        self.storage.replace(kept, entries)
        self._begin_again(kept)

    def restart(self) -> None:
        """Begin again with what is stored, as after a crash of all brokers. The turn must be settled.

        The store must keep entries (`Storage.keeps_entries`).
        """
        for broker in self.brokers:
            broker.close_sessions()
        self._begin_again(self.storage.load_metadata())

    def _begin_again(self, kept: dict[str, bytes]) -> None:
        """Forget all topics with their clients, and recover those in `kept`."""
        self.topics.forget_all()
        self.turn.forget_notes()
        self.ownership.forget_all()
        self.controllers.forget_all()
        self._namespaces.clear()
        self.clock.forget_namespaces()
        self._recover(kept)
        if self.coordinators is not None:
            self.coordinators.recover()
        if self.scalable_coordinators is not None:
            self.scalable_coordinators.recover()

    def next_ledger_id(self) -> int:
        """Return a ledger id that was never used in this cluster."""
        ledger_id = self._ledger_ids
        self._ledger_ids += 1
        self._store_counter()
        return ledger_id

    def _store_counter(self) -> None:
        self.turn.store(LEDGER_COUNTER, str(self._ledger_ids).encode())
        self.turn.after_commit(self._counter_stored)

    def _counter_stored(self, error: Exception | None) -> None:
        if error is not None:  # ids that were given out stay valid
            self.clock.machine.call_later(COUNTER_RETRY, self._store_counter)

    def recovered(self, path: str) -> bytes | None:
        """Return, only once, the value stored at `path` when the broker started."""
        return self._kept.pop(path, None)

    def recovered_under(self, path: str) -> Sequence[tuple[str, bytes]]:
        """Return, only once, the names and values stored in the folder `path` when the broker started."""
        return [(kept[len(path) + 1 :], self._kept.pop(kept)) for kept in self._folders.pop(path, [])]
