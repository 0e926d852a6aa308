"""/admin/v2/clusters/.../failureDomains: which brokers fail together. Kept and shown."""

from __future__ import annotations

from pulsarium.broker.admin.cluster.clusters import CLUSTER, FOLDER, existing_cluster
from pulsarium.broker.admin.policies.values import DATA, TEXTS, record
from pulsarium.broker.auth.needs import cluster_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply, nothing

DOMAINS = "failureDomain"
ONE = f"{CLUSTER}/failureDomains/{{domainName}}"
DOMAIN = record(f"{DATA}.FailureDomainImpl", {"brokers": TEXTS})


@route("GET", f"{CLUSTER}/failureDomains", needs=cluster_operation("GET_FAILURE_DOMAIN"))
def get_failure_domains(call: Call) -> Reply:
    """All of them, by name; none of a cluster that is not known."""
    return json_reply(call.broker.metadata.records.inside(FOLDER, call.parameter("cluster"), DOMAINS))


@route("GET", ONE, needs=cluster_operation("GET_FAILURE_DOMAIN"))
def get_failure_domain(call: Call) -> Reply:
    """The brokers of one."""
    cluster, name = existing_cluster(call), call.parameter("domainName")
    domain = call.broker.metadata.records.get(FOLDER, cluster, DOMAINS, name)
    if domain is None:
        raise AdminError(404, f"Domain {name} for cluster {cluster} does not exist")
    return json_reply(domain)


@route("POST", ONE, needs=cluster_operation("UPDATE_FAILURE_DOMAIN"))
def set_failure_domain(call: Call) -> Reply:
    """Say which brokers are in it; a broker is in one only."""
    domain = DOMAIN.read(call)
    cluster, name = existing_cluster(call), call.parameter("domainName")
    records = call.broker.metadata.records
    if domain is None:
        return done()  # which changes nothing
    for other, kept in records.inside(FOLDER, cluster, DOMAINS).items():
        both = [broker for broker in kept.get("brokers", ()) if broker in domain.get("brokers", ())]
        if both and other != name:
            raise AdminError(409, f"[{', '.join(both)}] already exists in {other}")
    records.put(FOLDER, cluster, DOMAINS, name, value=domain)
    return done()


@route("DELETE", ONE, needs=cluster_operation("DELETE_FAILURE_DOMAIN"))
def delete_failure_domain(call: Call) -> Reply:
    """Forget one."""
    cluster, name = existing_cluster(call), call.parameter("domainName")
    records = call.broker.metadata.records
    if records.get(FOLDER, cluster, DOMAINS, name) is None:
        raise AdminError(404, f"Domain-name {name} or cluster {cluster} does not exist")
    records.forget(FOLDER, cluster, DOMAINS, name)
    return nothing()
