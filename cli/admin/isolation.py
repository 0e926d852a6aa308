"""`pulsarium admin ns-isolation-policy`."""

from typing import Any

import click

from .command import Group, Values, argument, delete, get, option, post
from .output import java, lines
from .values import key_values, split

CLUSTER, POLICY = argument("cluster"), argument("policy")
_PARAMETERS = {"min_limit", "usage_threshold"}


def _policy(values: Values) -> dict[str, object]:
    parameters = key_values(split(values.auto_failover_policy_params))
    if values.auto_failover_policy_type != "min_available":
        raise click.UsageError(f"Unknown auto failover policy type specified : {values.auto_failover_policy_type}")
    if set(parameters) != _PARAMETERS:
        raise click.UsageError(f"Unknown auto failover policy params specified : {java(parameters)}")
    namespaces, primary = split(values.namespaces), split(values.primary)
    for name, given in (("namespaces", namespaces), ("primary", primary)):
        if not given:
            raise click.UsageError(f"unable to parse {name} parameter list: []")
    body: dict[str, object] = {
        "namespaces": namespaces,
        "primary": primary,
        "secondary": split(values.secondary),
        "auto_failover_policy": {"parameters": parameters, "policy_type": "min_available"},
    }
    return body if values.unload_scope is None else {**body, "unload_scope": values.unload_scope}


def _list(data: Any, values: Values) -> str:
    shown = []
    for name, policy in (data or {}).items():
        failover = policy.get("auto_failover_policy") or {}
        inner = f"policyType={failover.get('policy_type')}, parameters={java(failover.get('parameters'))}"
        shown.append(
            f"{name}    NamespaceIsolationDataImpl(namespaces={java(policy.get('namespaces'))}, "
            f"primary={java(policy.get('primary'))}, secondary={java(policy.get('secondary'))}, "
            f"autoFailoverPolicy=AutoFailoverPolicyDataImpl({inner}), unloadScope={java(policy.get('unload_scope'))})"
        )
    return "\n".join(shown)


GROUP = Group(
    "ns-isolation-policy",
    "Isolation policies: which namespaces go to which brokers.",
    (
        post(
            "set",
            "clusters/{cluster}/namespaceIsolationPolicies/{policy}",
            "Create or replace a policy.",
            CLUSTER,
            POLICY,
            option("--namespaces", many=True, required=True, metavar="REGEX,...", help="The namespaces."),
            option("--primary", many=True, required=True, metavar="REGEX,...", help="Brokers they go to."),
            option("--secondary", many=True, metavar="REGEX,...", help="Brokers they go to when those fail."),
            option("--auto-failover-policy-type", required=True, metavar="min_available", help="When that is."),
            option(
                "--auto-failover-policy-params",
                many=True,
                required=True,
                metavar="min_limit=N,usage_threshold=N",
                help="How many primary brokers it takes, and the load in percent that counts as none.",
            ),
            option(
                "--unload-scope",
                type=click.Choice(["all_matching", "none", "changed"]),
                help="Which namespaces are unloaded so that it holds at once.",
            ),
            body=_policy,
        ),
        get("get", "clusters/{cluster}/namespaceIsolationPolicies/{policy}", "Show a policy.", CLUSTER, POLICY),
        get("list", "clusters/{cluster}/namespaceIsolationPolicies", "List the policies.", CLUSTER, show=_list),
        delete("delete", "clusters/{cluster}/namespaceIsolationPolicies/{policy}", "Delete a policy.", CLUSTER, POLICY),
        get(
            "brokers",
            "clusters/{cluster}/namespaceIsolationPolicies/brokers",
            "Show which brokers have which namespaces.",
            CLUSTER,
            show=lines,
        ),
        get(
            "broker",
            "clusters/{cluster}/namespaceIsolationPolicies/brokers/{broker}",
            "Show which namespaces one broker has.",
            CLUSTER,
            option("--broker", required=True, metavar="HOST:PORT", help="The broker."),
        ),
    ),
    examples=("ns-isolation-policy list standalone",),
)
