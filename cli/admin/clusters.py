"""`pulsarium admin clusters` and `ns-isolation-policy`."""

from __future__ import annotations

from typing import Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandGroup, CommandsOf, Values, argument, option
from pulsarium.cli.admin.output import java, json_value, lines
from pulsarium.cli.admin.values import key_values, split
from pulsarium.rest.brokers import Brokers
from pulsarium.rest.clusters import Clusters
from pulsarium.rest.data import FailureDomain, NamespaceIsolation
from pulsarium.rest.namespaces import Namespaces
from pulsarium.rest.tenants import Tenants
from pulsarium.rest.topics import Topics

CLUSTER = argument("cluster")
DOMAIN = option("--domain-name", dest="domain", required=True, help="The failure domain.")
of_cluster = CommandsOf(Clusters, CLUSTER)
of_domain = CommandsOf(Clusters, CLUSTER, DOMAIN)
BROKERS = option("--broker-list", metavar="BROKER,...", help="The brokers of the domain.")

# Option, field of ClusterData, help.
_TEXTS = (
    ("--url", "serviceUrl", "The cluster's web service."),
    ("--url-secure", "serviceUrlTls", "The cluster's web service with TLS."),
    ("--broker-url", "brokerServiceUrl", "URL of the cluster's binary service, pulsar://HOST:PORT."),
    (
        "--broker-url-secure",
        "brokerServiceUrlTls",
        "URL of the cluster's binary service with TLS, pulsar+ssl://HOST:PORT.",
    ),
    ("--proxy-url", "proxyServiceUrl", "The proxy in front of the cluster."),
    ("--auth-plugin", "authenticationPlugin", "Authentication plugin for brokers that connect."),
    ("--auth-parameters", "authenticationParameters", "Parameters of that plugin."),
    ("--proxy-protocol", "proxyProtocol", "Routing of the proxy."),
    ("--tls-enable", "brokerClientTlsEnabled", "Connect with TLS."),
    ("--tls-allow-insecure", "tlsAllowInsecureConnection", "Accept any certificate."),
    ("--tls-enable-keystore", "brokerClientTlsEnabledWithKeyStore", "Use a keystore."),
    ("--tls-trust-store-type", "brokerClientTlsTrustStoreType", "Type of the truststore.  [default: JKS]"),
    ("--tls-trust-store", "brokerClientTlsTrustStore", "Path of the truststore."),
    ("--tls-trust-store-pwd", "brokerClientTlsTrustStorePassword", "Password of the truststore."),
    ("--tls-key-store-type", "brokerClientTlsKeyStoreType", "Type of the keystore.  [default: JKS]"),
    ("--tls-key-store", "brokerClientTlsKeyStore", "Path of the keystore."),
    ("--tls-key-store-pwd", "brokerClientTlsKeyStorePassword", "Password of the keystore."),
    ("--tls-trust-certs-filepath", "brokerClientTrustCertsFilePath", "Certificates to trust."),
    ("--tls-key-filepath", "brokerClientKeyFilePath", "Private key of the brokers."),
    ("--tls-certs-filepath", "brokerClientCertificateFilePath", "Certificate of the brokers."),
    ("--tls-factory-plugin", "brokerClientSslFactoryPlugin", "Java class that creates TLS engines."),
    ("--tls-factory-plugin-params", "brokerClientSslFactoryPluginParams", "Parameters of that class."),
    ("--listener-name", "listenerName", "Advertised listener to use."),
)
_DEFAULTS = {
    "brokerClientTlsTrustStoreType": "JKS",
    "brokerClientTlsKeyStoreType": "JKS",
    "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
}
_FLAGS = ("brokerClientTlsEnabled", "tlsAllowInsecureConnection", "brokerClientTlsEnabledWithKeyStore")


def _data_option(name: str, field: str, help: str) -> click.Option:
    if field in _FLAGS:
        return option(name, dest=field.lower(), flag=True, help=help)
    return option(name, dest=field.lower(), type=click.Choice(["SNI"]) if field == "proxyProtocol" else None, help=help)


