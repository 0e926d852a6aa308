"""A broker: the topics it serves and the sessions of its clients."""

from __future__ import annotations

from urllib.parse import urlsplit

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.commands import handlers
from pulsarium.broker.config.listeners import parse_listeners
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.broker.model.upkeep.schedule import start_upkeep
from pulsarium.broker.session.session import Session, Transport


class Broker:
    """One broker identity of a cluster. Its ports are known once it listens."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.config = cluster.config
        self.profile = cluster.profile
        self.clock = cluster.clock
        self.turn = cluster.turn
        self.metadata = cluster.metadata
        self.schemas = cluster.schemas
        self.handlers = handlers(connected=True)
        self.handlers_before_connect = handlers(connected=False)
        self._listeners = parse_listeners(self.config.advertisedListeners)
        self.sessions: set[Session] = set()
        self.started_ms = self.clock.now_ms()
        self.port = self.config.brokerServicePort
        self.http_port = self.config.webServicePort
        self.topics = Topics(cluster, self.metadata, self.schemas)
        self.topics.recover(cluster.recovered_paths())
        start_upkeep(self.clock, self.config, self.topics)
        self._producer_names = 0

    # addresses

    @property
    def advertised_address(self) -> str:
        return self.config.advertisedAddress or "localhost"

    @property
    def web_address(self) -> str:
        """host:port of HTTP: the broker's id in Pulsar's texts."""
        return f"{self.advertised_address}:{self.http_port}"

    def listener_url(self, name: str) -> str | None:
        """The pulsar:// URL that LOOKUP answers (advertisedListeners); None for a listener that there is not."""
        listeners = self._listeners
        if name:
            return listeners[name].pulsar or None if name in listeners else None
        if listeners:
            preferred = self.config.internalListenerName or next(iter(listeners))
            return listeners[preferred].pulsar
        return f"pulsar://{self.advertised_address}:{self.port}"

    def listening(self, service_url: str, admin_url: str) -> None:
        """The ports are bound."""
        self.port = urlsplit(service_url).port or self.port
        self.http_port = urlsplit(admin_url).port or self.http_port
        self.topics.web_address = self.web_address

    # sessions

    def open_session(self, address: str, transport: Transport) -> Session:
        session = Session(self, address, transport)
        self.sessions.add(session)
        return session

    def close_session(self, session: Session) -> None:
        self.sessions.discard(session)
        session.close()

    def next_producer_name(self) -> str:
        """A name for a producer that has none, never used before: clients bring theirs back after a restart."""
        name = f"{self.config.clusterName}-{self.cluster.starts_before}-{self._producer_names}"
        self._producer_names += 1
        return name

    def save(self) -> None:
        """Keep what waits for its time: the broker stops."""
        for session in list(self.sessions):
            self.close_session(session)
        self.topics.save()
        self.turn.finish()
