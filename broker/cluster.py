"""The cluster: the shared state of its brokers, and the only owner of metadata and storage. And each of its brokers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from pulsarium.broker.auth.authentication import Authentication
from pulsarium.broker.auth.authorization import Authorization
from pulsarium.broker.auth.revoked import watch_grants
from pulsarium.broker.auth.tls import TlsContext
from pulsarium.broker.clock import Clock, SteeredTime
from pulsarium.broker.config.dynamic import DynamicSettings
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.listeners import Listener, parse_listeners
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.config.version import VERSION
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.client import AssignedBroker
from pulsarium.broker.model.compaction.compactor import Compactor
from pulsarium.broker.model.context import NamespaceContext
from pulsarium.broker.model.delay_ticks import DelayTicks
from pulsarium.broker.model.errors import ServiceNotReadyError
from pulsarium.broker.model.ledger.ledger import EntryCache, limit_of
from pulsarium.broker.model.moves import Moves
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.namespace.ownership import Ownership
from pulsarium.broker.model.news import News
from pulsarium.broker.model.rate.publish_buffer import PublishBuffer
from pulsarium.broker.model.rate.rates import BrokerLimits, Limits, ResourceGroups
from pulsarium.broker.model.refusals import Refusals
from pulsarium.broker.model.scalable.controller import Controllers
from pulsarium.broker.model.scalable.topics import ScalableTopics
from pulsarium.broker.model.schema.registry import SchemaRegistry
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.broker.model.transaction.coordinators import Coordinators
from pulsarium.broker.model.transaction.scalable import ScalableCoordinators
from pulsarium.broker.model.upkeep import start_upkeep
from pulsarium.broker.net.slices import Admission, Slice
from pulsarium.broker.storage.held_commits import HeldCommits
from pulsarium.broker.storage.interface import WRITTEN_BY, Entries, Storage
from pulsarium.broker.turn import Turn
from pulsarium.proto.special_names import is_system_topic
from pulsarium.proto.topic_name import NON_PERSISTENT, PERSISTENT, TopicName

log = PartLog("broker")
T = TypeVar("T")

LEDGER_COUNTER = "/counters/ledger-id"
COUNTER_RETRY = 1.0  # seconds
START_COUNTER = "/counters/starts"
WHOLE_BUNDLE = "0x00000000_0xffffffff"
SKIPPED_NUMBERS = 1 << 17
"""More than the changes that are only in the entry log (storage/applier.py), which is what can be lost."""


class Surrounded:
    """A cluster or a broker that other objects stand around, one of each class: a lab, the open WebSockets.

    It runs without them, and does not know their classes.
    """

    def __init__(self) -> None:
        self._around: dict[type, object] = {}

    def attach(self, other: T) -> T:
        """Let others find an object by its class, and return the object."""
        self._around[type(other)] = other
        return other

    def attached(self, kind: type[T]) -> T:
        """Return the object of a class that was attached. Raise `LookupError` when none was."""
        found = self._around[kind]
        assert isinstance(found, kind)
        return found


class Cluster(Surrounded):
    """Storage, metadata, schemas, topics, clock, turn and brokers. Must be created inside a trio run."""

    def __init__(self, config: Config, profile: Profile, storage: Storage) -> None:
        super().__init__()
        self.profile = profile
        self.storage = storage
        self.directory: Path | None = None  # of the data, for people; the store uses its own
        self.clock = Clock()
        self._namespaces: dict[str, NamespaceContext] = {}
        self.delay_ticks = DelayTicks(config.delayedDeliveryTickTimeMillis)
        self.admission = Admission()  # for new connections and HTTP requests
        self.turn = Turn(storage, HeldCommits() if profile.separate_publish_times else None)
        self.cache = EntryCache(storage, limit_of(config.managedLedgerCacheSizeMB, storage))
        self.compactor: Compactor | None = None
        self.refusals = Refusals()
        self.moves = Moves()
        self.news = News()
        self.turn.every_turn(self.cache.trim)
        self.publish_buffer = PublishBuffer(self.turn, self.cache, config.maxMessagePublishBufferSizeInMB << 20)
        self.turn.every_turn(self.publish_buffer.review)
        self.metadata = Metadata(self.turn, config.clusterName, config.defaultNumberOfSystemNamespaceBundles)
        self.dynamic = DynamicSettings(config, self.metadata.records)
        self.config: Config = self.dynamic.config
        config = self.config
        self.schemas = SchemaRegistry(self.turn, self.next_ledger_id)
        self.topics = Topics(self, self.metadata, self.schemas)
        self.scalable = ScalableTopics(self, self.metadata, self.topics, self.schemas)
        self._limits: dict[Broker | None, BrokerLimits] = {}
        self._no_limits = BrokerLimits(self.clock)
        self._groups = ResourceGroups(
            self.clock, self.metadata.records, limit_dispatch=profile.resource_groups_limit_dispatch
        )
        self._recover(self._beyond_lost(storage.load_metadata()))
        self.authentication = (
            Authentication(config, self.clock.token_expiry.now_ms) if config.authenticationEnabled else None
        )
        if self.authentication is not None and self.authentication.tokens is not None:
            self.authentication.tokens.watch(self.clock.every)
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
        self.dynamic.listeners.append(self._settings_changed)
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

    def _beyond_lost(self, kept: dict[str, bytes]) -> dict[str, bytes]:
        """Return the metadata with counters beyond all numbers that lost commits can have given away."""
        if not self.storage.has_lost_commits:
            return kept
        counters = {
            path: str(int(kept.get(path, b"0")) + SKIPPED_NUMBERS).encode() for path in (LEDGER_COUNTER, START_COUNTER)
        }
        self.turn.store(LEDGER_COUNTER, counters[LEDGER_COUNTER])  # the number of starts is stored anyway
        return {**kept, **counters}

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


class Connection(Protocol):
    """A client's connection, as its broker and the console see it."""

    number: int
    address: str
    client_version: str
    since_ms: int
    secure: bool
    over_websocket: bool
    through_proxy: bool
    bytes_in: int
    findings: int
    fault_hits: int
    producers: dict[int, Producer]
    consumers: dict[int, Consumer]

    @property
    def bytes_out(self) -> int: ...
    @property
    def protocol_version(self) -> int: ...
    @property
    def role(self) -> str | None: ...
    @property
    def paused_by(self) -> str:
        """Return why no more commands are read, or ""."""
        ...

    def close(self, reason: str = "") -> None:
        """Disconnect the client, and forget its producers and consumers."""
        ...


