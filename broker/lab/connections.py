"""The connections that the lab taps: the sessions of a cluster, or the connections that a proxy carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from pulsarium.broker.cluster import Broker, Cluster
from pulsarium.broker.session.outgoing import Frame, Tap
from pulsarium.broker.session.session import Sessions, sessions_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName


class NamedTopic(Protocol):
    """The topic of a producer or of a subscription."""

    @property
    def name(self) -> TopicName: ...


class NamedProducer(Protocol):
    """A producer, as rules know it."""

    @property
    def name(self) -> str: ...
    @property
    def topic(self) -> NamedTopic: ...


class NamedSubscription(Protocol):
    """A subscription, as rules know it."""

    @property
    def name(self) -> str: ...
    @property
    def topic(self) -> NamedTopic: ...


class NamedConsumer(Protocol):
    """A consumer, as rules know it."""

    @property
    def name(self) -> str: ...
    @property
    def subscription(self) -> NamedSubscription: ...
    @property
    def type(self) -> int:
        """Return the type of its subscription, a `CommandSubscribe.SubType`."""
        ...


class Connection(Protocol):
    """A connection with frames of two directions. Its tap sees and changes them."""

    findings: int
    """Rules of the protocol that the linter saw the client break."""
    fault_hits: int

    @property
    def broker(self) -> Broker:
        """Return the broker that the connection belongs to: in a proxy, the stand-in that has the lab."""
        ...

    @property
    def address(self) -> str: ...
    @property
    def client_version(self) -> str: ...
    @property
    def producers(self) -> Mapping[int, NamedProducer]: ...
    @property
    def waiting_producers(self) -> Mapping[int, NamedProducer]: ...
    @property
    def consumers(self) -> Mapping[int, NamedConsumer]: ...
    @property
    def tap(self) -> Tap | None: ...
    @tap.setter
    def tap(self, tap: Tap | None) -> None: ...

    def heard(self) -> None:
        """Note a sign of life of the client."""
        ...

    def hand_on(self, frames: Iterable[Frame]) -> None:
        """Hand frames of the client to the broker, past the tap. Copies of a frame are one object."""
        ...

    def send_on(self, parts: Iterable[bytes]) -> None:
        """Send frames of the broker to the client, past the tap. Copies of a frame are one object."""
        ...

    def command(self, command: pb.BaseCommand) -> None:
        """Send a frame to the client in the broker's place, through the tap."""
        ...

    def close(self, reason: str = "") -> None:
        """Close the connection. Bytes that wait for the client are still written."""
        ...


Opened = Callable[[Connection], None]


class Connections(Protocol):
    """The open connections, and those that will be opened."""

    def all(self) -> Iterable[Connection]:
        """Return the open connections."""
        ...

    def listen(self, opened: Opened) -> None:
        """Call `opened` with each new connection."""
        ...

    def ignore(self, opened: Opened) -> None:
        """Call `opened` no more."""
        ...


class ClusterConnections:
    """The sessions of all brokers of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._sessions = cluster.attached(Sessions)

    def all(self) -> Iterator[Connection]:
        for broker in self._cluster.brokers:
            yield from sessions_of(broker)

    def listen(self, opened: Opened) -> None:
        if opened not in self._sessions.opened:
            self._sessions.opened.append(opened)

    def ignore(self, opened: Opened) -> None:
        if opened in self._sessions.opened:
            self._sessions.opened.remove(opened)
