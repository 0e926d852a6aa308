"""The context of the model: what topics share with all others of their cluster; `Cluster` is it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pulsarium.broker.model.ledger.stores import Stores

if TYPE_CHECKING:
    from pulsarium.broker.model.compaction.compactor import Compactor
    from pulsarium.broker.model.rate.rates import BrokerLimits, Limits
    from pulsarium.proto.topic_name import TopicName


class Context(Stores, Protocol):
    """Stores, limits, and the compactor."""

    compactor: Compactor | None  # the one that this run was asked for

    def limits_of(self, topic: TopicName) -> BrokerLimits:
        """Return the limits of the broker that serves a topic."""
        ...

    def limits_of_group(self, name: str) -> Limits:
        """Return the limits of a resource group; "": none."""
        ...
