"""A broker: the ports it listens on, the topics it serves, and the sessions of its clients."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pulsarium.broker.auth.identity import Certificate
from pulsarium.broker.clock import SteeredTime
from pulsarium.broker.cluster import Cluster
from pulsarium.broker.commands import handlers
from pulsarium.broker.commands.registry import Handler
from pulsarium.broker.config.options import Listener, parse_listeners
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.logs import Log
from pulsarium.broker.model.client import Assigned
from pulsarium.broker.model.errors import ServiceNotReadyError
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.session.outgoing import UNASKED
from pulsarium.broker.session.session import Session
from pulsarium.broker.session.transport import Transport
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

if TYPE_CHECKING:
    from pulsarium.broker.websocket.socket import Socket

log = Log("broker")

WHOLE_BUNDLE = "0x00000000_0xffffffff"


class Broker:
    """A broker of a cluster. Its ports are known once it listens."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.config = cluster.config
        self.profile = cluster.profile
        self.clock = cluster.clock
        self.turn = cluster.turn
        self.metadata = cluster.metadata
        self.schemas = cluster.schemas
        self.topics = cluster.topics
        self.handlers = self._handlers(self.profile)
        self._handlers_of_masks: dict[Profile, Mapping[int, Handler]] = {}
        self.handlers_before_connect = handlers(connected=False)
        self._listeners = parse_listeners(self.config.advertisedListeners)
        self.sessions: set[Session] = set()
        self.web_sockets: set[Socket] = set()
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
        return {self.advertised_address, self.config.bindAddress, socket.gethostname(), *named}

    def listener(self, name: str = "") -> Listener | None:
        """Return the URLs for LOOKUP (advertisedListeners), or None for an unknown listener."""
        listeners = self._listeners
        if name:
            found = listeners.get(name)
            return found if found is not None and (found.pulsar or found.pulsar_ssl) else None
        if listeners:
            return listeners[self.config.internalListenerName or next(iter(listeners))]
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
    def assigned(self) -> Assigned:
        """Return the URLs that CLOSE_ commands name when this broker takes over a topic."""
        urls = self.listener()
        return Assigned("", "") if urls is None else Assigned(urls.pulsar, urls.pulsar_ssl)

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

    def handlers_of(self, profile: Profile) -> Mapping[int, Handler]:
        """Return the command handlers for connections of a profile."""
        if profile is self.profile:
            return self.handlers
        if profile not in self._handlers_of_masks:
            self._handlers_of_masks[profile] = self._handlers(profile)
        return self._handlers_of_masks[profile]

    def _handlers(self, profile: Profile) -> Mapping[int, Handler]:
        return handlers(connected=True, authorize=self.cluster.authorization is not None, profile=profile)

    def open_session(
        self, address: str, transport: Transport, certificate: Certificate | None = None, *, secure: bool = False
    ) -> Session:
        session = Session(self, address, transport, certificate, secure=secure)
        refusal = self._refusal(address)
        if refusal:
            session.error(UNASKED, pb.NotAllowedError, refusal)
            session.close(refusal)
            return session
        self.sessions.add(session)
        if self.cluster.hooks is not None:
            try:
                self.cluster.hooks.opened(session)
            except Exception:
                self.close_session(session)
                raise
        return session

    def _refusal(self, address: str) -> str:
        """Return the reason to refuse a connection from `address`, "" to accept it."""
        most, most_of_one = self.config.brokerMaxConnections, self.config.brokerMaxConnectionsPerIp
        if 0 < most <= len(self.sessions):
            return "Reached the maximum number of connections"
        host = address.rpartition(":")[0]
        if most_of_one > 0 and most_of_one <= sum(s.address.rpartition(":")[0] == host for s in self.sessions):
            return f"Reached the maximum number of connections on address{address}"
        return ""

    def close_session(self, session: Session) -> None:
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
