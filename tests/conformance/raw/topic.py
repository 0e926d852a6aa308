"""A scalable topic of the raw client: its lookup session, its layout, and the brokers of its segments."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from pulsarium.conformance.adapters.lines import Refusal
from pulsarium.proto.generated import PulsarApi_pb2 as pb

from .wire import SECONDS, Connection, Lost, T, refusal

ATTEMPTS = 60


class Client:
    """The connections to the brokers, and the listeners for commands on each connection."""

    def __init__(self, url: str, bugs: frozenset[str]) -> None:
        self.url = url
        self.bugs = bugs
        self.ids = itertools.count(1)
        self.closed = False
        self._connections: dict[str, Connection] = {}
        self._lock = threading.RLock()
        self.listeners: dict[tuple[Connection, str, int], Callable[[Any, bytes], None]] = {}
        self.at(url)

    def at(self, url: str) -> Connection:
        with self._lock:
            found = self._connections.get(url)
            if found is None or found.lost:
                found = self._connections[url] = Connection(url, self._hear)
            return found

    def reach(self, url: str = "") -> Connection:
        """Connect, and try again for a while."""
        for attempt in range(ATTEMPTS):
            try:
                return self.at(url or self.url)
            except Lost:
                if attempt == ATTEMPTS - 1:
                    raise Refusal("Connect", f"no connection to {url or self.url}") from None
                time.sleep(0.1)
        raise AssertionError

    def _hear(self, connection: Connection, command: Any, entry: bytes) -> None:
        if command is None:
            for key in [key for key in list(self.listeners) if key[0] is connection]:
                listener = self.listeners.pop(key, None)
                if listener is not None:
                    listener(None, b"")
            return
        name = T.Type.Name(command.type)
        body = next(value for field, value in command.ListFields() if field.name != "type")
        for field in ("session_id", "producer_id", "consumer_id"):
            if field in body.DESCRIPTOR.fields_by_name:
                listener = self.listeners.get((connection, field, getattr(body, field)))
                if listener is not None:
                    listener((name, body), entry)

    @property
    def is_m1(self) -> bool:
        return self.reach().server.endswith("M1")

    def close(self) -> None:
        self.closed = True
        for each in list(self._connections.values()):
            each.close()


class Watched:
    """A topic with an open lookup session."""

    def __init__(self, client: Client, topic: str) -> None:
        self.client = client
        self.topic = topic
        self.layout = pb.ScalableTopicDAG()
        self._first = True
        self.changed = threading.Condition()
        self._error: Refusal | None = None
        self._connection: Connection | None = None
        self._session = 0
        self.refresh()

    def refresh(self) -> None:
        """Open the session where it is not open, and wait for the layout."""
        with self.changed:
            if self._connection is not None and not self._connection.lost:
                return
        connection = self.client.reach()
        self._session = 1 if "double-session" in self.client.bugs else next(self.client.ids)
        told = threading.Event()
        self.client.listeners[connection, "session_id", self._session] = lambda said, _: self._hear(said, told)
        self._connection = connection
        connection.say(T.SCALABLE_TOPIC_LOOKUP, session_id=self._session, topic=self.topic)
        if not told.wait(SECONDS):
            raise Refusal("Timeout", "the broker did not tell the layout")
        if self._error is not None:
            raise self._error

    def _hear(self, said: Any, told: threading.Event) -> None:
        with self.changed:
            if said is not None and said[0] == "SCALABLE_TOPIC_UPDATE":
                body = said[1]
                if body.HasField("error"):
                    self._error = refusal(body)
                elif self._first or body.dag.epoch >= self.layout.epoch:
                    if self._first or "ignores-layouts" not in self.client.bugs:
                        self.layout = body.dag
                    self._first = False
            self.changed.notify_all()
        told.set()

    def wait(self, seconds: float = 0.3) -> None:
        """Wait for a change of the layout."""
        with self.changed:
            self.changed.wait(seconds)

    def active(self) -> list[Any]:
        return sorted(
            (each for each in self.layout.segments if each.state == pb.ACTIVE), key=lambda each: each.hash_start
        )

    def name_of(self, segment: Any) -> str:
        if segment.legacy_topic_name:
            return str(segment.legacy_topic_name)
        base = self.topic.replace("topic://", "segment://", 1)
        return f"{base}/{segment.hash_start:04x}-{segment.hash_end:04x}-{segment.segment_id}"

    def broker_of(self, segment: Any) -> Connection:
        for each in self.layout.segment_brokers:
            if each.segment_id == segment.segment_id:
                try:
                    return self.client.at(each.broker_url)
                except Lost:
                    break
        return self.owner_of(self.name_of(segment))

    def owner_of(self, topic: str) -> Connection:
        """Return the connection of a topic's broker, by an ordinary lookup."""
        connection = self.client.reach()
        for _ in range(ATTEMPTS):
            answer = connection.ask(T.LOOKUP, topic=topic, authoritative=False)
            if answer.response == pb.CommandLookupTopicResponse.Connect:
                return self.client.reach(answer.brokerServiceUrl)
            connection = self.client.reach(answer.brokerServiceUrl)
        raise Refusal("Timeout", f"no broker serves {topic}")

    def controller(self) -> Connection:
        return self.client.reach(self.layout.controller_broker_url)

    def segments(self) -> Iterator[Any]:
        yield from self.layout.segments

    def close(self) -> None:
        if self._connection is not None and not self._connection.lost:
            self._connection.say(T.SCALABLE_TOPIC_CLOSE, session_id=self._session)
