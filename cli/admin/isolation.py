"""`pulsarium admin ns-isolation-policy`."""

from __future__ import annotations

from typing import Any

import click

from pulsarium.cli.admin.command import CommandsOf, Group, Values, argument, option
from pulsarium.cli.admin.output import java, lines
from pulsarium.cli.admin.values import key_values, split
from pulsarium.rest.clusters import Clusters
from pulsarium.rest.data import NamespaceIsolation

CLUSTER = argument("cluster")
of_cluster = CommandsOf(Clusters, CLUSTER)
of_policy = CommandsOf(Clusters, CLUSTER, argument("policy"))
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
        of_policy.does(
            "set",
            Clusters.create_namespace_isolation_policy,
            "Create or replace a policy.",
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
            data=_policy,
        ),
        of_policy.shows("get", Clusters.get_namespace_isolation_policy, "Show a policy."),
        of_cluster.shows("list", Clusters.get_namespace_isolation_policies, "List the policies.", show=_list),
        of_policy.does("delete", Clusters.delete_namespace_isolation_policy, "Delete a policy."),
        of_cluster.shows(
            "brokers",
            Clusters.get_brokers_with_namespace_isolation_policy,
            "Show which brokers have which namespaces.",
            show=lines,
        ),
        of_cluster.shows(
            "broker",
            Clusters.get_broker_with_namespace_isolation_policy,
            "Show which namespaces one broker has.",
            option("--broker", required=True, metavar="HOST:PORT", help="The broker."),
        ),
    ),
    examples=("ns-isolation-policy list standalone",),
)