class Broker(Surrounded):
    """A broker of a cluster. Its ports are known once it listens."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.config = cluster.config
        self.profile = cluster.profile
        self.clock = cluster.clock
        self.turn = cluster.turn
        self.metadata = cluster.metadata
        self.schemas = cluster.schemas
        self.topics = cluster.topics
        self._listeners = parse_listeners(self.config.advertisedListeners)
        self.sessions: set[Connection] = set()
        self.noted_last_entries = False  # whether the log has named the first client that gets them
        self.alive = True
        self.on_shutdown: Callable[[], None] = lambda: None  # called when an operator shuts the broker down
        self.started_ms = self.clock.now_ms()
        self.up_since_ms = self.clock.machine.now_ms()
        self.port = self.config.brokerServicePort
        self.http_port = self.config.webServicePort
        self.port_tls = self.config.brokerServicePortTls
        self.http_port_tls = self.config.webServicePortTls
        cluster.ownership.members.append(self)
        if cluster.coordinators is not None:
            cluster.coordinators.provide()
        self._leaders_changed()

    def clock_of(self, topic: TopicName) -> SteeredTime:
        """Return the clock of a topic's namespace, or the broker's when the namespace does not exist."""
        namespace = str(topic.namespace_name)
        return self.clock.of(namespace) if namespace in self.metadata.namespaces else self.clock

    # addresses

    @property
    def advertised_address(self) -> str:
        return self.config.advertisedAddress or "localhost"

    @property
    def web_address(self) -> str:
        """Return host:port of HTTP, which is the broker's id in Pulsar's texts."""
        return f"{self.advertised_address}:{self.http_port}"

    @property
    def ports(self) -> set[int]:
        """Return the ports of both protocols, with and without TLS."""
        every = (self.port, self.http_port, self.port_tls, self.http_port_tls)
        return {port for port in every if port is not None}

    @property
    def addresses(self) -> set[str]:
        """Return host:port of the binary protocol, in every form that clients know."""
        hosts = (self.advertised_address, self.config.bindAddress, "127.0.0.1", "localhost")
        ports = [port for port in (self.port, self.port_tls) if port is not None]
        urls = (url for listener in self._listeners.values() for url in (listener.pulsar, listener.pulsar_ssl) if url)
        return {*(f"{host}:{port}" for host in hosts for port in ports), *(urlsplit(url).netloc for url in urls)}

    @property
    def hosts(self) -> set[str]:
        """Return the names by which HTTP clients may know this broker."""
        urls = (url for listener in self._listeners.values() for url in listener if url)
        named = {urlsplit(url).hostname or "" for url in urls}
        machine = socket.gethostname()
        own = (machine, f"{machine.partition('.')[0]}.local")  # .local: the machine's name in mDNS
        return {self.advertised_address, self.config.bindAddress, *own, *named}

    def listener(self, name: str = "") -> Listener | None:
        """Return the URLs for LOOKUP (advertisedListeners), or None for an unknown listener."""
        listeners = self._listeners
        internal = self.config.internalListenerName
        if name and (listeners or name != internal):
            found = listeners.get(name)
            return found if found is not None and (found.pulsar or found.pulsar_ssl) else None
        if listeners:
            return listeners.get(internal) or next(iter(listeners.values()))
        return self.listener_at(self.advertised_address)

    def listener_at(self, host: str) -> Listener:
        """Return the URLs of the bound ports, with `host` as the name of this machine."""
        return Listener(
            pulsar=f"pulsar://{host}:{self.port}",
            pulsar_ssl="" if self.port_tls is None else f"pulsar+ssl://{host}:{self.port_tls}",
            http=f"http://{host}:{self.http_port}",
            https="" if self.http_port_tls is None else f"https://{host}:{self.http_port_tls}",
        )

    @property
    def assigned(self) -> AssignedBroker:
        """Return the URLs that CLOSE_ commands name when this broker takes over a topic."""
        urls = self.listener()
        return AssignedBroker("", "") if urls is None else AssignedBroker(urls.pulsar, urls.pulsar_ssl)

    def listening(
        self, port: int, http_port: int, port_tls: int | None = None, http_port_tls: int | None = None
    ) -> None:
        """Set the bound ports."""
        self.port, self.http_port = port, http_port
        self.port_tls, self.http_port_tls = port_tls, http_port_tls

    # topics

    def find_or_create(self, name: TopicName, *, create: bool, absent: str) -> Topic:
        """Return a topic for a producer or consumer, created if needed and `create`.

        Raise `ServiceNotReadyError` when another broker serves the topic. `absent` is the error text for a missing
        topic.
        """
        if self.cluster.ownership.owner(name) is not self:
            raise self.not_served(name)
        return self.topics.find_or_create(name, create=create, absent=absent)

    def not_served(self, name: TopicName) -> ServiceNotReadyError:
        """Return the error for a client that asks for a topic of another broker."""
        bundle = self.cluster.ownership.bundle_of(name) or WHOLE_BUNDLE
        return ServiceNotReadyError(
            f"Namespace bundle ({name.namespace_name}/{bundle}) for topic ({name}) not served by this "
            f"instance:{self.web_address}. Please redo the lookup."
        )

    def loaded_topics(self) -> Iterator[Topic]:
        """Return an iterator over the topics that this broker serves now, without those that are closed meanwhile."""
        owner = self.cluster.ownership.owner
        loaded = list(self.topics.loaded.values())
        return (topic for topic in loaded if not topic.closed and owner(topic.name) is self)

    # sessions

    def close_session(self, session: Connection) -> None:
        self.sessions.discard(session)
        session.close()

    def close_sessions(self) -> None:
        for session in list(self.sessions):
            self.close_session(session)

    # life

    def stop(self) -> None:
        """Stop the broker as if its process ended: disconnect clients and release bundles.

        Storage and metadata belong to the cluster and stay.
        """
        topics, ownership = list(self.loaded_topics()), self.cluster.ownership
        self.alive = False
        self.close_sessions()
        self.cluster.controllers.release_all_of(self)
        for topic in topics:
            if not topic.closed:  # an unused topic closed with its last client
                try:
                    self.topics.unload(topic.name)
                except Exception as error:  # the other brokers of this process must go on
                    log.error("a topic could not be unloaded", exception=error, topic=topic.name)
        for namespace, bundle in ownership.bundles_of(self):
            ownership.release(namespace, bundle)
        self._leaders_changed()

    def start(self) -> None:
        """Start the broker again. It owns no bundle."""
        self.alive = True
        self.started_ms = self.clock.now_ms()
        self.up_since_ms = self.clock.machine.now_ms()
        self._leaders_changed()

    def _leaders_changed(self) -> None:
        if self.cluster.scalable_coordinators is not None:
            self.cluster.scalable_coordinators.leaders_changed()
