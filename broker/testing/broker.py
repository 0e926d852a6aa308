"""A broker in a thread of its own, as a test sees it. Any thread may call all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing.changes import Changes, Expectation
from pulsarium.broker.testing.lab import BrokerCaptures, BrokerClock, BrokerLinter, BrokerMasks, FaultRules
from pulsarium.broker.testing.namespaces import Leaving, create_namespace, create_topic
from pulsarium.broker.testing.thread import LoopThread

if TYPE_CHECKING:
    from pulsarium.broker.cluster import Cluster
    from pulsarium.broker.lab.why import Why

R = TypeVar("R")
TIMEOUT = 5.0  # seconds


class PulsarBroker:
    """What `with pulsarium.broker.running()` and the fixture `pulsar_broker` give."""

    def __init__(self, running: RunningCluster, thread: LoopThread[RunningCluster]) -> None:
        self._running = running
        self._thread = thread
        self.service_url = running.service_url
        """pulsar://host:port; of several brokers the first one's."""
        self.admin_url = running.admin_url
        """http://host:port"""
        self.service_url_tls = running.service_url_tls
        """pulsar+ssl://host:port, where brokerServicePortTls is set."""
        self.admin_url_tls = running.admin_url_tls
        """https://host:port, where webServicePortTls is set."""

    def __repr__(self) -> str:
        return f"<Pulsarium at {self.service_url} and {self.admin_url}>"

    def call(self, function: Callable[[RunningCluster], R]) -> R:
        """Run a plain function where the broker runs: it may look at everything there, and must not wait."""
        return self._thread.call(function, self._running)

    @property
    def _cluster(self) -> Cluster:
        return self._running.broker.cluster

    # the lab

    @cached_property
    def faults(self) -> FaultRules:
        """What goes wrong between clients and the broker."""
        return FaultRules(self._thread, self._thread.call(lambda: self._running.lab.faults))

    @cached_property
    def clock(self) -> BrokerClock:
        """The broker's time."""
        return BrokerClock(self._thread, self._thread.call(lambda: self._running.lab.clock))

    @cached_property
    def masks(self) -> BrokerMasks:
        """What the broker can do, as some of its clients see it."""
        return BrokerMasks(self._thread, self._thread.call(lambda: self._running.lab.masks))

    @cached_property
    def captures(self) -> BrokerCaptures:
        """Every frame, in files or in memory."""
        return BrokerCaptures(self._thread, self._thread.call(lambda: self._running.lab.captures))

    @cached_property
    def linter(self) -> BrokerLinter:
        """What clients do wrong."""
        return BrokerLinter(self._thread, self._thread.call(lambda: self._running.lab.linter))

    def why(self, topic: str, subscription: str, message_id: object = None) -> Why:
        """What becomes of a message for a subscription, by default of the next one that no consumer has.

        The id as clients print theirs, or LEDGER:ENTRY. Raises WhyError.
        """
        asked = None if message_id is None else str(message_id)
        return self._thread.call(lambda: self._running.lab.why(topic, subscription, asked))

    # its state

    def reset(self) -> None:
        """Be as if freshly started: no topics, no faults, no masks, the machine's time.

        Clients that are connected stay so, and come back to topics that are new.
        """
        self._thread.wait(None, self._running.lab.state.reset)

    def snapshot(self, path: str | Path) -> None:
        """Write everything that is kept to a file. Raises StorageError."""
        self._thread.wait(None, self._running.lab.state.snapshot, Path(path))

    def restore(self, path: str | Path) -> None:
        """Go on with what is in such a file. Raises StorageError."""
        self._thread.wait(None, self._running.lab.state.restore, Path(path))

    def seed(self, path: str | Path) -> dict[str, int]:
        """Make what a TOML or JSON file describes, where it is not there yet; how much of each was new.

        Raises SeedError.
        """
        return self._thread.wait(None, self._running.lab.state.seed, Path(path))

    # its life

    @property
    def service_urls(self) -> Sequence[str]:
        """Of each broker of the cluster."""
        return [each.service_url for each in self._running.brokers]

    def kill(self, index: int = 0) -> None:
        """End a broker of the cluster: its clients are cut off, and nobody answers on its ports."""
        self._thread.wait(None, self._running.brokers[index].kill)

    def bring_back(self, index: int = 0) -> None:
        """Start one that was killed, on the same ports, with all that was stored. Raises PortInUse."""
        self._thread.wait(None, self._running.brokers[index].bring_back)

    # namespaces and topics

    def create_namespace(self, name: str, **policies: object) -> str:
        """Make a namespace, and say its name. Policies have the names of the REST API: `deduplicationEnabled=True`.

        `tenant/namespace` makes the tenant too where there is none. Without a tenant it is one of `public` that is not
        there yet: of a name that is taken the next one, `name-2`. Raises ValueError.
        """
        return self._thread.call(create_namespace, self._cluster, name, policies)

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace with its topics: now, or after the last client has left them. Does nothing where there is
        none."""
        self._thread.call(self._leaving.add, name)

    @cached_property
    def _leaving(self) -> Leaving:
        return Leaving(self._cluster)

    def create_topic(self, topic: str, *, partitions: int = 0) -> str:
        """Make a topic, with partitions or (0) without, and say its full name. Raises ValueError when there is one.

        Topics without partitions need not be made: the first client makes them.
        """
        return self._thread.call(create_topic, self._cluster, topic, partitions)

    # assertions

    def assert_produced(self, topic: str, expected: int | Sequence[bytes | str], *, timeout: float = TIMEOUT) -> None:
        """The topic has so many messages, or these in this order (of a partitioned topic in any), and no more.

        Waits for them. Raises AssertionError as soon as there are too many, or when some are missing after `timeout`
        seconds. What retention let go of is not counted, what transactions sent is, however they ended.
        """
        __tracebackhide__ = True
        from pulsarium.broker.testing.expectations import Produced

        self._expect(Produced(self._cluster, topic, expected), timeout)

    def assert_delivered(self, topic: str, subscription: str, count: int = 1, *, timeout: float = TIMEOUT) -> None:
        """Consumers of the subscription were sent so many messages, or more: one that is sent again counts again.

        Waits for them. Raises AssertionError after `timeout` seconds, and says why the next one was not delivered.
        """
        __tracebackhide__ = True
        from pulsarium.broker.testing.expectations import Delivered

        self._expect(Delivered(self._cluster, topic, subscription, count), timeout)

    def assert_acked(
        self, topic: str, subscription: str, count: int | None = None, *, timeout: float = TIMEOUT
    ) -> None:
        """The subscription has so many messages acknowledged since it began, or (None) all that there are.
        What retention let go of is not counted.

        Waits for that. Raises AssertionError as soon as there are too many, or when some are missing after `timeout`
        seconds, and says where they stand.
        """
        __tracebackhide__ = True
        from pulsarium.broker.testing.expectations import Acked

        self._expect(Acked(self._cluster, topic, subscription, count), timeout)

    def _expect(self, expectation: Expectation, timeout: float) -> None:
        __tracebackhide__ = True
        problem = self._thread.wait(None, self._changes.problem, expectation, timeout)
        if problem is not None:
            raise AssertionError(problem)

    @cached_property
    def _changes(self) -> Changes:
        return self._thread.call(Changes, self._cluster.turn)
