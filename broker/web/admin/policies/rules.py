"""Exceptions of policies over REST, for namespaces and for topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pulsarium.broker.auth.needs import SUPERUSER, TENANT_ADMIN
from pulsarium.broker.jackson.kinds import BOOLEAN, INTEGER, LONG, TEXT_LIST
from pulsarium.broker.model.namespace import values
from pulsarium.broker.web.admin.policies import checks, offload, retention
from pulsarium.broker.web.admin.policies.policy import POLICIES_MISSING, Json, PolicyRule, at_least_0, with_value
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import unexpected_body
from pulsarium.broker.web.http.reply import done, json_reply, nothing
from pulsarium.rest import policies as rows
from pulsarium.rest.policies import Policy

NO_POLICIES = (404, POLICIES_MISSING)
UNDEFINED = "UNDEFINED"
NO_NODE = "org.apache.pulsar.metadata.api.MetadataStoreException$NotFoundException: "
# managedLedgerDefaultMarkDeleteRateLimit of Pulsar, shown while the key is unset
MARK_DELETE_RATE = 0.1


def read_strategy(call: Call) -> Any:
    """Read the schema compatibility strategy of a topic. UNDEFINED removes it."""
    value = call.read(values.STRATEGY_OF_TOPIC)
    return None if value == UNDEFINED else value


def dispatch_rate_twice(kept: Json, value: Any) -> dict[str, Any]:
    """Return the policies with a dispatch rate under both names, because Pulsar stores clusterDispatchRate too."""
    return with_value(with_value(kept, rows.DISPATCH_RATE.kept, value), "clusterDispatchRate", value)


def strategy_in_force(call: Call, kept: Json, namespace: Json) -> Any:
    """Return the strategy of the topic, of its namespace, or of the broker. UNDEFINED counts as none."""
    name = rows.SCHEMA_STRATEGY.kept
    found = kept.get(name) or namespace.get(name, UNDEFINED)
    return call.broker.config.schemaCompatibilityStrategy if found == UNDEFINED else found


def persistence_in_force(call: Call, kept: Json, namespace: Json) -> Any:
    """Return the stored policy, or the broker's one bookie."""
    rate = call.broker.config.managedLedgerDefaultMarkDeleteRateLimit
    own = {
        **dict.fromkeys(values.BOOKIES.values(), 1),
        values.MARK_DELETE_RATE: MARK_DELETE_RATE if rate is None else rate,
    }
    return kept.get("persistence") or namespace.get("persistence") or own


