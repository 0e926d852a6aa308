"""/admin/v2/clusters: this cluster, what is said of others, and whether one, or a namespace, has moved."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.policies.policy import with_value
from pulsarium.broker.auth.needs import ANYBODY, SUPERUSER, cluster_operation, cluster_policy
from pulsarium.broker.broker import Broker
from pulsarium.broker.http.call import Call, wrong_type
from pulsarium.broker.http.errors import AdminError, unexpected_body
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply, nothing
from pulsarium.broker.http.values import BOOL, NAME, TEXT, record, request_failed
from pulsarium.broker.model.topic.migration import MIGRATION

CLUSTER = "/admin/v2/clusters/{cluster}"
FOLDER = "/admin/clusters"
DATA_TYPE = "org.apache.pulsar.common.policies.data.ClusterDataImpl"
FLAGS = ("brokerClientTlsEnabled", "tlsAllowInsecureConnection", "brokerClientTlsEnabledWithKeyStore")
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
    """Every cluster that is known."""
    return sorted({broker.config.clusterName, *broker.metadata.clusters})


def existing_cluster(call: Call, status: int = 412) -> str:
    """Return the name in the path; `status` when there is no such cluster."""
    name = call.parameter("cluster")
    if name not in names(call.broker):
        raise AdminError(status, f"Cluster {name} does not exist.")
    return name


def _over_tls(broker: Broker) -> dict[str, str]:
    """This broker's URLs of the ports that speak TLS."""
    urls = broker.listener_at(broker.advertised_address)
    found = {"serviceUrlTls": urls.https, "brokerServiceUrlTls": urls.pulsar_ssl}
    return {name: url for name, url in found.items() if url}


def data_of(broker: Broker, name: str) -> dict[str, Any]:
    """What is known of a cluster; 404 when nothing is."""
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
            "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
        }
    if kept is None:
        raise AdminError(404, "Cluster does not exist")
    return kept


@route("GET", "/admin/v2/clusters", needs=ANYBODY)
def get_clusters(call: Call) -> Reply:
    """The names of all clusters."""
    return json_reply(names(call.broker))


@route("GET", "/admin/v2/clusters/{cluster}", needs=cluster_operation("GET_CLUSTER"))
def get_cluster(call: Call) -> Reply:
    """The addresses of a cluster."""
    return json_reply(data_of(call.broker, call.parameter("cluster")))


@route("PUT", "/admin/v2/clusters/{cluster}", needs=cluster_operation("CREATE_CLUSTER"))
def create_cluster(call: Call) -> Reply:
    """Tell of another cluster."""
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
def update_cluster(call: Call) -> Reply:
    """Tell of a cluster anew."""
    data = _read(call)
    if data is None:
        raise unexpected_body('Cannot invoke "ClusterDataImpl.checkPropertiesIfPresent()": "clusterData" is null')
    name = call.parameter("cluster")
    data_of(call.broker, name)
    call.broker.metadata.put_cluster(name, data)
    return nothing()


@route("DELETE", "/admin/v2/clusters/{cluster}", needs=cluster_operation("DELETE_CLUSTER"))
def delete_cluster(call: Call) -> Reply:
    """Forget a cluster. The broker's own is told of anew."""
    name = call.parameter("cluster")
    data_of(call.broker, name)
    call.broker.metadata.delete_cluster(name)
    return done()


@route("GET", "/admin/v2/clusters/{cluster}/peers", needs=cluster_operation("GET_PEER_CLUSTER"))
def get_peers(call: Call) -> Reply:
    """The clusters that serve global namespaces together with this one."""
    return json_reply(data_of(call.broker, call.parameter("cluster")).get("peerClusterNames"))


@route("POST", "/admin/v2/clusters/{cluster}/peers", needs=cluster_operation("UPDATE_PEER_CLUSTER"))
def set_peers(call: Call) -> Reply:
    """Name the peers of a cluster."""
    name, broker = call.parameter("cluster"), call.broker
    data = data_of(broker, name)
    peers = call.json_list("java.util.LinkedHashSet<java.lang.String>")
    for peer in peers or ():
        if peer == name:
            raise AdminError(412, f"{peer} itself can't be part of peer-list")
        if peer not in names(broker):
            raise AdminError(412, f"Peer cluster {peer} does not exist")
    broker.metadata.put_cluster(name, _in_order({**data, "peerClusterNames": peers}))
    return done()


def _read(call: Call) -> dict[str, Any] | None:
    data = call.json_object(DATA_TYPE)
    if data is None:
        return None
    for field, value in data.items():
        wanted = bool if field in FLAGS else list if field == "peerClusterNames" else str
        if field in FIELDS and value is not None and not isinstance(value, wanted):
            raise wrong_type(DATA_TYPE, value)
    for field, (scheme, text) in URLS.items():
        for url in (data.get(field) or "").split(","):
            if url and not url.startswith(scheme):
                raise AdminError(400, text)
    return _in_order({**dict.fromkeys(FLAGS, False), **data})


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
def get_migration(call: Call) -> Reply:
    """Whether a cluster has moved, and where to; 404 until that is said."""
    found = call.broker.metadata.records.get(FOLDER, call.parameter("cluster"), MIGRATION)
    if found is None:
        raise AdminError(404, "Cluster does not exist")
    return json_reply(found)


@route("POST", f"{CLUSTER}/migrate", needs=cluster_policy("CLUSTER_MIGRATION", write=True))
def set_migration(call: Call) -> Reply:
    """Say so."""
    url = CLUSTER_URL.read(call)
    migrated = call.flag("migrated")
    if url is None and migrated:
        raise request_failed()
    moved: dict[str, Any] = {"migrated": migrated}
    if url is not None:
        moved = {**moved, "migratedClusterUrl": {**url, "empty": False}}
    call.broker.metadata.records.put(FOLDER, call.parameter("cluster"), MIGRATION, value=moved)
    call.broker.topics.migration.changed()
    return nothing()


@route("POST", "/admin/v2/namespaces/{tenant}/{namespace}/migration", needs=SUPERUSER)
def set_migration_of_namespace(call: Call) -> Reply:
    """Say whether a namespace has moved; one that there is not is nobody's concern."""
    migrated = BOOL.read(call)
    metadata, name = call.broker.metadata, call.namespace
    if name in metadata.namespaces:
        metadata.put_namespace(name, with_value(metadata.namespaces[name], "migrated", migrated or None))
        call.broker.topics.migration.changed()
    return done()


@route("GET", "/admin/v2/metadata/migration/status", needs=SUPERUSER)
def get_status(call: Call) -> Reply:
    """How far the metadata is on its way to another store: it never leaves."""
    return json_reply({"phase": "NOT_STARTED"})


@route("POST", "/admin/v2/metadata/migration/start", needs=SUPERUSER)
def start(call: Call) -> Reply:
    """Move the metadata to another store: refused, as of any store that is not ZooKeeper."""
    if not call.query.get("target", "").strip():
        raise AdminError(400, "Target URL is required")
    raise AdminError(400, NOT_SUPPORTED)
