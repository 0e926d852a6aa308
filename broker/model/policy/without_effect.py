"""Declare what is kept and shown as in Pulsar, and has no effect here.

Declared once: the log, the page at / and docs/differences.md say it in these words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pulsarium.broker.logs import Log

log = Log("policies")

Json = Mapping[str, Any]
AFFINITIES = ("bookieAffinityGroup", "namespaceAntiAffinityGroup")
MOST_LOGGED = 10_000  # namespaces and topics of which is remembered that they were named


def is_set(value: Any, cluster: str) -> bool:
    """Return whether a value asks for anything."""
    return value not in (None, False, [], {}, "")


def is_not_negative(value: Any, cluster: str) -> bool:
    """Return the same of a threshold."""
    return isinstance(value, (int, float)) and value >= 0


def names_others(value: Any, cluster: str) -> bool:
    """Return the same of a list of clusters: this one alone asks for nothing."""
    return isinstance(value, list) and any(each != cluster for each in value)


def has_affinity(value: Any, cluster: str) -> bool:
    """Return the same of the local policies of a namespace."""
    return isinstance(value, dict) and any(value.get(name) for name in AFFINITIES)


class WithoutEffect(NamedTuple):
    """A thing that operators set: its name as it is kept, what Pulsar does with it, and why nothing is done here."""

    name: str
    pulsar: str
    why: str
    asks: Callable[[Any, str], bool] = is_set  # of its value, in a cluster of this name


NO_OTHER_CLUSTER = "no message goes to another cluster"
NO_TIERED_STORAGE = "there is no tiered storage; an offload that is asked for ends in ERROR"
NO_BOOKIES = "there are no bookies"

POLICIES = (
    WithoutEffect("replication_clusters", "copies messages to these clusters", NO_OTHER_CLUSTER, names_others),
    WithoutEffect("allowed_clusters", "serves topics in these clusters", NO_OTHER_CLUSTER, names_others),
    WithoutEffect("replicatorDispatchRate", "slows replication down", NO_OTHER_CLUSTER),
    WithoutEffect("offload_policies", "moves old ledgers to tiered storage", NO_TIERED_STORAGE),
    WithoutEffect("offload_threshold", "moves them when there are so many bytes", NO_TIERED_STORAGE, is_not_negative),
    WithoutEffect("offload_threshold_in_seconds", "moves them at that age", NO_TIERED_STORAGE, is_not_negative),
    WithoutEffect("offload_deletion_lag_ms", "deletes what was moved after that time", NO_TIERED_STORAGE),
    WithoutEffect("persistence", "writes to so many bookies, and keeps acknowledgements so often", NO_BOOKIES),
    WithoutEffect(
        "dispatcherPauseOnAckStatePersistentEnabled",
        "stops dispatch while acknowledgements cannot be kept",
        "dispatch goes on, and what cannot be kept comes again after a restart",
    ),
    WithoutEffect(
        "allowed_topic_property_keys_for_metrics", "makes labels of topic properties", "metrics have no such labels"
    ),
    WithoutEffect("latency_stats_sample_rate", "measures latencies", "latencies are not measured"),
)
# by their folder, or what is between slashes in their path
RECORDS: Mapping[str, WithoutEffect] = {
    "/admin/local-policies/": WithoutEffect(
        "bookieAffinity, antiAffinity",
        "chooses the bookies, and spreads namespaces over brokers",
        "nothing is chosen by it",
        has_affinity,
    ),
    "/bookies/": WithoutEffect("bookies/racks-info", "spreads messages over racks", NO_BOOKIES),
    "/loadbalance/resource-quota/": WithoutEffect(
        "resource-quotas", "is what load is balanced by", "load is not balanced"
    ),
    "/failureDomain/": WithoutEffect("failureDomains", "spreads namespaces over brokers", "nothing is chosen by it"),
    "/namespaceIsolationPolicies": WithoutEffect(
        "namespaceIsolationPolicies", "says which brokers serve a namespace", "any broker may serve it"
    ),
}
REPLICATED = WithoutEffect(
    "replicatedSubscriptionStatus", "keeps a subscription the same in all clusters", "no state goes to another cluster"
)
SETTING = WithoutEffect(
    "brokers/configuration", "changes a setting while brokers run", "this setting of Pulsar is none of Pulsarium"
)
FACTS = (*POLICIES, *RECORDS.values(), REPLICATED, SETTING)


class Notices:
    """Keep track of which of these things are set, and where. Each is logged once."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._found: dict[str, tuple[WithoutEffect, ...]] = {}
        self._logged: set[tuple[str, str]] = set()

    def __iter__(self) -> Iterator[tuple[str, WithoutEffect]]:
        return ((where, fact) for where, facts in list(self._found.items()) for fact in facts)

    def clear(self) -> None:
        """Know nothing."""
        self._found.clear()
        self._logged.clear()

    def changed(self, where: str, policies: Json) -> None:
        """Look at the policies of a namespace or a topic; {}: there are none."""
        self._put(where, tuple(each for each in POLICIES if each.asks(policies.get(each.name), self._cluster)))

    def recorded(self, path: str, value: Any) -> None:
        """Look at what operators say of other things; None: nothing any more."""
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
    """Log that something that was set has no effect here."""
    log.warning("this is kept and has no effect here", what=fact.name, where=where, why=fact.why)
