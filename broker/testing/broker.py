"""A broker in its own thread, for tests. Any thread may call its methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.expectations import AckedExpectation, DeliveredExpectation, Expectation, Produced
from pulsarium.broker.lab.namespaces import create_namespace, create_topic
from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing.checker import BrokerChecker
from pulsarium.broker.testing.lab import BrokerCaptures, BrokerClock, BrokerLinter, BrokerMasks, FaultRules
from pulsarium.broker.testing.thread import LoopThread

if TYPE_CHECKING:
    from pulsarium.broker.cluster import Cluster
    from pulsarium.broker.lab.why import Why

R = TypeVar("R")
TIMEOUT = 5.0  # seconds


class PulsarBroker:
    """The broker of `with pulsarium.broker.running()` and of the fixture `pulsar_broker`."""

    def __init__(self, running: RunningCluster, thread: LoopThread[RunningCluster]) -> None:
        self._running = running
        self._thread = thread
        running.lab.acts.usually = "test"
        self.service_url = running.service_url
        """The URL pulsar://host:port; of the first broker when there are several."""
        self.admin_url = running.admin_url
        """The URL http://host:port."""
        self.service_url_tls = running.service_url_tls
        """The URL pulsar+ssl://host:port, when brokerServicePortTls is set."""
        self.admin_url_tls = running.admin_url_tls
        """The URL https://host:port, when webServicePortTls is set."""
        self.toxiproxy_url = running.toxiproxy_url
        """The URL http://host:port of Toxiproxy's control API, when toxiproxy_port is set."""

    def __repr__(self) -> str:
        return f"<Pulsarium at {self.service_url} and {self.admin_url}>"

    def call(self, function: Callable[[RunningCluster], R]) -> R:
        """Run a plain function in the broker's thread. The function may read everything there, and must not wait."""
        return self._thread.call(function, self._running)

    @property
    def _cluster(self) -> Cluster:
        return self._running.broker.cluster

    # the lab

    @cached_property
    def faults(self) -> FaultRules:
        """Return the rules that inject faults into connections."""
        return FaultRules(self._thread, self._thread.call(lambda: self._running.lab.faults))

    @cached_property
    def clock(self) -> BrokerClock:
        """Return the broker's clock."""
        return BrokerClock(self._thread, self._thread.call(lambda: self._running.lab.clock))

    @cached_property
    def masks(self) -> BrokerMasks:
        """Return the masks that change the broker for some clients."""
        return BrokerMasks(self._thread, self._thread.call(lambda: self._running.lab.masks))

    @cached_property
    def captures(self) -> BrokerCaptures:
        """Return the captures of frames, in files or in memory."""
        return BrokerCaptures(self._thread, self._thread.call(lambda: self._running.lab.captures))

    @cached_property
    def linter(self) -> BrokerLinter:
        """Return the linter that finds mistakes of clients."""
        return BrokerLinter(self._thread, self._thread.call(lambda: self._running.lab.linter))

    @cached_property
    def checker(self) -> BrokerChecker:
        """Return the checker that compares what clients experience with the promises of Pulsar."""
        return BrokerChecker(self.captures, self._running.broker.config.delayedDeliveryTickTimeMillis)

    def why(
        self, topic: str, subscription: str | None = None, message_id: object = None, *, producer: str | None = None
    ) -> Why:
        """Explain why a message was not delivered, by default the next one that no consumer has.

        For a scalable topic (topic://) without a subscription, explain its last and next scaling.

        With `producer`, explain why that producer, or any new one for "", cannot be created or cannot publish. The id
        has the form that clients print, or LEDGER:ENTRY. Raise `WhyError`.
        """
        asked = None if message_id is None else str(message_id)
        return self._thread.call(lambda: self._running.lab.why(topic, subscription, asked, producer))

    # state

    def reset(self) -> None:
        """Delete all topics, subscriptions, policies, faults and masks, and return to the machine's time.

        Clients stay connected, and reconnect their producers and consumers to new topics.
        """
        self._thread.wait(None, self._running.lab.state.reset)

    def snapshot(self, path: str | Path) -> None:
        """Write the whole state to a file. Raise `StorageError`."""
        self._thread.wait(None, self._running.lab.state.snapshot, Path(path))

    def restore(self, path: str | Path) -> None:
        """Replace the whole state by a snapshot. Raise `StorageError`."""
        self._thread.wait(None, self._running.lab.state.restore, Path(path))

    def seed(self, path: str | Path) -> dict[str, int]:
        """Create what a TOML or JSON file describes, where it does not exist yet. Return how much of each was new.

        Raise `SeedError`.
        """
        return self._thread.wait(None, self._running.lab.state.seed, Path(path))

    # brokers of the cluster

    @property
    def service_urls(self) -> Sequence[str]:
        """Return the service URL of each broker of the cluster."""
        return [each.service_url for each in self._running.brokers]

    def kill(self, index: int = 0) -> None:
        """Kill a broker of the cluster: cut off its clients, and close its ports."""
        self._thread.wait(None, self._running.brokers[index].kill)

    def bring_back(self, index: int = 0) -> None:
        """Restart a killed broker on the same ports, with all stored data. Raise `PortInUse`."""
        self._thread.wait(None, self._running.brokers[index].bring_back)

    # namespaces and topics

    def create_namespace(self, name: str, **policies: object) -> str:
        """Create a namespace, and return its name. Policies have their REST names: `deduplicationEnabled=True`.

        The name `tenant/namespace` also creates a missing tenant. A name without a tenant belongs to `public`, with a
        number such as `name-2` when the name is taken. Raise `ValueError` for an invalid policy, or a namespace that
        exists.
        """
        return self._thread.call(create_namespace, self._cluster, name, policies)

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace with its topics, now or after the last client has left. A missing namespace is ignored."""
        self._thread.call(lambda: self._running.lab.leaving.add(name))

    def create_topic(self, topic: str, *, partitions: int = 0) -> str:
        """Create a topic with `partitions`, or without when 0, and return its full name.

        Raise `ValueError` when the topic exists. Topics without partitions need no creation: the first client creates
        them.
        """
        return self._thread.call(create_topic, self._cluster, topic, partitions)

    # assertions

    def assert_produced(self, topic: str, expected: int | Sequence[bytes | str], *, timeout: float = TIMEOUT) -> None:
        """Assert that the topic has exactly this number of messages, or these values in this order.

        Values of a partitioned topic may come in any order. The method waits for the messages. Raise `AssertionError`
        as soon as there are too many, or when some are missing after `timeout` seconds. Messages that retention deleted
        do not count. Messages of transactions count, whether committed or not.
        """
        __tracebackhide__ = True
        self._expect(Produced(self._cluster, topic, expected), timeout)

    def assert_delivered(self, topic: str, subscription: str, count: int = 1, *, timeout: float = TIMEOUT) -> None:
        """Assert that the broker sent at least this number of messages to consumers of the subscription.

        A redelivered message counts again. The method waits for the messages. Raise `AssertionError` after `timeout`
        seconds, and say why the next message was not delivered.
        """
        __tracebackhide__ = True
        self._expect(DeliveredExpectation(self._cluster, topic, subscription, count), timeout)

    def assert_acked(
        self, topic: str, subscription: str, count: int | None = None, *, timeout: float = TIMEOUT
    ) -> None:
        """Assert that exactly this number of messages is acknowledged since the subscription began, or all for None.

        Messages that retention deleted, or that a seek, TTL or a request passed, do not count. The method waits for the
        acknowledgements. Raise `AssertionError` as soon as there are too many, or when some are missing after `timeout`
        seconds, and explain the missing ones.
        """
        __tracebackhide__ = True
        self._expect(AckedExpectation(self._cluster, topic, subscription, count), timeout)

    def _expect(self, expectation: Expectation, timeout: float) -> None:
        __tracebackhide__ = True
        lab = self._cluster.attached(Lab)
        problem = self._thread.wait(None, lambda: lab.changes.problem(expectation, timeout))
        if problem is not None:
            raise AssertionError(problem)
