"""Exceptions of policies over REST, for namespaces and for topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pulsarium.broker.admin.policies import checks, offload, retention
from pulsarium.broker.admin.policies.policy import POLICIES_MISSING, Json, Rule, at_least_0, with_value
from pulsarium.broker.admin.topic.partitions import JAVA_INT, NUMBER
from pulsarium.broker.auth.needs import SUPERUSER, TENANT_ADMIN
from pulsarium.broker.http import values
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import ContainerError, unexpected_body
from pulsarium.broker.http.reply import NAMES, done, json_reply, nothing
from pulsarium.rest import policies as rows
from pulsarium.rest.policies import Policy

NO_POLICIES = (404, POLICIES_MISSING)
UNDEFINED = "UNDEFINED"
NO_NODE = "org.apache.pulsar.metadata.api.MetadataStoreException$NotFoundException: "
# managedLedgerDefaultMarkDeleteRateLimit of Pulsar, shown while the key is unset
MARK_DELETE_RATE = 0.1


def read_number(name: str) -> Callable[[Call], int | None]:
    """Return a reader of a number in the query, for policies of topics."""

    def read(call: Call) -> int | None:
        value = call.query.get(name)
        if value is None:
            return None
        if not NUMBER.fullmatch(value) or int(value) not in JAVA_INT:
            raise ContainerError(404, NAMES[404])
        return int(value)

    return read


def read_strategy(call: Call) -> Any:
    """Read the schema compatibility strategy of a topic. UNDEFINED removes it."""
    value = values.STRATEGY_OF_TOPIC.read(call)
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
OF_NAMESPACES: Mapping[Policy[Any], Rule] = {
    rows.MESSAGE_TTL: Rule(check=at_least_0("Invalid value for message TTL, message TTL must >= 0")),
    rows.RETENTION: Rule(check=retention.check_retention_of_namespace, missing=NO_POLICIES),
    rows.INACTIVE_TOPICS: Rule(missing=NO_POLICIES),
    rows.SUBSCRIPTION_EXPIRATION: Rule(check=at_least_0("Invalid value for subscription expiration time")),
    rows.MAX_SUBSCRIPTIONS: Rule(missing=NO_POLICIES),
    rows.MAX_TOPICS: Rule(unset=json_reply(0), missing=NO_POLICIES),
    rows.DISPATCH_RATE: Rule(changed=dispatch_rate_twice),
    rows.REPLICATOR_DISPATCH_RATE: Rule(missing=(404, ""), missing_for_get=POLICIES_MISSING),
    rows.DEDUPLICATION_SNAPSHOTS: Rule(
        check=at_least_0("interval must be greater than or equal to 0"), missing=NO_POLICIES),
    rows.DELAYED_DELIVERY: Rule(missing=NO_POLICIES, guard=SUPERUSER),
    rows.AUTO_TOPIC_CREATION: Rule(check=checks.check_auto_creation),
    rows.SUBSCRIPTION_TYPES: Rule(check=checks.check_types_of_namespace, unset=json_reply([])),
    rows.SUBSCRIPTION_AUTH_MODE: Rule(unset=json_reply("None")),
    rows.ENCRYPTION_REQUIRED: Rule(unset=json_reply(False)),
    rows.SCHEMA_STRATEGY: Rule(unset=json_reply(UNDEFINED)),
    rows.OLDER_SCHEMA_STRATEGY: Rule(unset=done()),
    rows.SCHEMA_AUTO_UPDATE: Rule(unset=json_reply(True)),
    rows.SCHEMA_VALIDATION: Rule(unset=json_reply(False)),
    rows.ENTRY_FILTERS: Rule(check=checks.check_filters),
    rows.DISPATCHER_PAUSE: Rule(
        unset=json_reply(False), read=lambda call: True, removed=False, missing_for_get=POLICIES_MISSING),
    rows.PERSISTENCE: Rule(check=checks.check_persistence),
    rows.REPLICATION: Rule(check=checks.check_clusters_of_namespace, answer=nothing()),
    rows.ALLOWED_CLUSTERS: Rule(check=checks.check_allowed_clusters, unset=json_reply([]), answer=nothing()),
    rows.OFFLOAD: Rule(
        check=offload.check_offload, changed=offload.set_whole,
        missing=(500, unexpected_body(NO_NODE).reason),
        missing_for_delete=(409, "Concurrent modification")),
    rows.OFFLOAD_THRESHOLD: replace(offload.set_part(rows.OFFLOAD_THRESHOLD.kept), unset=json_reply(-1)),
    rows.OFFLOAD_SECONDS: replace(
        offload.set_part(rows.OFFLOAD_SECONDS.kept), unset=json_reply(-1), answer=nothing()),
    rows.OFFLOAD_LAG: offload.set_part(rows.OFFLOAD_LAG.kept),
}
_UNACKED = Rule(kind=values.INTEGER, check=at_least_0("maxUnackedNum must be 0 or more"))
OF_TOPICS: Mapping[Policy[Any], Rule] = {
    rows.MESSAGE_TTL: Rule(
        kind=values.INTEGER, check=at_least_0("Invalid value for message TTL"), read=read_number("messageTTL")),
    rows.RETENTION: Rule(check=retention.check_retention_of_topic),
    rows.COMPACTION_THRESHOLD: Rule(kind=values.LONG, check=at_least_0("Invalid value for compactionThreshold")),
    rows.SUBSCRIPTION_EXPIRATION: Rule(
        kind=values.INTEGER, check=at_least_0("Invalid value for subscription expiration time"),
        read=read_number("subscriptionExpirationTime")),
    rows.MAX_CONSUMERS_PER_SUBSCRIPTION: Rule(
        check=at_least_0("Invalid value for maxConsumersPerSubscription"), unset=done()),
    rows.MAX_SUBSCRIPTIONS: Rule(unset=done()),
    rows.MAX_UNACKED_PER_CONSUMER: _UNACKED,
    rows.MAX_UNACKED_PER_SUBSCRIPTION: _UNACKED,
    rows.MAX_MESSAGE_SIZE: Rule(check=checks.check_message_size, unset=done(), guard=TENANT_ADMIN,
                                guards_get=True),
    rows.PUBLISH_RATE: Rule(unset=done(), keeps_at_null=True),
    rows.DISPATCH_RATE: Rule(keeps_at_null=True),
    rows.DEDUPLICATION: Rule(kind=values.BOOLEAN),
    rows.DEDUPLICATION_SNAPSHOTS: Rule(kind=values.INTEGER, check=at_least_0("interval must be 0 or more")),
    rows.SUBSCRIPTION_TYPES: Rule(kind=values.SET_OF_TYPES, check=checks.check_types_of_topic, unset=json_reply([])),
    rows.SCHEMA_STRATEGY: Rule(kind=values.STRATEGY_OF_TOPIC, read=read_strategy, in_force=strategy_in_force),
    rows.SCHEMA_VALIDATION: Rule(unset=json_reply(False)),
    rows.ENTRY_FILTERS: Rule(check=checks.check_filters),
    rows.DISPATCHER_PAUSE: Rule(kind=values.BOOLEAN, unset=json_reply(False), read=lambda call: True),
    rows.PERSISTENCE: Rule(check=checks.check_persistence, in_force=persistence_in_force),
    rows.REPLICATION: Rule(
        kind=values.TEXT_LIST, check=checks.check_clusters_of_topic,
        in_force=lambda call, kept, namespace: kept.get(checks.CLUSTERS) or namespace.get(checks.CLUSTERS)),
    rows.SHADOW_TOPICS: Rule(kind=values.TEXT_LIST, check=checks.check_shadow_topics),
    rows.OFFLOAD: Rule(
        kind=values.OFFLOAD_POLICIES, check=offload.check_offload, in_force=offload.offload_in_force),
}
# fmt: on
