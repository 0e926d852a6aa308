"""/admin/v2/clusters/.../namespaceIsolationPolicies: brokers for namespaces. Stored and shown, without an effect."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pulsarium.broker.auth.needs import cluster_policy
from pulsarium.broker.jackson.kinds import STRINGS, TEXT_LIST, choice, record
from pulsarium.broker.model.namespace.metadata import CLUSTERS
from pulsarium.broker.model.namespace.values import DATA
from pulsarium.broker.model.topic.java_regex import NotEvaluable, RegexWork
from pulsarium.broker.model.topic.patterns import JDK, MOST_WORK, PatternError, expression
from pulsarium.broker.web.admin.cluster.clusters import CLUSTER, existing_cluster
from pulsarium.broker.web.admin.namespace.bundles import unload_namespace
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply

POLICIES = "namespaceIsolationPolicies"
ALL = f"{CLUSTER}/{POLICIES}"
READ = cluster_policy("NAMESPACE_ISOLATION", write=False)
WRITE = cluster_policy("NAMESPACE_ISOLATION", write=True)
FIELDS = ("namespaces", "primary", "secondary", "auto_failover_policy", "unload_scope")
PARAMETERS = ("min_limit", "usage_threshold")  # of min_available, the only kind of fail-over

FAILOVER = record(
    f"{DATA}.AutoFailoverPolicyDataImpl",
    {"parameters": STRINGS, "policy_type": choice(f"{DATA}.AutoFailoverPolicyType", ("min_available",))},
)
ISOLATION_TYPE = f"{DATA}.NamespaceIsolationDataImpl"
ISOLATION = record(
    ISOLATION_TYPE,
    {
        **dict.fromkeys(FIELDS[:3], TEXT_LIST),
        "auto_failover_policy": FAILOVER,
        "unload_scope": choice(f"{DATA}.NamespaceIsolationPolicyUnloadScope", ("all_matching", "none", "changed")),
    },
)
Json = Mapping[str, Any]


@route("GET", f"{ALL}/brokers", needs=READ)
def get_brokers(call: Call) -> HttpReply:
    """Return the policies that apply to each broker."""
    policies = kept_of(call, existing_cluster(call))
    members = call.broker.cluster.ownership.alive
    return json_reply([_of_broker(member.web_address, policies) for member in members])


@route("GET", f"{ALL}/brokers/{{broker}}", needs=READ)
def get_broker(call: Call) -> HttpReply:
    """Return the policies that apply, or would apply, to one broker."""
    return json_reply(_of_broker(call.parameter("broker"), kept_of(call, existing_cluster(call))))


def kept_of(call: Call, cluster: str) -> dict[str, Any]:
    """Return all policies of a cluster by name. Raise `AdminError` 404 before any was set."""
    return _known(cluster, call.broker.metadata.records.get(CLUSTERS, cluster, POLICIES))


def shown(call: Call, kept: Json | None) -> HttpReply:
    """Return one policy of a cluster."""
    cluster, name = call.parameter("cluster"), call.parameter("policyName")
    policies = _known(cluster, kept)
    if name not in policies:
        raise AdminError(404, f"Cannot find NamespaceIsolationPolicy {name} for cluster {cluster}")
    return json_reply(policies[name])


def changed(call: Call, kept: Json | None, policy: Json | None) -> Json:
    """Return the policies of a cluster, including the new one. Raise `AdminError` for an invalid policy."""
    name = call.parameter("policyName")
    if policy is None:
        raise unexpected_body(f'Cannot invoke "{ISOLATION_TYPE}.validate()" because "policyData" is null')
    if not _is_valid(policy):
        fields = {field: policy.get(field) for field in FIELDS}
        raise AdminError(400, f"Invalid format of input policy data. policy: {name}; data: {_as_jackson(fields)}")
    return {**(kept or {}), name: policy}


def without(call: Call, kept: Json | None) -> Json:
    """Return the policies of a cluster except one, which need not exist."""
    return {name: policy for name, policy in (kept or {}).items() if name != call.parameter("policyName")}


def _known(cluster: str, policies: Any) -> dict[str, Any]:
    if policies is None:
        raise AdminError(404, f"NamespaceIsolationPolicies for cluster {cluster} does not exist")
    return policies  # type: ignore[no-any-return]


def _of_broker(broker: str, policies: Json) -> Json:
    """Return the policies of a broker. The last policy that matches the broker gives its name."""
    found: dict[str, Any] = {}
    namespaces: list[str] = []
    for name, policy in policies.items():
        primary = _matches(broker, policy["primary"])
        if primary or _matches(broker, policy.get("secondary", ())):
            namespaces += policy["namespaces"]
            found = {"policyName": name, "primary": primary}
    return {"brokerName": broker, "namespaceRegex": namespaces, "primary": False, **found}


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(expression(pattern, JDK)(name, RegexWork(MOST_WORK)) for pattern in patterns)


def _is_valid(policy: Json) -> bool:
    failover = policy.get("auto_failover_policy") or {}
    if not (policy.get("namespaces") and policy.get("primary") and policy.get("secondary") is not None):
        return False
    if failover.get("policy_type") is None or not set(PARAMETERS) <= set(failover.get("parameters", ())):
        return False
    try:
        for pattern in (*policy["namespaces"], *policy["primary"], *policy["secondary"]):
            expression(pattern, JDK)
    except (PatternError, NotEvaluable):
        return False
    return True


def _as_jackson(value: Any, indent: str = "") -> str:
    """Return indented JSON with Jackson's spaces, and lists in one line."""
    if isinstance(value, list):
        return f"[ {', '.join(map(json.dumps, value))} ]" if value else "[ ]"
    if not isinstance(value, dict):
        return json.dumps(value)
    deeper = f"{indent}  "
    lines = [f"{deeper}{json.dumps(key)} : {_as_jackson(each, deeper)}" for key, each in value.items()]
    return "\n".join(["{", ",\n".join(lines), f"{indent}}}"]) if lines else "{ }"


async def unload(call: Call, before: Json | None, now: Json) -> HttpReply:
    """Unload the namespaces of a policy, so that other brokers may serve them.

    The policy's `unload_scope` selects all of its namespaces, or only those whose patterns changed.
    """
    name = call.parameter("policyName")
    policy, old = now[name], (before or {}).get(name, {})
    scope = policy.get("unload_scope")
    if scope == "none":
        return done()
    patterns = {*policy["namespaces"], *old.get("namespaces", ())}
    if scope != "all_matching" and sorted(old.get("primary", policy["primary"])) == sorted(policy["primary"]):
        patterns -= set(policy["namespaces"]) & set(old.get("namespaces", ()))
    for namespace in list(call.broker.metadata.namespaces):
        if _matches(namespace, patterns):
            await unload_namespace(call.broker, namespace)
    return done()
