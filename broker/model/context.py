"""The model's view of `Cluster`: state that all topics share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pulsarium.broker.model.ledger.stores import Stores

if TYPE_CHECKING:
    from pulsarium.broker.model.compaction.compactor import Compactor
    from pulsarium.broker.model.rate.rates import BrokerLimits, Limits
    from pulsarium.proto.topic_name import TopicName


class Context(Stores, Protocol):
    """Stores, limits and the compactor of a cluster."""

    compactor: Compactor | None  # the compactor that this run was started with

    def limits_of(self, topic: TopicName) -> BrokerLimits:
        """Return the limits of the broker that serves a topic."""
        ...

    def limits_of_group(self, name: str) -> Limits:
        """Return the limits of a resource group. "" is no group, without limits."""
        ...
