"""/admin/v2/clusters: this cluster, entries of other clusters, and migrations of clusters and namespaces."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.auth.needs import ANYBODY, SUPERUSER, cluster_operation, cluster_policy
from pulsarium.broker.cluster import Broker
from pulsarium.broker.jackson.kinds import BOOL, TEXT, collection, record
from pulsarium.broker.model.namespace.metadata import CLUSTERS
from pulsarium.broker.model.namespace.values import NAME
from pulsarium.broker.model.topic.migration import MIGRATION
from pulsarium.broker.web.admin.policies.policy import with_value
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, request_failed, unexpected_body
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply, nothing

CLUSTER = "/admin/v2/clusters/{cluster}"
FIELDS = (
    "serviceUrl",
    "serviceUrlTls",
    "brokerServiceUrl",
    "brokerServiceUrlTls",
    "proxyServiceUrl",
    "authenticationPlugin",
    "authenticationParameters",
    "proxyProtocol",
    "peerClusterNames",
    "brokerClientTlsEnabled",
    "tlsAllowInsecureConnection",
    "brokerClientTlsEnabledWithKeyStore",
    "brokerClientTlsTrustStoreType",
    "brokerClientTlsTrustStore",
    "brokerClientTlsTrustStorePassword",
    "brokerClientTlsKeyStoreType",
    "brokerClientTlsKeyStore",
    "brokerClientTlsKeyStorePassword",
    "brokerClientTrustCertsFilePath",
    "brokerClientKeyFilePath",
    "brokerClientCertificateFilePath",
    "brokerClientSslFactoryPlugin",
    "brokerClientSslFactoryPluginParams",
    "listenerName",
)
_DATA = record(
    "org.apache.pulsar.common.policies.data.ClusterDataImpl",
    {
        **dict.fromkeys(FIELDS, TEXT),
        "peerClusterNames": collection("java.util.LinkedHashSet"),
        **dict.fromkeys(FIELDS[9:12], BOOL),
    },
)
URLS = {
    "serviceUrl": ("http://", "Illegal service url, example: http://pulsar.example.com:8080"),
    "serviceUrlTls": ("https://", "Illegal service tls url, example: https://pulsar.example.com:8443"),
    "brokerServiceUrl": ("pulsar://", "Illegal broker service url, example: pulsar://pulsar.example.com:6650"),
    "brokerServiceUrlTls": (
        "pulsar+ssl://",
        "Illegal broker service tls url, example: pulsar+ssl://pulsar.example.com:6651",
    ),
    "proxyServiceUrl": ("pulsar", "Illegal proxy service url, example: pulsar+ssl://ats-proxy.example.com:4443"),
}


def names(broker: Broker) -> list[str]:
    """Return the names of all known clusters."""
    return sorted({broker.config.clusterName, *broker.metadata.clusters})


def existing_cluster(call: Call, status: int = 412) -> str:
    """Return the name in the path. Raise `AdminError` with `status` when there is no such cluster."""
    name = call.parameter("cluster")
    if name not in names(call.broker):
        raise AdminError(status, f"Cluster {name} does not exist.")
    return name


def _over_tls(broker: Broker) -> dict[str, str]:
    """Return this broker's URLs for the ports that speak TLS."""
    urls = broker.listener_at(broker.advertised_address)
    found = {"serviceUrlTls": urls.https, "brokerServiceUrlTls": urls.pulsar_ssl}
    return {name: url for name, url in found.items() if url}


SSL_FACTORY = {"brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory"}


def data_of(broker: Broker, name: str) -> dict[str, Any]:
    """Return the data of a cluster. Raise `AdminError` 404 when there is none."""
    kept = broker.metadata.clusters.get(name)
    if kept is None and name == broker.config.clusterName:
        return {
            "serviceUrl": f"http://{broker.web_address}",
            "brokerServiceUrl": f"pulsar://{broker.advertised_address}:{broker.port}",
            **_over_tls(broker),
            "brokerClientTlsEnabled": False,
            "tlsAllowInsecureConnection": False,
            "brokerClientTlsEnabledWithKeyStore": False,
            "brokerClientTlsTrustStoreType": "JKS",
            "brokerClientTlsKeyStoreType": "JKS",
            **({} if broker.profile.newer_rest else SSL_FACTORY),
        }
    if kept is None:
        raise AdminError(404, "Cluster does not exist")
    return kept


@route("GET", "/admin/v2/clusters", needs=ANYBODY)
def get_clusters(call: Call) -> HttpReply:
    """Return the names of all clusters."""
    return json_reply(names(call.broker))


@route("GET", "/admin/v2/clusters/{cluster}", needs=cluster_operation("GET_CLUSTER"))
def get_cluster(call: Call) -> HttpReply:
    """Return the addresses of a cluster."""
    return json_reply(data_of(call.broker, call.parameter("cluster")))


@route("PUT", "/admin/v2/clusters/{cluster}", needs=cluster_operation("CREATE_CLUSTER"))
def create_cluster(call: Call) -> HttpReply:
    """Create the entry of another cluster."""
    data = _read(call)
    if data is None:
        raise AdminError(400, "cluster data is required")
    name = call.parameter("cluster")
    if not NAME.fullmatch(name):
        raise AdminError(412, "Cluster name is not valid")
    if name in names(call.broker):
        raise AdminError(409, "Cluster already exists")
    call.broker.metadata.put_cluster(name, data)
    return nothing()