# fmt: off
OF_NAMESPACES: Mapping[Policy[Any], PolicyRule] = {
    rows.MESSAGE_TTL: PolicyRule(check=at_least_0("Invalid value for message TTL, message TTL must >= 0")),
    rows.RETENTION: PolicyRule(check=retention.check_retention_of_namespace, missing=NO_POLICIES),
    rows.INACTIVE_TOPICS: PolicyRule(missing=NO_POLICIES),
    rows.SUBSCRIPTION_EXPIRATION: PolicyRule(check=at_least_0("Invalid value for subscription expiration time")),
    rows.MAX_SUBSCRIPTIONS: PolicyRule(missing=NO_POLICIES),
    rows.MAX_TOPICS: PolicyRule(unset=json_reply(0), missing=NO_POLICIES),
    rows.DISPATCH_RATE: PolicyRule(changed=dispatch_rate_twice),
    rows.REPLICATOR_DISPATCH_RATE: PolicyRule(missing=(404, ""), missing_for_get=POLICIES_MISSING),
    rows.DEDUPLICATION_SNAPSHOTS: PolicyRule(
        check=at_least_0("interval must be greater than or equal to 0"), missing=NO_POLICIES),
    rows.DELAYED_DELIVERY: PolicyRule(missing=NO_POLICIES, guard=SUPERUSER),
    rows.AUTO_TOPIC_CREATION: PolicyRule(check=checks.check_auto_creation),
    rows.SUBSCRIPTION_TYPES: PolicyRule(check=checks.check_types_of_namespace, unset=json_reply([])),
    rows.SUBSCRIPTION_AUTH_MODE: PolicyRule(unset=json_reply("None")),
    rows.ENCRYPTION_REQUIRED: PolicyRule(unset=json_reply(False)),
    rows.SCHEMA_STRATEGY: PolicyRule(unset=json_reply(UNDEFINED)),
    rows.OLDER_SCHEMA_STRATEGY: PolicyRule(unset=done()),
    rows.SCHEMA_AUTO_UPDATE: PolicyRule(unset=json_reply(True), beside=checks.update_of_replicators),
    rows.SCHEMA_VALIDATION: PolicyRule(unset=json_reply(False)),
    rows.ENTRY_FILTERS: PolicyRule(check=checks.check_filters),
    rows.DISPATCHER_PAUSE: PolicyRule(
        unset=json_reply(False), read=lambda call: True, removed=False, missing_for_get=POLICIES_MISSING),
    rows.PERSISTENCE: PolicyRule(check=checks.check_persistence),
    rows.REPLICATION: PolicyRule(check=checks.check_clusters_of_namespace, answer=nothing()),
    rows.ALLOWED_CLUSTERS: PolicyRule(check=checks.check_allowed_clusters, unset=json_reply([]), answer=nothing()),
    rows.OFFLOAD: PolicyRule(
        check=offload.check_offload, changed=offload.set_whole,
        missing=(500, unexpected_body(NO_NODE).reason),
        missing_for_delete=(409, "Concurrent modification")),
    rows.OFFLOAD_THRESHOLD: replace(offload.set_part(rows.OFFLOAD_THRESHOLD.kept), unset=json_reply(-1)),
    rows.OFFLOAD_SECONDS: replace(
        offload.set_part(rows.OFFLOAD_SECONDS.kept), unset=json_reply(-1), answer=nothing()),
    rows.OFFLOAD_LAG: offload.set_part(rows.OFFLOAD_LAG.kept),
}
_UNACKED = PolicyRule(kind=INTEGER, check=at_least_0("maxUnackedNum must be 0 or more"))
OF_TOPICS: Mapping[Policy[Any], PolicyRule] = {
    rows.MESSAGE_TTL: PolicyRule(
        kind=INTEGER, check=at_least_0("Invalid value for message TTL")),
    rows.RETENTION: PolicyRule(check=retention.check_retention_of_topic),
    rows.COMPACTION_THRESHOLD: PolicyRule(kind=LONG, check=at_least_0("Invalid value for compactionThreshold")),
    rows.SUBSCRIPTION_EXPIRATION: PolicyRule(
        kind=INTEGER, check=at_least_0("Invalid value for subscription expiration time")),
    rows.MAX_CONSUMERS_PER_SUBSCRIPTION: PolicyRule(
        check=at_least_0("Invalid value for maxConsumersPerSubscription"), unset=done()),
    rows.MAX_SUBSCRIPTIONS: PolicyRule(unset=done()),
    rows.MAX_UNACKED_PER_CONSUMER: _UNACKED,
    rows.MAX_UNACKED_PER_SUBSCRIPTION: _UNACKED,
    rows.MAX_MESSAGE_SIZE: PolicyRule(check=checks.check_message_size, unset=done(), guard=TENANT_ADMIN,
                                guards_get=True),
    rows.PUBLISH_RATE: PolicyRule(unset=done(), keeps_at_null=True),
    rows.DISPATCH_RATE: PolicyRule(keeps_at_null=True),
    rows.DEDUPLICATION: PolicyRule(kind=BOOLEAN),
    rows.DEDUPLICATION_SNAPSHOTS: PolicyRule(kind=INTEGER, check=at_least_0("interval must be 0 or more")),
    rows.SUBSCRIPTION_TYPES: PolicyRule(
        kind=values.SET_OF_TYPES, check=checks.check_types_of_topic, unset=json_reply([])
    ),
    rows.SCHEMA_STRATEGY: PolicyRule(kind=values.STRATEGY_OF_TOPIC, read=read_strategy, in_force=strategy_in_force),
    rows.SCHEMA_VALIDATION: PolicyRule(unset=json_reply(False)),
    rows.ENTRY_FILTERS: PolicyRule(check=checks.check_filters),
    rows.DISPATCHER_PAUSE: PolicyRule(kind=BOOLEAN, unset=json_reply(False), read=lambda call: True),
    rows.PERSISTENCE: PolicyRule(check=checks.check_persistence, in_force=persistence_in_force),
    rows.REPLICATION: PolicyRule(
        kind=TEXT_LIST, check=checks.check_clusters_of_topic,
        in_force=lambda call, kept, namespace: kept.get(checks.CLUSTERS) or namespace.get(checks.CLUSTERS)),
    rows.SHADOW_TOPICS: PolicyRule(kind=TEXT_LIST, check=checks.check_shadow_topics),
    rows.OFFLOAD: PolicyRule(
        kind=values.OFFLOAD_POLICIES, check=offload.check_offload, in_force=offload.offload_in_force),
}
# fmt: on
