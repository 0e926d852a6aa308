"""A broker in another process, for tests: the methods of `PulsarBroker` over HTTP."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import quote

from pulsarium.broker.lab.state import SeedError
from pulsarium.broker.lab.why import NotThere, Why, WhyError
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.testing.checker import BrokerChecker
from pulsarium.broker.testing.http import NOT_FOUND, RemoteRefusal
from pulsarium.broker.testing.remote_lab import RemoteClock, RemoteTaps
from pulsarium.proto.topic_name import TopicName

ONLY_HERE: Final = (
    "only a broker in the process of the test has {name}: {instead}. For a broker of its own, mark the test with an "
    "option, such as @pytest.mark.pulsar(brokers=1), or run it without pulsarium exec and --pulsar-url"
)
INSTEAD: Final[Mapping[str, str]] = {
    "call": "send a request to the broker's admin_url",
    "service_urls": "read the URLs of the brokers from `pulsarium serve --ready-file`",
    "kill": "other tests share this broker",
    "bring_back": "other tests share this broker",
}
TIMEOUT: Final = 5.0  # seconds
UNMET: Final = 417  # the status of /lab/expect for an expectation that is not met


class NotOverHttp(AttributeError):
    """A method that only a broker in the test's own process has. The text says what to do instead."""


class RemoteBroker(RemoteTaps):
    """A broker that runs elsewhere, and that other tests may use at the same time.

    Methods of `PulsarBroker` that need the broker's own process raise `NotOverHttp`.
    """

    def __init__(self, admin_url: str) -> None:
        super().__init__(admin_url)
        try:
            self._http.call("GET", "/lab/clock")
        except RemoteRefusal as refused:
            raise ConnectionError(f"the broker at {admin_url} has no lab ({refused}): name one of Pulsarium") from None
        self.service_url = str(self._http.call("GET", "/lookup/v2/topic/persistent/public/default/x")["brokerUrl"])
        """The URL pulsar://host:port."""

    def __repr__(self) -> str:
        return f"<Pulsarium at {self.service_url} and {self.admin_url}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name in INSTEAD:
            raise NotOverHttp(ONLY_HERE.format(name=name, instead=INSTEAD[name]))
        raise AttributeError(f"a broker has no {name}")

    @cached_property
    def clock(self) -> RemoteClock:
        """Return the broker's clock."""
        return RemoteClock(self._http)

    @cached_property
    def checker(self) -> BrokerChecker:
        """Return the checker that compares what clients experience with the promises of Pulsar."""
        settings = self._http.call("GET", "/admin/v2/brokers/configuration/runtime")
        return BrokerChecker(self.captures, int(settings["delayedDeliveryTickTimeMillis"]))

    def why(
        self, topic: str, subscription: str | None = None, message_id: object = None, *, producer: str | None = None
    ) -> Why:
        """Explain why a message was not delivered. See `PulsarBroker.why`. Raise `WhyError`."""
        asked = {"topic": topic, "subscription": subscription, "messageId": message_id, "producer": producer}
        try:
            query = {name: value for name, value in asked.items() if value is not None}
            return Why(**self._http.call("GET", "/lab/why", query=query))
        except RemoteRefusal as refused:
            raise (NotThere if refused.status == NOT_FOUND else WhyError)(str(refused)) from None

    def assert_produced(self, topic: str, expected: int | Sequence[bytes | str], *, timeout: float = TIMEOUT) -> None:
        """Assert that the topic has exactly this number of messages, or these values in this order.

        See `PulsarBroker.assert_produced`. Raise `AssertionError` after `timeout` seconds.
        """
        __tracebackhide__ = True
        if isinstance(expected, int):
            self._expect(topic=topic, state="produced", count=expected, timeout=timeout)
            return
        values = [each.encode() if isinstance(each, str) else each for each in expected]
        texts = [b64encode(each).decode() for each in values]
        self._expect(topic=topic, state="produced", values=texts, timeout=timeout)

    def assert_delivered(self, topic: str, subscription: str, count: int = 1, *, timeout: float = TIMEOUT) -> None:
        """Assert that the broker sent at least this number of messages to consumers of the subscription.

        See `PulsarBroker.assert_delivered`. Raise `AssertionError` after `timeout` seconds.
        """
        __tracebackhide__ = True
        self._expect(topic=topic, subscription=subscription, state="delivered", count=count, timeout=timeout)

    def assert_acked(
        self, topic: str, subscription: str, count: int | None = None, *, timeout: float = TIMEOUT
    ) -> None:
        """Assert that exactly this number of messages is acknowledged, or all for None.

        See `PulsarBroker.assert_acked`. Raise `AssertionError` after `timeout` seconds.
        """
        __tracebackhide__ = True
        self._expect(topic=topic, subscription=subscription, state="acked", count=count, timeout=timeout)

    def _expect(self, **asked: object) -> None:
        __tracebackhide__ = True
        try:
            self._http.call("POST", "/lab/expect", asked)
        except RemoteRefusal as refused:
            raise (AssertionError if refused.status == UNMET else ValueError)(str(refused)) from None

    def snapshot(self, path: str | Path) -> None:
        """Write the whole state to a file. Raise `StorageError`."""
        Path(path).write_bytes(self._stored("/lab/snapshot", b""))

    def restore(self, path: str | Path) -> None:
        """Replace the whole state by a snapshot, also that of other tests. Raise `StorageError`."""
        self._stored("/lab/restore", Path(path).read_bytes())

    def _stored(self, path: str, data: bytes) -> bytes:
        try:
            return self._http.send("POST", path, data, media_type="application/octet-stream").body
        except RemoteRefusal as refused:
            raise StorageError(str(refused)) from None

    def seed(self, path: str | Path) -> dict[str, int]:
        """Create what a TOML or JSON file describes, where it does not exist yet. Return how much of each was new.

        Raise `SeedError`.
        """
        try:
            said = self._http.send("POST", "/lab/seed", Path(path).read_bytes())
        except RemoteRefusal as refused:
            raise SeedError(str(refused)) from None
        new: dict[str, int] = json.loads(said.body)
        return new

    def reset(self) -> None:
        """Delete all topics, subscriptions, policies, faults and masks, also those of other tests."""
        self._http.call("POST", "/lab/reset")

    def create_namespace(self, name: str, **policies: object) -> str:
        """Create a namespace, and return its name. See `PulsarBroker.create_namespace`."""
        try:
            made = self._http.call("POST", "/lab/namespaces", {"name": name, "policies": policies})
        except RemoteRefusal as refused:
            raise ValueError(str(refused)) from None
        return str(made["name"])

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace with its topics, now or after the last client has left. A missing namespace is ignored."""
        self._http.call("DELETE", f"/lab/namespaces/{quote(name)}")

    def create_topic(self, topic: str, *, partitions: int = 0) -> str:
        """Create a topic with `partitions`, or without when 0, and return its full name. Raise `ValueError`."""
        name = TopicName.parse(topic)
        path = f"/admin/v2/{name.domain}/{name.namespace_name}/{quote(name.local_name, safe='')}"
        try:
            self._http.call("PUT", f"{path}/partitions" if partitions else path, partitions or None)
        except RemoteRefusal as refused:
            raise ValueError(str(refused)) from None
        return str(name)
