"""Check retention and backlog quotas: retention must exceed the quota."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.model.namespace.values import QUOTA, shown_quota
from pulsarium.broker.model.policy.policies import AGE, STORAGE, Quota
from pulsarium.broker.web.admin.policies.policy import Json, with_value
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, ContainerError, unexpected_body
from pulsarium.broker.web.http.reply import NAMES

QUOTAS = "backlog_quota_map"
RETENTION = "retention_policies"
MIB = 2**20
ONE_LIMIT = (
    "Setting a single time or size limit to 0 is invalid when one of the limits has a non-zero value. Use the value of "
    "-1 instead of 0 to ignore a specific limit. To disable retention both limits must be set to 0."
)


def validate_retention(value: Json | None) -> None:
    """Raise `AdminError` 400 for invalid retention."""
    if value is None:
        return
    size, minutes = value["retentionSizeInMB"], value["retentionTimeInMinutes"]
    for what, limit in (("size", size), ("time", minutes)):
        if limit < -1:
            raise AdminError(400, f"Invalid retention policy: {what} limit must be >= -1")
    if (size == 0) != (minutes == 0):
        raise AdminError(400, f"Invalid retention policy: {ONE_LIMIT}")


def check_retention_of_namespace(call: Call, kept: Json, value: Any) -> None:
    """Refuse invalid retention, and retention below a backlog quota that is set."""
    validate_retention(value)
    quotas = kept.get(QUOTAS)
    if quotas and not has_room(call, quotas.get(STORAGE), value):
        raise AdminError(412, "Retention Quota must exceed configured backlog quota for namespace.")


def check_retention_of_topic(call: Call, kept: Json, value: Any) -> None:
    """Refuse invalid retention, and retention below a backlog quota of either type, of the topic or its namespace."""
    validate_retention(value)
    for kind in (STORAGE, AGE):
        quotas = [each.get(QUOTAS, {}).get(kind) for each in (kept, policies_of_namespace(call))]
        if not has_room(call, quotas[0] or quotas[1], value):
            text = "Retention Quota must exceed configured backlog quota for topic."
            raise AdminError(412, f"{text} Please increase retention quota and retry")


def policies_of_namespace(call: Call) -> Json:
    """Return the policies that were set for the namespace of the path."""
    return call.broker.metadata.namespaces[call.namespace]


def has_room(call: Call, quota: Json | None, retention: Json | None) -> bool:
    """Return whether retention exceeds a quota. The default is the broker's quota."""
    if retention is None:
        return True
    config = call.broker.config
    default = {"limitSize": config.default_quota_bytes, "limitTime": config.backlogQuotaDefaultLimitSecond}
    quota = default if quota is None else quota
    size, minutes = retention["retentionSizeInMB"], retention["retentionTimeInMinutes"]
    return not (0 < size * MIB <= quota["limitSize"] or 0 < minutes * 60 <= quota["limitTime"])


def quota_kind(call: Call) -> str:
    """Return the type of quota in the query. Raise `ContainerError` 404 for an unknown one."""
    kind = call.query.get("backlogQuotaType", STORAGE)
    if kind not in (STORAGE, AGE):
        raise ContainerError(404, NAMES[404])
    return kind


def read_quota(call: Call, *, null: bool) -> dict[str, Any] | None:
    """Return the quota in the body. `null`: whether the body may be empty."""
    value: dict[str, Any] | None = call.read(QUOTA)
    if value is None:
        if null:
            return None
        java = "org.apache.pulsar.common.policies.data.BacklogQuota.validate()"
        raise unexpected_body(f'Cannot invoke "{java}" because "quota" is null')
    if "policy" not in value:
        text = f"Set namespace[{call.namespace}] backlog quota failed because the data validation failed. "
        raise AdminError(400, text + "the attribute policy cannot be null")
    return shown_quota(value)


def quota_in_force(quota: Quota) -> dict[str, Any]:
    """Return an effective quota as Pulsar prints it."""
    return shown_quota({"limit": quota.limit_size, "limitTime": quota.limit_seconds, "policy": quota.policy})


def check_quota_of_namespace(call: Call, kept: Json, kind: str, quota: Json | None) -> None:
    """Refuse a storage quota that exceeds retention. As in Pulsar, an age quota is not checked."""
    if quota is not None and not has_room(call, quota if kind == STORAGE else None, kept.get(RETENTION)):
        raise _too_large("namespace")


def check_quota_of_topic(call: Call, kept: Json, quota: Json | None) -> None:
    """Refuse a quota of either type that exceeds the retention of the topic or its namespace."""
    retention = kept.get(RETENTION) or policies_of_namespace(call).get(RETENTION)
    if quota is not None and not has_room(call, quota, retention):
        raise _too_large("topic")


def _too_large(what: str) -> AdminError:
    text = f"Backlog Quota exceeds configured retention quota for {what}. Please increase retention quota and retry"
    return AdminError(412, text)


def with_quota(kept: Json, kind: str, quota: Json | None) -> dict[str, Any]:
    """Return the policies to store once a quota is set. The quota None removes it."""
    return {**kept, QUOTAS: with_value(kept.get(QUOTAS, {}), kind, quota)}
