"""/admin/v2: offload policies of namespaces and topics, stored and shown only. Pulsarium has no tiered storage."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.model.namespace.values import shown_policies
from pulsarium.broker.web.admin.policies.policy import Json, PolicyRule, anything, with_value
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.rest.policies import OFFLOAD_DEFAULTS, OFFLOAD_DRIVERS

POLICIES = "offload_policies"


def check_offload(call: Call, kept: Json, value: Any) -> None:
    """Refuse drivers that Pulsar does not know, and policies without a bucket."""
    if value is None:
        raise AdminError(412, "The offloadPolicies must be specified for namespace offload.")
    driver = value.get("managedLedgerOffloadDriver")
    if str(driver).lower() not in map(str.lower, OFFLOAD_DRIVERS):
        raise AdminError(412, f"The driver is not supported, support value: {','.join(OFFLOAD_DRIVERS)}")
    older = "s3ManagedLedgerOffloadBucket" if value["s3Driver"] else "gcsManagedLedgerOffloadBucket"
    has_older = (value["s3Driver"] or value["gcsDriver"]) and value.get(older)
    if not (value.get("managedLedgerOffloadBucket") or has_older or value["fileSystemDriver"]):
        raise AdminError(412, "The bucket must be specified for namespace offload.")


def set_part(name: str) -> PolicyRule:
    """Return the rule for one number of a namespace's offload policies. Pulsar once stored it outside these."""

    def value_in(kept: Json) -> Any:
        return (kept.get(POLICIES) or {}).get(PARTS[name], kept.get(name))

    def changed(kept: Json, value: Any) -> dict[str, Any]:
        policies = {**(kept.get(POLICIES) or OFFLOAD_DEFAULTS), PARTS[name]: value}
        return with_value(without_older(kept), POLICIES, shown_policies({**older_parts(kept), **policies}))

    return PolicyRule(check=anything, value_in=value_in, changed=changed)


def set_whole(kept: Json, value: Any) -> dict[str, Any]:
    """Return the policies to store once a namespace's offload policies are set."""
    if value is not None:
        value = shown_policies({**older_parts(kept), **value})
    return with_value(without_older(kept), POLICIES, value)


def offload_in_force(call: Call, kept: Json, namespace: Json) -> Any:
    """Return the offload policies in effect: a topic's values over those of its namespace."""
    found = {**(namespace.get(POLICIES) or {}), **(kept.get(POLICIES) or {})}
    return shown_policies(found) if found else None


def older_parts(kept: Json) -> dict[str, Any]:
    """Return the offload policies that were set under their older names."""
    return {part: kept[name] for name, part in PARTS.items() if kept.get(name) not in (None, -1)}


def without_older(kept: Json) -> dict[str, Any]:
    """Return policies without offload policies under their older names."""
    return {name: value for name, value in kept.items() if name not in PARTS}


# by their older names
PARTS = {
    "offload_threshold": "managedLedgerOffloadThresholdInBytes",
    "offload_threshold_in_seconds": "managedLedgerOffloadThresholdInSeconds",
    "offload_deletion_lag_ms": "managedLedgerOffloadDeletionLagInMillis",
}
