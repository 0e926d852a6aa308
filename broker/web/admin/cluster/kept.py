"""Store and show operators' settings of clusters, bundles and namespaces: one row of the table each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pulsarium.broker.auth.needs import SUPERUSER, Needs, cluster_operation, namespace_policy
from pulsarium.broker.jackson.kinds import BOOL, DOUBLE, TEXT, TEXTS, integer, record
from pulsarium.broker.model.namespace.metadata import CLUSTERS, LOCAL_POLICIES, RESOURCE_QUOTAS
from pulsarium.broker.model.namespace.values import DATA
from pulsarium.broker.model.rate.rates import FOLDER as GROUPS
from pulsarium.broker.web.admin.cluster import clusters, isolation
from pulsarium.broker.web.admin.cluster.clusters import CLUSTER, existing_cluster
from pulsarium.broker.web.admin.namespace.bundles import named_bundle
from pulsarium.broker.web.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.web.admin.policies.policy import POLICIES_MISSING, named, with_value
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.registry import Handler, Route, route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply, nothing, text_reply

Key = tuple[str, ...]  # the place of a record: a folder, and names in the folder


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResource:
    """A stored record, or one part of a record, and its REST calls. A missing record is None."""

    name: str  # in the names of the handlers
    about: str
    path: str
    key: Callable[[Call], Key]  # raises the error for a path that names nothing
    read: Callable[[Call], Any]  # the value that was sent
    needs: Needs = SUPERUSER  # for reading, and for calls without needs of their own
    needs_to_set: Needs | None = None
    needs_to_delete: Needs | None = None
    plural: str = ""
    listed_at: str = ""
    listed: Callable[[Call], Any] | None = None  # all records
    missing: str = ""  # the error for a missing record, with the parameters of its path
    shown: Callable[[Call, Any], HttpReply] | None = None  # the answer of a GET, in place of JSON and `missing`
    method: str = "POST"
    changed: Callable[[Call, Any, Any], Any] = lambda call, kept, sent: sent  # value to store; None: no change
    part: str = ""  # the name of this part in a record with several parts
    effect: Callable[[Call, Any, Any], HttpReply | Awaitable[HttpReply]] = lambda call, before, now: done()
    removable: bool = True
    rest: Callable[[Call, Any], Any] = lambda call, kept: None  # the value to store after a removal; None: no record
    removed: HttpReply = field(default_factory=done)


# failure domains: groups of brokers that fail together

DOMAINS = "failureDomain"


def _changed_domain(call: Call, kept: Any, sent: Any) -> Any:
    """Refuse a broker that is in another domain."""
    domains = call.broker.metadata.records.inside(CLUSTERS, call.parameter("cluster"), DOMAINS)
    for other, domain in domains.items() if sent is not None else ():
        both = [broker for broker in domain.get("brokers", ()) if broker in sent.get("brokers", ())]
        if both and other != call.parameter("domainName"):
            raise AdminError(409, f"[{', '.join(both)}] already exists in {other}")
    return sent


def _removed_domain(call: Call, kept: Any) -> None:
    if kept is None:
        raise AdminError(404, "Domain-name {domainName} or cluster {cluster} does not exist".format_map(_named(call)))


def _named(call: Call) -> dict[str, str]:
    return {name: call.parameter(name) for name in call.parameters}


# resource groups: limits that several namespaces share

NO_GROUP = "ResourceGroup does not exist"
GROUP_OF_NAMESPACE = "resource_group_name"
INTEGER, LONG = integer("java.lang.Integer"), integer("java.lang.Long", 64)
LIMITS = {
    "publishRateInMsgs": INTEGER,
    "publishRateInBytes": LONG,
    "dispatchRateInMsgs": INTEGER,
    "dispatchRateInBytes": LONG,
}
UNLIMITED = dict.fromkeys(LIMITS, -1)


def _changed_group(call: Call, kept: Any, sent: Any) -> Any:
    if sent is None:
        raise unexpected_body("null")
    return {**(kept or UNLIMITED), **sent}


def _limit_anew(call: Call, before: Any, now: Any) -> HttpReply:
    call.broker.topics.settings_changed()
    return done()


def _removed_group(call: Call, kept: Any) -> None:
    """Refuse to delete a group that a namespace is in."""
    name = call.parameter("resourcegroup")
    if any(policies.get(GROUP_OF_NAMESPACE) == name for policies in call.broker.metadata.namespaces.values()):
        raise AdminError(412, "ResourceGroup is in use")
    if kept is None:
        raise unexpected_body(f"path {GROUPS}/{name} not found.", AdminError(404, NO_GROUP))


# resource quotas: the load that a bundle is expected to have

DEFAULT = (RESOURCE_QUOTAS, "default")
STANDARD = {
    "msgRateIn": 40.0,
    "msgRateOut": 120.0,
    "bandwidthIn": 100000.0,
    "bandwidthOut": 300000.0,
    "memory": 80.0,
    "dynamic": True,
}
NUMBERS = tuple(STANDARD)[:5]
QUOTA = record(
    f"{DATA}.ResourceQuota",
    {**dict.fromkeys(NUMBERS, DOUBLE), "dynamic": BOOL},
    {**dict.fromkeys(NUMBERS, 0.0), "dynamic": True},
)


def _shown_quota(call: Call, kept: Any) -> HttpReply:
    default = call.broker.metadata.records.get(*DEFAULT) or STANDARD
    return json_reply(default if kept is None else kept)


# affinity: the local policies of a namespace

BOOKIES = "bookieAffinityGroup"
ANTI = "namespaceAntiAffinityGroup"
AFFINITY = record(
    f"{DATA}.BookieAffinityGroupData",
    {"bookkeeperAffinityGroupPrimary": TEXT, "bookkeeperAffinityGroupSecondary": TEXT},
)
READ_ANTI = namespace_policy("ANTI_AFFINITY", write=False)


def _existing_namespace(call: Call) -> Key:
    if call.namespace not in call.broker.metadata.namespaces:
        raise AdminError(404, "Namespace not found")
    return LOCAL_POLICIES, call.namespace


def _shown_bookies(call: Call, kept: Any) -> HttpReply:
    if kept is None:
        raise AdminError(404, "Namespace local-policies does not exist")
    return json_reply(kept[BOOKIES]) if BOOKIES in kept else nothing()


def _shown_anti_affinity(call: Call, kept: Any) -> HttpReply:
    group = (kept or {}).get(ANTI)
    return nothing() if group is None else text_reply(group)


def _read_anti_affinity(call: Call) -> str:
    """Read the group's name, which is the raw body."""
    group = call.body.decode("utf-8", "replace")
    if not group.strip():
        raise AdminError(412, "Anti-affinity group can't be empty")
    return group


