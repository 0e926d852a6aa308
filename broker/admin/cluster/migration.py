"""/admin/v2: whether a cluster, a namespace or the metadata has moved."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.cluster.clusters import CLUSTER, FOLDER
from pulsarium.broker.admin.policies.policy import with_value
from pulsarium.broker.admin.policies.values import BOOL, TEXT, record, request_failed
from pulsarium.broker.auth.needs import SUPERUSER, cluster_policy
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply, nothing
from pulsarium.broker.model.topic.migration import MIGRATION

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
