"""The model's view of `Cluster`: state that all topics share, or all topics of a namespace."""

from __future__ import annotations

from typing import Protocol

from pulsarium.broker.clock import SteeredTime
from pulsarium.broker.model.compaction.compactor import Compactor
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.rate.rates import BrokerLimits, Limits
from pulsarium.proto.topic_name import TopicName


class Context(Stores, Protocol):
    """Stores, limits and the compactor of a cluster."""

    @property
    def compactor(self) -> Compactor | None:
        """Return the compactor that this run was started with, if any."""
        ...

    def of(self, topic: TopicName) -> Context:
        """Return the context of all topics of a topic's namespace, which has the namespace's clock."""
        ...

    def limits_of(self, topic: TopicName) -> BrokerLimits:
        """Return the limits of the broker that serves a topic."""
        ...

    def limits_of_group(self, name: str) -> Limits:
        """Return the limits of a resource group. "" is no group, without limits."""
        ...


class NamespaceContext:
    """The context of a cluster, with the clock of one namespace."""

    def __init__(self, shared: Context, clock: SteeredTime) -> None:
        self.clock = clock
        self._shared = shared
        self.config = shared.config
        self.profile = shared.profile
        self.delay_ticks = shared.delay_ticks
        self.turn = shared.turn
        self.storage = shared.storage
        self.cache = shared.cache
        self.moves = shared.moves
        self.news = shared.news
        self.of = shared.of
        self.next_ledger_id = shared.next_ledger_id
        self.recovered = shared.recovered
        self.recovered_under = shared.recovered_under
        self.limits_of = shared.limits_of
        self.limits_of_group = shared.limits_of_group

    @property
    def compactor(self) -> Compactor | None:
        return self._shared.compactor