RESOURCES = (
    KeptResource(
        name="failure_domain",
        about="Brokers that fail together.",
        plural="failure_domains",
        listed_at=f"{CLUSTER}/failureDomains",
        listed=lambda call: call.broker.metadata.records.inside(CLUSTERS, call.parameter("cluster"), DOMAINS),
        path=f"{CLUSTER}/failureDomains/{{domainName}}",
        key=lambda call: (CLUSTERS, existing_cluster(call), DOMAINS, call.parameter("domainName")),
        read=lambda call: call.read(record(f"{DATA}.FailureDomainImpl", {"brokers": TEXTS})),
        needs=cluster_operation("GET_FAILURE_DOMAIN"),
        needs_to_set=cluster_operation("UPDATE_FAILURE_DOMAIN"),
        needs_to_delete=cluster_operation("DELETE_FAILURE_DOMAIN"),
        missing="Domain {domainName} for cluster {cluster} does not exist",
        changed=_changed_domain,
        rest=_removed_domain,
        removed=nothing(),
    ),
    KeptResource(
        name="isolation_policy",
        about="Brokers that may serve namespaces.",
        plural="isolation_policies",
        listed_at=isolation.ALL,
        listed=lambda call: isolation.kept_of(call, existing_cluster(call, 404)),
        path=f"{isolation.ALL}/{{policyName}}",
        key=lambda call: (CLUSTERS, existing_cluster(call), isolation.POLICIES),
        read=lambda call: call.read(isolation.ISOLATION),
        needs=isolation.READ,
        needs_to_set=isolation.WRITE,
        shown=isolation.shown,
        changed=isolation.changed,
        effect=isolation.unload,
        rest=isolation.without,
    ),
    KeptResource(
        name="resource_group",
        about="Limits that several namespaces share.",
        plural="resource_groups",
        listed_at="/admin/v2/resourcegroups",
        listed=lambda call: sorted(call.broker.metadata.records.inside(GROUPS)),
        path="/admin/v2/resourcegroups/{resourcegroup}",
        key=lambda call: (GROUPS, call.parameter("resourcegroup")),
        read=lambda call: call.read(record(f"{DATA}.ResourceGroup", LIMITS)),
        method="PUT",
        missing=NO_GROUP,
        changed=_changed_group,
        effect=_limit_anew,
        rest=_removed_group,
    ),
    KeptResource(
        name="default_resource_quota",
        about="Expected load of a bundle without a quota of its own.",
        path="/admin/v2/resource-quotas",
        key=lambda call: DEFAULT,
        read=lambda call: call.read(QUOTA),
        shown=_shown_quota,
        removable=False,
    ),
    KeptResource(
        name="resource_quota",
        about="Expected load of a bundle.",
        path="/admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}",
        key=lambda call: (RESOURCE_QUOTAS, call.namespace, named_bundle(call, anywhere=True)),
        read=lambda call: call.read(QUOTA),
        shown=_shown_quota,
    ),
    KeptResource(
        name="bookie_affinity",
        about="Groups of bookies that store the messages of a namespace.",
        path=f"{NAMESPACE}/persistence/bookieAffinity",
        key=_existing_namespace,
        read=lambda call: call.read(AFFINITY),
        shown=_shown_bookies,
        part=BOOKIES,
        rest=lambda call, kept: {},  # Pulsar makes the local policies of the namespace then
    ),
    KeptResource(
        name="anti_affinity",
        about="Group of namespaces that different brokers should serve.",
        path=f"{NAMESPACE}/antiAffinity",
        key=lambda call: (LOCAL_POLICIES, call.namespace),
        read=_read_anti_affinity,
        needs=READ_ANTI,
        needs_to_set=namespace_policy("ANTI_AFFINITY", write=True),
        shown=_shown_anti_affinity,
        part=ANTI,
    ),
)