_DATA = (
    *(_data_option(*row) for row in _TEXTS),
    option(
        "--cluster-config-file",
        type=click.Path(exists=True, dir_okay=False),
        help="Read all of these from a JSON file.",
    ),
)


def _cluster(values: Values) -> Any:
    """Return ClusterData, with the defaults of Pulsar's class."""
    found: dict[str, object] = {}
    if values.cluster_config_file is not None:
        found = _file(values.cluster_config_file)
    for _, name, _ in _TEXTS:
        given = getattr(values, name.lower())
        if given or name in _FLAGS:
            found[name] = given or found.get(name, False)
        elif name in _DEFAULTS:
            found.setdefault(name, _DEFAULTS[name])
    if found["brokerClientTlsEnabledWithKeyStore"]:
        needed = ("brokerClientTlsTrustStoreType", "brokerClientTlsTrustStore", "brokerClientTlsTrustStorePassword")
        if not all(found.get(name) for name in needed):
            raise click.UsageError(
                "You must specify tls-trust-store-type, tls-trust-store and tls-trust-store-pwd"
                " when enable tls-enable-keystore"
            )
    return found


def _file(path: str) -> dict[str, object]:
    import json
    from pathlib import Path

    try:
        found = json.loads(Path(path).read_text())
    except ValueError as error:
        raise click.UsageError(f"--cluster-config-file: {path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"--cluster-config-file: {path} holds no JSON object")
    return found


async def _delete(api: Api, values: Values) -> None:
    if values.all:
        for tenant in await Tenants(api).get_tenants():
            await _delete_tenant(api, tenant)
    await Clusters(api).delete_cluster(values.cluster)


async def _delete_tenant(api: Api, tenant: str) -> None:
    for namespace in await Namespaces(api).get_namespaces(tenant):
        for topic in await Topics(api).get_partitioned_topic_list(namespace):
            await Topics(api).delete_partitioned_topic(topic, force=True)
        for topic in await Topics(api).get_list(namespace):
            await Topics(api).delete(topic, force=True)
        await Namespaces(api).delete_namespace(namespace, force=True)
    await Tenants(api).delete_tenant(tenant)


async def _list(api: Api, values: Values) -> list[str]:
    names = await Clusters(api).get_clusters()
    if not values.current:
        return names
    current = (await Brokers(api).get_runtime_configurations() or {}).get("clusterName")
    return [f"{name}(*)" if name == current else name for name in names]


def _migration(values: Values) -> Any:
    fields = {
        "serviceUrl": values.service_url,
        "serviceUrlTls": values.service_url_secure,
        "brokerServiceUrl": values.broker_url,
        "brokerServiceUrlTls": values.broker_url_secure,
    }
    return {**{name: value for name, value in fields.items() if value is not None}, "empty": False}


def _brokers(values: Values) -> FailureDomain:
    return {"brokers": split(values.broker_list)} if values.broker_list else {}


def _domains(data: Any, values: Values) -> str:
    return "\n".join(
        f"{name}    FailureDomainImpl(brokers={java(domain.get('brokers'))})" for name, domain in (data or {}).items()
    )


_CLUSTERS = (
    of_cluster.shows("get", Clusters.get_cluster, "Show a cluster."),
    of_cluster.does(
        "create",
        Clusters.create_cluster,
        "Register a cluster.",
        *_DATA,
        example="east --url http://east:8080 --broker-url pulsar://east:6650",
        data=_cluster,
    ),
    of_cluster.does("update", Clusters.update_cluster, "Replace the settings of a cluster.", *_DATA, data=_cluster),
    AdminCommand(
        "delete",
        "Delete a cluster.",
        _delete,
        (CLUSTER, option("--all", "-a", flag=True, help="Delete all tenants, namespaces and topics first.")),
    ),
    AdminCommand(
        "list",
        "List the clusters.",
        _list,
        (option("--current", "-c", flag=True, help="Mark the broker's own cluster with (*)."),),
        lines,
    ),
    of_cluster.does(
        "update-peer-clusters",
        Clusters.update_peer_cluster_names,
        "Set the peers of a cluster.",
        option("--peer-clusters", required=True, metavar="CLUSTER,...", help="The peers; '' for none."),
        peers=lambda v: split(v.peer_clusters),
    ),
    of_cluster.shows("get-cluster-migration", Clusters.get_cluster_migration, "Show the migration of a cluster."),
    of_cluster.does(
        "update-cluster-migration",
        Clusters.update_cluster_migration,
        "Set the migration of a cluster.",
        option("--migrated", flag=True, help="Mark the cluster as migrated."),
        option("--service-url", help="Web service of the new cluster."),
        option("--service-url-secure", help="The new cluster's web service with TLS."),
        option("--broker-url", help="URL of the new cluster's binary service, pulsar://HOST:PORT."),
        option("--broker-url-secure", help="URL of the new cluster's binary service with TLS, pulsar+ssl://HOST:PORT."),
        to=_migration,
    ),
    of_cluster.shows(
        "get-peer-clusters", Clusters.get_peer_cluster_names, "List the peers of a cluster.", show=json_value
    ),
    of_domain.shows("get-failure-domain", Clusters.get_failure_domain, "Show a failure domain."),
    of_domain.does(
        "create-failure-domain", Clusters.create_failure_domain, "Create a failure domain.", BROKERS, data=_brokers
    ),
    of_domain.does(
        "update-failure-domain", Clusters.update_failure_domain, "Replace a failure domain.", BROKERS, data=_brokers
    ),
    of_domain.does("delete-failure-domain", Clusters.delete_failure_domain, "Delete a failure domain."),
    of_cluster.shows("list-failure-domains", Clusters.get_failure_domains, "List the failure domains.", show=_domains),
)


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


def _policies(data: Any, values: Values) -> str:
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


_ISOLATION = (
    of_policy.does(
        "set",
        Clusters.create_namespace_isolation_policy,
        "Create or replace a policy.",
        option("--namespaces", many=True, required=True, metavar="REGEX,...", help="The namespaces."),
        option("--primary", many=True, required=True, metavar="REGEX,...", help="The brokers that serve them."),
        option(
            "--secondary",
            many=True,
            metavar="REGEX,...",
            help="The brokers that serve them when the primary brokers fail.",
        ),
        option("--auto-failover-policy-type", required=True, metavar="min_available", help="The rule for failover."),
        option(
            "--auto-failover-policy-params",
            many=True,
            required=True,
            metavar="min_limit=N,usage_threshold=N",
            help="Fail over below min_limit primary brokers; a broker above usage_threshold percent does not count.",
        ),
        option(
            "--unload-scope",
            type=click.Choice(["all_matching", "none", "changed"]),
            help="Unload these namespaces, so that the policy applies at once.",
        ),
        data=_policy,
    ),
    of_policy.shows("get", Clusters.get_namespace_isolation_policy, "Show a policy."),
    of_cluster.shows("list", Clusters.get_namespace_isolation_policies, "List the policies.", show=_policies),
    of_policy.does("delete", Clusters.delete_namespace_isolation_policy, "Delete a policy."),
    of_cluster.shows(
        "brokers",
        Clusters.get_brokers_with_namespace_isolation_policy,
        "Show the brokers and their namespaces.",
        show=lines,
    ),
    of_cluster.shows(
        "broker",
        Clusters.get_broker_with_namespace_isolation_policy,
        "Show the namespaces of one broker.",
        option("--broker", required=True, metavar="HOST:PORT", help="The broker."),
    ),
)

GROUPS = {
    "clusters": CommandGroup(_CLUSTERS, examples=("clusters list", "clusters get standalone")),
    "ns-isolation-policy": CommandGroup(_ISOLATION, examples=("ns-isolation-policy list standalone",)),
}
