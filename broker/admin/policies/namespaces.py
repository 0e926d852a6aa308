"""/admin/v2/namespaces: the policies of a namespace one by one, a line for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pulsarium.broker.admin.policies.checks import at_least_0, check_auto_creation, check_types_of_namespace
from pulsarium.broker.admin.policies.entry_filters import NAMESPACE_FILTERS
from pulsarium.broker.admin.policies.offload import NAMESPACE_OFFLOAD
from pulsarium.broker.admin.policies.persistence import NAMESPACE_PERSISTENCE
from pulsarium.broker.admin.policies.policy import MISSING, POLICIES_MISSING, NamespacePolicy, named
from pulsarium.broker.admin.policies.rates import NAMESPACE_RATES
from pulsarium.broker.admin.policies.replication import NAMESPACE_REPLICATION
from pulsarium.broker.admin.policies.retention import QUOTA_MAP, QUOTAS, check_retention_of_namespace
from pulsarium.broker.admin.policies.schemas import NAMESPACE_SCHEMAS
from pulsarium.broker.admin.policies.values import (
    AUTO_SUBSCRIPTION_CREATION,
    AUTO_TOPIC_CREATION,
    BOOL,
    DATA,
    DELAYED_DELIVERY,
    INACTIVE_TOPICS,
    INT,
    INTEGER,
    LONG,
    RETENTION,
    SET_OF_TYPES,
    SUBSCRIBE_RATE,
    TEXTS,
    Kind,
    choice,
    mapping,
)
from pulsarium.broker.auth.needs import SUPERUSER
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import Handler, Route
from pulsarium.broker.http.reply import Reply, json_reply

NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
NO_POLICIES = (404, POLICIES_MISSING)
SET_ONLY = ("GET", "POST")


def most(name: str, word: str, right: str, about: str, **more: Any) -> NamespacePolicy:
    """A limit."""
    return NamespacePolicy(name, word, right, about, INT, at_least_0(f"{word} must be 0 or more"), **more)


POLICIES: tuple[NamespacePolicy, ...] = (
    NamespacePolicy(
        "message_ttl_in_seconds",
        "messageTTL",
        "TTL",
        "Age at which messages are acknowledged for everybody",
        INT,
        at_least_0("Invalid value for message TTL, message TTL must >= 0"),
    ),
    NamespacePolicy(
        "retention_policies",
        "retention",
        "RETENTION",
        "How long acknowledged messages stay",
        RETENTION,
        check_retention_of_namespace,
        missing=NO_POLICIES,
    ),
    NamespacePolicy(
        "deduplicationEnabled",
        "deduplication",
        "DEDUPLICATION",
        "Whether messages that were sent twice are dropped",
        BOOL,
    ),
    NamespacePolicy(
        "deduplicationSnapshotIntervalSeconds",
        "deduplicationSnapshotInterval",
        "DEDUPLICATION_SNAPSHOT",
        "Seconds after which sequence ids are kept",
        INTEGER,
        at_least_0("interval must be greater than or equal to 0"),
        methods=SET_ONLY,
        missing=NO_POLICIES,
    ),
    NamespacePolicy(
        "delayed_delivery_policies",
        "delayedDelivery",
        "DELAYED_DELIVERY",
        "Whether deliver_at_time is heeded",
        DELAYED_DELIVERY,
        missing=NO_POLICIES,
        guard=SUPERUSER,
    ),
    NamespacePolicy(
        "inactive_topic_policies",
        "inactiveTopicPolicies",
        "INACTIVE_TOPIC",
        "When unused topics are deleted",
        INACTIVE_TOPICS,
        missing=NO_POLICIES,
    ),
    NamespacePolicy(
        "compaction_threshold",
        "compactionThreshold",
        "COMPACTION",
        "Bytes of new messages at which a topic is compacted",
        LONG,
        at_least_0("compactionThreshold must be 0 or more"),
        methods=("GET", "PUT", "DELETE"),
    ),
    most(
        "max_unacked_messages_per_consumer",
        "maxUnackedMessagesPerConsumer",
        "MAX_UNACKED",
        "Messages that a consumer may owe",
    ),
    most(
        "max_unacked_messages_per_subscription",
        "maxUnackedMessagesPerSubscription",
        "MAX_UNACKED",
        "The same for all of them",
    ),
    most("max_producers_per_topic", "maxProducersPerTopic", "MAX_PRODUCERS", "Most producers of a topic"),
    most("max_consumers_per_topic", "maxConsumersPerTopic", "MAX_CONSUMERS", "Most consumers of a topic"),
    most(
        "max_consumers_per_subscription",
        "maxConsumersPerSubscription",
        "MAX_CONSUMERS",
        "Most consumers of a subscription",
    ),
    most(
        "max_subscriptions_per_topic",
        "maxSubscriptionsPerTopic",
        "MAX_SUBSCRIPTIONS",
        "Most subscriptions of a topic",
        missing=NO_POLICIES,
    ),
    NamespacePolicy(
        "autoTopicCreationOverride",
        "autoTopicCreation",
        "AUTO_TOPIC_CREATION",
        "Whether clients make topics, and of how many partitions",
        AUTO_TOPIC_CREATION,
        check_auto_creation,
    ),
    NamespacePolicy(
        "autoSubscriptionCreationOverride",
        "autoSubscriptionCreation",
        "AUTO_SUBSCRIPTION_CREATION",
        "Whether consumers make subscriptions",
        AUTO_SUBSCRIPTION_CREATION,
    ),
    NamespacePolicy(
        "encryption_required",
        "encryptionRequired",
        "ENCRYPTION",
        "Whether what is not encrypted is refused",
        BOOL,
        unset=json_reply(False),
        methods=SET_ONLY,
    ),
    NamespacePolicy(
        "clusterSubscribeRate",
        "subscribeRate",
        "RATE",
        "How often one consumer may subscribe",
        SUBSCRIBE_RATE,
        per_cluster=True,
    ),
    NamespacePolicy(
        "subscription_types_enabled",
        "subscriptionTypesEnabled",
        "SUBSCRIPTION_AUTH_MODE",
        "Subscription types that consumers may ask for; []: those of the broker",
        SET_OF_TYPES,
        check_types_of_namespace,
        unset=json_reply([]),
    ),
    most(
        "max_topics_per_namespace",
        "maxTopicsPerNamespace",
        "MAX_TOPICS",
        "Most topics",
        unset=json_reply(0),
        missing=NO_POLICIES,
    ),
    NamespacePolicy(
        "subscription_expiration_time_minutes",
        "subscriptionExpirationTime",
        "SUBSCRIPTION_EXPIRATION_TIME",
        "Minutes after which a subscription that nobody uses is deleted",
        INT,
        at_least_0("Invalid value for subscription expiration time"),
    ),
    NamespacePolicy(
        "subscription_auth_mode",
        "subscriptionAuthMode",
        "SUBSCRIPTION_AUTH_MODE",
        "Whether a subscription's name must begin with the role",
        choice(f"{DATA}.SubscriptionAuthMode", ("None", "Prefix"), "None"),
        unset=json_reply("None"),
        methods=SET_ONLY,
    ),
    NamespacePolicy(
        "dispatcherPauseOnAckStatePersistentEnabled",
        "dispatcherPauseOnAckStatePersistent",
        "DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT",
        "Whether dispatch waits while acknowledgements cannot be kept",
        BOOL,
        unset=json_reply(False),
        read=lambda call: True,
        removed=False,
        missing_for_get=POLICIES_MISSING,
    ),
    NamespacePolicy(
        "allowed_topic_property_keys_for_metrics",
        "allowedTopicPropertyKeysForMetrics",
        "ALLOW_CUSTOM_METRIC_LABELS",
        "Properties of topics that metrics may show",
        TEXTS,
    ),
    *NAMESPACE_RATES,
    *NAMESPACE_SCHEMAS,
    *NAMESPACE_PERSISTENCE,
    *NAMESPACE_REPLICATION,
    *NAMESPACE_FILTERS,
    *NAMESPACE_OFFLOAD,
)


# how those are read that come with a new namespace, where subscription types are but texts
KINDS: Mapping[str, Kind] = {
    QUOTAS: QUOTA_MAP,
    **{each.name: mapping(each.kind) if each.per_cluster else each.kind for each in POLICIES},
    "subscription_types_enabled": TEXTS,
}


def _routes(policy: NamespacePolicy) -> Iterator[tuple[Route, Handler]]:
    """The handlers of one policy."""

    def get(call: Call) -> Reply:
        kept = call.broker.metadata.namespaces.get(call.namespace)
        if kept is None:
            raise AdminError(404, policy.missing_for_get)
        return policy.shown(call, kept)

    def set_(call: Call) -> Reply:
        value = policy.read_value(call)
        policy.check(call, call.broker.metadata.namespaces.get(call.namespace, {}), value)
        return change(call, value)

    def delete(call: Call) -> Reply:
        return change(call, None)

    def change(call: Call, value: Any) -> Reply:
        metadata, name = call.broker.metadata, call.namespace
        kept = metadata.namespaces.get(name)
        if kept is None:
            raise AdminError(*policy.missing, otherwise=AdminError(404, MISSING))
        metadata.put_namespace(name, policy.changed(call, kept, value))
        return policy.answer

    for method in policy.methods:
        handler = {"GET": get, "DELETE": delete}.get(method, set_)
        yield (
            Route(method, f"{NAMESPACE}/{policy.word}", policy.needs(write=method != "GET")),
            named(handler, f"{method.lower()}_{policy.word}", policy.about),
        )


__routes__ = tuple(found for policy in POLICIES for found in _routes(policy))
