"""Facts about a subscription that any Pulsar broker gives, in the JSON of its admin API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """Facts about a topic and one of its subscriptions. A part that nobody could read is empty.

    `policies` are the values that take effect, by the words of their paths. `transactions` has `buffer` and
    `pendingAck`. `peeked` are the headers of the first message of the backlog, or the `status` and `reason` with which
    the broker refused to show it. `now_ms` is the broker's time. A broker that gives no stats refused them, which is
    `refused`: `status` and `reason`.
    """

    topic: str
    subscription: str
    stats: Json
    internal: Json = field(default_factory=dict)
    policies: Json = field(default_factory=dict)
    config: Json = field(default_factory=dict)
    transactions: Json = field(default_factory=dict)
    peeked: Json = field(default_factory=dict)
    now_ms: int | None = None
    refused: Json = field(default_factory=dict)

    @property
    def subscriptions(self) -> Json:
        """Return the stats of all subscriptions of the topic."""
        return self.stats.get("subscriptions") or {}

    @property
    def of_subscription(self) -> Json:
        """Return the stats of the subscription."""
        return self.subscriptions.get(self.subscription) or {}

    def by_subscription(self, subscription: str | None = None) -> list[Facts]:
        """Return the facts for each subscription, or for one, or the facts as they are where the topic has none."""
        names = [name for name in self.subscriptions if subscription in (None, name)]
        return [replace(self, subscription=name) for name in names] or [self]