def _routes(row: KeptResource) -> Iterator[tuple[Route, Handler]]:
    """Yield the routes and handlers of one row."""

    def get_all(call: Call) -> HttpReply:
        assert row.listed is not None
        return json_reply(row.listed(call))

    def get(call: Call) -> HttpReply:
        kept = call.broker.metadata.records.get(*row.key(call))
        if row.shown is not None:
            return row.shown(call, kept)
        if kept is None:
            raise AdminError(404, row.missing.format_map(_named(call)))
        return json_reply(kept)

    def set_(call: Call) -> HttpReply | Awaitable[HttpReply]:
        sent, key, records = row.read(call), row.key(call), call.broker.metadata.records
        before = records.get(*key)
        now = with_value(before or {}, row.part, sent) if row.part else row.changed(call, before, sent)
        if now is None:
            return done()
        records.put(*key, value=now)
        return row.effect(call, before, now)

    def delete(call: Call) -> HttpReply:
        key, records = row.key(call), call.broker.metadata.records
        kept = records.get(*key)
        rest = with_value(kept, row.part, None) if row.part and kept is not None else row.rest(call, kept)
        if rest is None:
            records.forget(*key)
        else:
            records.put(*key, value=rest)
        return row.removed

    to_set = row.needs_to_set or row.needs
    if row.listed is not None:
        yield Route("GET", row.listed_at, row.needs), named(get_all, f"get_{row.plural}", row.about)
    yield Route("GET", row.path, row.needs), named(get, f"get_{row.name}", row.about)
    yield Route(row.method, row.path, to_set), named(set_, f"set_{row.name}", row.about)
    if row.removable:
        yield Route("DELETE", row.path, row.needs_to_delete or to_set), named(delete, f"delete_{row.name}", row.about)


__routes__ = tuple(found for row in RESOURCES for found in _routes(row))


@route("GET", "/admin/v2/namespaces/{cluster}/antiAffinity/{group}", needs=READ_ANTI)
def get_namespaces_of_group(call: Call) -> HttpReply:
    """Return the namespaces of a tenant that are in an anti-affinity group."""
    tenant, cluster = call.query.get("tenant"), call.parameter("cluster")
    if tenant is None:
        raise AdminError(400, "Tenant should not be null")
    if cluster not in clusters.names(call.broker):
        raise AdminError(412, f"Cluster {cluster} does not exist.")
    metadata, group = call.broker.metadata, call.parameter("group").lower()
    kept = metadata.records.inside(LOCAL_POLICIES)
    groups = {name: kept.get(name, {}).get(ANTI) for name in metadata.namespaces_of(tenant)}
    return json_reply([name for name, found in groups.items() if found is not None and found.lower() == group])


# the resource group of a namespace

WRITE_GROUP = namespace_policy("RESOURCEGROUP", write=True)


@route("GET", f"{NAMESPACE}/resourcegroup", needs=namespace_policy("RESOURCEGROUP", write=False))
def get_group_of_namespace(call: Call) -> HttpReply:
    """Return the resource group of a namespace."""
    name = call.broker.metadata.namespaces[call.existing_namespace].get(GROUP_OF_NAMESPACE)
    return nothing() if name is None else text_reply(name)


@route("POST", f"{NAMESPACE}/resourcegroup/{{resourcegroup}}", needs=WRITE_GROUP)
def set_group_of_namespace(call: Call) -> HttpReply:
    """Set the resource group of a namespace."""
    name = call.parameter("resourcegroup")
    if call.broker.metadata.records.get(GROUPS, name) is None:
        raise AdminError(412, NO_GROUP)
    return _put_into_group(call, name)


@route("DELETE", f"{NAMESPACE}/resourcegroup", needs=WRITE_GROUP)
def delete_group_of_namespace(call: Call) -> HttpReply:
    """Remove a namespace from its resource group."""
    return _put_into_group(call, None)


def _put_into_group(call: Call, name: str | None) -> HttpReply:
    metadata, namespace = call.broker.metadata, call.namespace
    if namespace not in metadata.namespaces:
        raise AdminError(404, POLICIES_MISSING)
    metadata.put_namespace(namespace, with_value(metadata.namespaces[namespace], GROUP_OF_NAMESPACE, name))
    return done()