@route("POST", "/admin/v2/clusters/{cluster}", needs=cluster_operation("UPDATE_CLUSTER"))
def update_cluster(call: Call) -> HttpReply:
    """Replace the data of a cluster."""
    data = _read(call)
    if data is None:
        raise unexpected_body('Cannot invoke "ClusterDataImpl.checkPropertiesIfPresent()": "clusterData" is null')
    name = call.parameter("cluster")
    data_of(call.broker, name)
    call.broker.metadata.put_cluster(name, data)
    return nothing()


@route("DELETE", "/admin/v2/clusters/{cluster}", needs=cluster_operation("DELETE_CLUSTER"))
def delete_cluster(call: Call) -> HttpReply:
    """Delete the entry of a cluster. The broker's own cluster gets default data again."""
    name = call.parameter("cluster")
    data_of(call.broker, name)
    call.broker.metadata.delete_cluster(name)
    return done()


@route("GET", "/admin/v2/clusters/{cluster}/peers", needs=cluster_operation("GET_PEER_CLUSTER"))
def get_peers(call: Call) -> HttpReply:
    """Return the peers of a cluster, which share global namespaces with it."""
    return json_reply(data_of(call.broker, call.parameter("cluster")).get("peerClusterNames"))


@route("POST", "/admin/v2/clusters/{cluster}/peers", needs=cluster_operation("UPDATE_PEER_CLUSTER"))
def set_peers(call: Call) -> HttpReply:
    """Set the peers of a cluster."""
    name, broker = call.parameter("cluster"), call.broker
    data = data_of(broker, name)
    peers = call.read(collection("java.util.LinkedHashSet"))
    for peer in peers or ():
        if peer == name:
            raise AdminError(412, f"{peer} itself can't be part of peer-list")
        if peer not in names(broker):
            raise AdminError(412, f"Peer cluster {peer} does not exist")
    broker.metadata.put_cluster(name, _in_order({**data, "peerClusterNames": peers}))
    return done()


def _read(call: Call) -> dict[str, Any] | None:
    data: dict[str, Any] | None = call.read(_DATA)
    if data is None:
        return None
    for field, (scheme, text) in URLS.items():
        for url in (data.get(field) or "").split(","):
            if url and not url.startswith(scheme):
                raise AdminError(400, text)
    return data


def _in_order(data: dict[str, Any]) -> dict[str, Any]:
    return {field: data[field] for field in FIELDS if data.get(field) is not None}


CLUSTER_URL = record(
    "org.apache.pulsar.common.policies.data.ClusterPolicies$ClusterUrl",
    dict.fromkeys(("serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls"), TEXT),
)
NOT_SUPPORTED = (
    "Metadata store is not configured for migration. Please ensure you're using a supported source metadata store "
    "(e.g., ZooKeeper)."
)


@route("GET", f"{CLUSTER}/migrate", needs=cluster_policy("CLUSTER_MIGRATION", write=False))
def get_migration(call: Call) -> HttpReply:
    """Return whether a cluster has migrated, and its target. Raise `AdminError` 404 before that is set."""
    found = call.broker.metadata.records.get(CLUSTERS, call.parameter("cluster"), MIGRATION)
    if found is None:
        raise AdminError(404, "Cluster does not exist")
    return json_reply(found)


@route("POST", f"{CLUSTER}/migrate", needs=cluster_policy("CLUSTER_MIGRATION", write=True))
def set_migration(call: Call) -> HttpReply:
    """Set whether a cluster has migrated, and its target."""
    url = call.read(CLUSTER_URL)
    migrated = call.flag("migrated")
    if url is None and migrated:
        raise request_failed()
    is_empty, checks_urls = (
        not any((each or "").strip() for each in (url or {}).values()),
        call.broker.profile.newer_rest,
    )
    if migrated and is_empty and checks_urls:
        raise AdminError(400, "Cluster url must not be empty")
    moved: dict[str, Any] = {"migrated": migrated}
    if url is not None:
        moved = {**moved, "migratedClusterUrl": {**url, "empty": checks_urls and is_empty}}
    call.broker.metadata.records.put(CLUSTERS, call.parameter("cluster"), MIGRATION, value=moved)
    call.broker.topics.migration.changed()
    return nothing()


@route("POST", "/admin/v2/namespaces/{tenant}/{namespace}/migration", needs=SUPERUSER)
def set_migration_of_namespace(call: Call) -> HttpReply:
    """Set whether a namespace has migrated. As in Pulsar, a missing namespace is no error."""
    migrated = call.read(BOOL)
    metadata, name = call.broker.metadata, call.namespace
    if name in metadata.namespaces:
        metadata.put_namespace(name, with_value(metadata.namespaces[name], "migrated", migrated or None))
        call.broker.topics.migration.changed()
    return done()


@route("GET", "/admin/v2/metadata/migration/status", needs=SUPERUSER)
def get_status(call: Call) -> HttpReply:
    """Return the phase of a migration of the metadata store: it never starts."""
    return json_reply({"phase": "NOT_STARTED"})


@route("POST", "/admin/v2/metadata/migration/start", needs=SUPERUSER)
def start(call: Call) -> HttpReply:
    """Refuse to migrate the metadata store, as with any store that is not ZooKeeper."""
    if not call.query.get("target", "").strip():
        raise AdminError(400, "Target URL is required")
    raise AdminError(400, NOT_SUPPORTED)
