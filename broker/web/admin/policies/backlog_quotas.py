"""/admin/v2: backlog quotas of namespaces and topics. Two types are set one by one, and shown together."""

from __future__ import annotations

from pulsarium.broker.auth.needs import namespace_policy, topic_policy
from pulsarium.broker.model.policy.policies import resolve
from pulsarium.broker.web.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.web.admin.policies.policy import Json, keep, kept_of, topic_of
from pulsarium.broker.web.admin.policies.retention import (
    QUOTAS,
    check_quota_of_namespace,
    check_quota_of_topic,
    policies_of_namespace,
    quota_in_force,
    quota_kind,
    read_quota,
    with_quota,
)
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply


@route("GET", f"{NAMESPACE}/backlogQuotaMap", needs=namespace_policy("BACKLOG", write=False))
def get_quotas_of_namespace(call: Call) -> HttpReply:
    """Return the backlog quotas of a namespace, by type."""
    return json_reply(call.broker.metadata.namespaces[call.existing_namespace].get(QUOTAS, {}))


@route("POST", f"{NAMESPACE}/backlogQuota", needs=namespace_policy("BACKLOG", write=True))
def set_quota_of_namespace(call: Call) -> HttpReply:
    """Set a backlog quota of a namespace."""
    kind = quota_kind(call)
    return _change(call, kind, read_quota(call, null=False))


@route("DELETE", f"{NAMESPACE}/backlogQuota", needs=namespace_policy("BACKLOG", write=True))
def delete_quota_of_namespace(call: Call) -> HttpReply:
    """Remove a backlog quota of a namespace."""
    return _change(call, quota_kind(call), None)


def _change(call: Call, kind: str, quota: Json | None) -> HttpReply:
    metadata, name = call.broker.metadata, call.namespace
    kept = metadata.namespaces.get(name)
    if kept is None:
        raise AdminError(404, "")
    check_quota_of_namespace(call, kept, kind, quota)
    metadata.put_namespace(name, with_quota(kept, kind, quota))
    return done()


@route("GET", *of_topic("/backlogQuotaMap"), needs=topic_policy("BACKLOG", write=False))
def get_quotas_of_topic(call: Call) -> HttpReply:
    """Return the backlog quotas of a topic. With ?applied=true, those of the namespace or the broker may apply."""
    name = topic_of(call)
    quotas = kept_of(call, name).get(QUOTAS)
    if call.flag("applied"):
        in_force = resolve(call.broker.config, policies_of_namespace(call), kept_of(call, name)).backlog_quotas
        broker = {kind: quota_in_force(quota) for kind, quota in in_force.items()}
        quotas = quotas or policies_of_namespace(call).get(QUOTAS) or broker
    return json_reply(quotas or {})


@route("POST", *of_topic("/backlogQuota"), needs=topic_policy("BACKLOG", write=True))
def set_quota_of_topic(call: Call) -> HttpReply:
    """Set a backlog quota of a topic."""
    kind = quota_kind(call)
    name = topic_of(call)
    kept, quota = kept_of(call, name), read_quota(call, null=True)
    check_quota_of_topic(call, kept, quota)
    return keep(call, name, with_quota(kept, kind, quota))


@route("DELETE", *of_topic("/backlogQuota"), needs=topic_policy("BACKLOG", write=True))
def delete_quota_of_topic(call: Call) -> HttpReply:
    """Remove a backlog quota of a topic."""
    kind = quota_kind(call)
    name = topic_of(call)
    return keep(call, name, with_quota(kept_of(call, name), kind, None))
