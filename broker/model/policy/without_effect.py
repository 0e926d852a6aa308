"""Declare the settings that are stored and shown as in Pulsar, and have no effect here.

The log, the page at / and docs/differences.md take their texts from these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pulsarium.broker.logs import PartLog

log = PartLog("policies")

Json = Mapping[str, Any]
AFFINITIES = ("bookieAffinityGroup", "namespaceAntiAffinityGroup")
MOST_LOGGED = 10_000  # namespaces and topics that are remembered as logged


def is_set(value: Any, cluster: str) -> bool:
    """Return whether a value asks for anything."""
    return value not in (None, False, [], {}, "")


def is_not_negative(value: Any, cluster: str) -> bool:
    """Return whether a threshold asks for anything."""
    return isinstance(value, (int, float)) and value >= 0


def is_forbidden(value: Any, cluster: str) -> bool:
    """Return whether a permission was taken away."""
    return value is False


def names_others(value: Any, cluster: str) -> bool:
    """Return whether a list has other clusters than this one."""
    return isinstance(value, list) and any(each != cluster for each in value)


def has_affinity(value: Any, cluster: str) -> bool:
    """Return whether the local policies of a namespace ask for any affinity."""
    return isinstance(value, dict) and any(value.get(name) for name in AFFINITIES)


class WithoutEffect(NamedTuple):
    """A setting without effect: its stored name, what Pulsar does with it, and why nothing happens here."""

    name: str
    pulsar: str
    why: str
    asks: Callable[[Any, str], bool] = is_set  # whether a value asks for anything, in the cluster of this name


NO_OTHER_CLUSTER = "no message goes to another cluster"
NO_TIERED_STORAGE = "there is no tiered storage; a requested offload ends in ERROR"
NO_BOOKIES = "there are no bookies"

POLICIES = (
    WithoutEffect("replication_clusters", "copies messages to these clusters", NO_OTHER_CLUSTER, names_others),
    WithoutEffect("allowed_clusters", "serves topics in these clusters", NO_OTHER_CLUSTER, names_others),
    WithoutEffect("replicatorDispatchRate", "slows replication down", NO_OTHER_CLUSTER),
    WithoutEffect(
        "is_allow_auto_update_schema_with_replicator",
        "lets replicators register new schemas, in 5.0.1",
        NO_OTHER_CLUSTER,
        is_forbidden,
    ),
    WithoutEffect("offload_policies", "moves old ledgers to tiered storage", NO_TIERED_STORAGE),
    WithoutEffect("offload_threshold", "moves ledgers beyond this size in bytes", NO_TIERED_STORAGE, is_not_negative),
    WithoutEffect("offload_threshold_in_seconds", "moves ledgers of this age", NO_TIERED_STORAGE, is_not_negative),
    WithoutEffect("offload_deletion_lag_ms", "deletes moved ledgers after this time", NO_TIERED_STORAGE),
    WithoutEffect("persistence", "sets the number of bookies, and how often acknowledgements are stored", NO_BOOKIES),
    WithoutEffect(
        "dispatcherPauseOnAckStatePersistentEnabled",
        "stops dispatch while acknowledgements cannot be stored",
        "dispatch goes on, and messages whose acknowledgements are not stored are redelivered after a restart",
    ),
    WithoutEffect(
        "allowed_topic_property_keys_for_metrics", "turns topic properties into labels", "metrics have no such labels"
    ),
    WithoutEffect("latency_stats_sample_rate", "measures latencies", "latencies are not measured"),
)
# by the folder, or by a part of the path
RECORDS: Mapping[str, WithoutEffect] = {
    "/admin/local-policies/": WithoutEffect(
        "bookieAffinity, antiAffinity",
        "chooses the bookies, and spreads namespaces over brokers",
        "bookies and brokers are not chosen by it",
        has_affinity,
    ),
    "/bookies/": WithoutEffect("bookies/racks-info", "spreads messages over racks", NO_BOOKIES),
    "/loadbalance/resource-quota/": WithoutEffect(
        "resource-quotas", "balances load by these quotas", "load is not balanced"
    ),
    "/failureDomain/": WithoutEffect(
        "failureDomains", "spreads namespaces over brokers", "brokers are not chosen by it"
    ),
    "/namespaceIsolationPolicies": WithoutEffect(
        "namespaceIsolationPolicies", "chooses the brokers that serve a namespace", "any broker may serve it"
    ),
}
REPLICATED = WithoutEffect(
    "replicatedSubscriptionStatus", "keeps a subscription the same in all clusters", "no state goes to another cluster"
)
SETTING = WithoutEffect(
    "brokers/configuration", "changes a setting while brokers run", "Pulsarium does not have this setting"
)
FACTS = (*POLICIES, *RECORDS.values(), REPLICATED, SETTING)


class Notices:
    """The settings without effect that are in use, and where. Each is logged once."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._found: dict[str, tuple[WithoutEffect, ...]] = {}
        self._logged: set[tuple[str, str]] = set()

    def __iter__(self) -> Iterator[tuple[str, WithoutEffect]]:
        return ((where, fact) for where, facts in list(self._found.items()) for fact in facts)

    def clear(self) -> None:
        """Forget all settings."""
        self._found.clear()
        self._logged.clear()

    def changed(self, where: str, policies: Json) -> None:
        """Examine the policies of a namespace or a topic. {} is none."""
        self._put(where, tuple(each for each in POLICIES if each.asks(policies.get(each.name), self._cluster)))

    def recorded(self, path: str, value: Any) -> None:
        """Examine another record of an operator. None is a deleted record."""
        for part, fact in RECORDS.items():
            if path.startswith(part) or part in path:
                self._put(path, (fact,) if fact.asks(value, self._cluster) else ())

    def _put(self, where: str, facts: tuple[WithoutEffect, ...]) -> None:
        if not facts:
            self._found.pop(where, None)
            return
        self._found[where] = facts
        for fact in facts:
            if (where, fact.name) not in self._logged and len(self._logged) < MOST_LOGGED:
                self._logged.add((where, fact.name))
                tell(fact, where)


def tell(fact: WithoutEffect, where: object) -> None:
    """Log that a setting has no effect here."""
    log.warning("a setting is stored and has no effect here", what=fact.name, where=where, why=fact.why)
