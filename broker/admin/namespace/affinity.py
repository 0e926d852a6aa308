"""/admin/v2/namespaces: which bookies and brokers a namespace keeps to or from: its local policies. Kept and shown."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.cluster import clusters
from pulsarium.broker.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.admin.policies.policy import with_value
from pulsarium.broker.admin.policies.values import DATA, TEXT, record
from pulsarium.broker.auth.needs import SUPERUSER, namespace_policy
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply, nothing, text_reply
from pulsarium.broker.model.namespace.metadata import LOCAL_POLICIES

BOOKIES = "bookieAffinityGroup"
ANTI = "namespaceAntiAffinityGroup"
PATH_OF_BOOKIES = f"{NAMESPACE}/persistence/bookieAffinity"
READ = namespace_policy("ANTI_AFFINITY", write=False)
WRITE = namespace_policy("ANTI_AFFINITY", write=True)
GROUPS = record(
    f"{DATA}.BookieAffinityGroupData",
    {"bookkeeperAffinityGroupPrimary": TEXT, "bookkeeperAffinityGroupSecondary": TEXT},
)


def local_policies(call: Call) -> dict[str, Any] | None:
    """What is kept of the namespace in the path, None for nothing."""
    found: dict[str, Any] | None = call.broker.metadata.records.get(LOCAL_POLICIES, call.namespace)
    return found


def keep(call: Call, name: str, value: Any) -> Reply:
    """Keep it there; None takes it away."""
    changed = with_value(local_policies(call) or {}, name, value)
    call.broker.metadata.records.put(LOCAL_POLICIES, call.namespace, value=changed)
    return done()


# bookies


def _existing(call: Call) -> None:
    if call.namespace not in call.broker.metadata.namespaces:
        raise AdminError(404, "Namespace not found")


@route("GET", PATH_OF_BOOKIES, needs=SUPERUSER)
def get_bookie_affinity(call: Call) -> Reply:
    """The groups of bookies that its messages go to."""
    _existing(call)
    kept = local_policies(call)
    if kept is None:
        raise AdminError(404, "Namespace local-policies does not exist")
    return json_reply(kept[BOOKIES]) if BOOKIES in kept else nothing()


@route("POST", PATH_OF_BOOKIES, needs=SUPERUSER)
def set_bookie_affinity(call: Call) -> Reply:
    """Name them."""
    groups = GROUPS.read(call)
    _existing(call)
    return keep(call, BOOKIES, groups)


@route("DELETE", PATH_OF_BOOKIES, needs=SUPERUSER)
def delete_bookie_affinity(call: Call) -> Reply:
    """Forget them."""
    _existing(call)
    return keep(call, BOOKIES, None) if local_policies(call) is not None else done()


# brokers


@route("GET", f"{NAMESPACE}/antiAffinity", needs=READ)
def get_anti_affinity(call: Call) -> Reply:
    """The group of namespaces that should not be served together, as the text that was sent."""
    group = (local_policies(call) or {}).get(ANTI)
    return nothing() if group is None else text_reply(group)


@route("POST", f"{NAMESPACE}/antiAffinity", needs=WRITE)
def set_anti_affinity(call: Call) -> Reply:
    """Put it into one. The body is the name, whatever it looks like; the namespace need not exist."""
    group = call.body.decode("utf-8", "replace")
    if not group.strip():
        raise AdminError(412, "Anti-affinity group can't be empty")
    return keep(call, ANTI, group)


@route("DELETE", f"{NAMESPACE}/antiAffinity", needs=WRITE)
def delete_anti_affinity(call: Call) -> Reply:
    """Take it out."""
    return keep(call, ANTI, None) if local_policies(call) is not None else done()


@route("GET", "/admin/v2/namespaces/{cluster}/antiAffinity/{group}", needs=READ)
def get_namespaces_of_group(call: Call) -> Reply:
    """The namespaces of a tenant that are in a group."""
    tenant, cluster = call.query.get("tenant"), call.parameter("cluster")
    if tenant is None:
        raise AdminError(400, "Tenant should not be null")
    if cluster not in clusters.names(call.broker):
        raise AdminError(412, f"Cluster {cluster} does not exist.")
    metadata, group = call.broker.metadata, call.parameter("group").lower()
    kept = metadata.records.inside(LOCAL_POLICIES)
    groups = {name: kept.get(name, {}).get(ANTI) for name in metadata.namespaces_of(tenant)}
    return json_reply([name for name, found in groups.items() if found is not None and found.lower() == group])
