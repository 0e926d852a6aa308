"""`pulsarium admin ns-isolation-policy`."""

from __future__ import annotations

from typing import Any

import click

from pulsarium.cli.admin.command import Group, Values, argument, does, option, shows
from pulsarium.cli.admin.output import java, lines
from pulsarium.cli.admin.values import key_values, split
from pulsarium.rest.data import NamespaceIsolation

CLUSTER, POLICY = argument("cluster"), argument("policy")
_PARAMETERS = {"min_limit", "usage_threshold"}


def _policy(values: Values) -> NamespaceIsolation:
    parameters = key_values(split(values.auto_failover_policy_params))
    if values.auto_failover_policy_type != "min_available":
        raise click.UsageError(f"Unknown auto failover policy type specified : {values.auto_failover_policy_type}")
    if set(parameters) != _PARAMETERS:
        raise click.UsageError(f"Unknown auto failover policy params specified : {java(parameters)}")
    namespaces, primary = split(values.namespaces), split(values.primary)
    for name, given in (("namespaces", namespaces), ("primary", primary)):
        if not given:
            raise click.UsageError(f"unable to parse {name} parameter list: []")
    body: NamespaceIsolation = {
        "namespaces": namespaces,
        "primary": primary,
        "secondary": split(values.secondary),
        "auto_failover_policy": {"parameters": parameters, "policy_type": "min_available"},
    }
    if values.unload_scope is not None:
        body["unload_scope"] = values.unload_scope
    return body


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
        does(
            "set",
            lambda api, v: api.clusters.create_namespace_isolation_policy(v.cluster, v.policy, _policy(v)),
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
        ),
        shows(
            "get",
            lambda api, v: api.clusters.get_namespace_isolation_policy(v.cluster, v.policy),
            "Show a policy.",
            CLUSTER,
            POLICY,
        ),
        shows(
            "list",
            lambda api, v: api.clusters.get_namespace_isolation_policies(v.cluster),
            "List the policies.",
            CLUSTER,
            show=_list,
        ),
        does(
            "delete",
            lambda api, v: api.clusters.delete_namespace_isolation_policy(v.cluster, v.policy),
            "Delete a policy.",
            CLUSTER,
            POLICY,
        ),
        shows(
            "brokers",
            lambda api, v: api.clusters.get_brokers_with_namespace_isolation_policy(v.cluster),
            "Show which brokers have which namespaces.",
            CLUSTER,
            show=lines,
        ),
        shows(
            "broker",
            lambda api, v: api.clusters.get_broker_with_namespace_isolation_policy(v.cluster, v.broker),
            "Show which namespaces one broker has.",
            CLUSTER,
            option("--broker", required=True, metavar="HOST:PORT", help="The broker."),
        ),
    ),
    examples=("ns-isolation-policy list standalone",),
)
