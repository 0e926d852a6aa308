"""/admin/v2/namespaces: the policies of a namespace one by one, a line for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pulsarium.broker.admin.call import Call
from pulsarium.broker.admin.errors import AdminError
from pulsarium.broker.admin.policies.checks import at_least_0, check_auto_creation, check_types_of_namespace
from pulsarium.broker.admin.policies.policy import Policy, named
from pulsarium.broker.admin.policies.retention import QUOTA_MAP, QUOTAS, check_retention_of_namespace
from pulsarium.broker.admin.policies.values import (
    AUTO_SUBSCRIPTION_CREATION,
    AUTO_TOPIC_CREATION,
    BOOL,
    COMPATIBILITY,
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
    mapping,
)
from pulsarium.broker.admin.registry import Handler, Route
from pulsarium.broker.admin.reply import Reply, done, json_reply

NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"

# those whose setters say it so when there is no such namespace
POLICIES_DO_NOT_EXIST = frozenset(
    {
        "retention_policies",
        "delayed_delivery_policies",
        "inactive_topic_policies",
        "deduplicationSnapshotIntervalSeconds",
        "max_subscriptions_per_topic",
    }
)
SET_ONLY = ("GET", "POST")


def most(name: str, word: str, about: str) -> Policy:
    """A limit."""
    return Policy(name, word, about, INT, at_least_0(f"{word} must be 0 or more"))


POLICIES = (
    Policy(
        "message_ttl_in_seconds",
        "messageTTL",
        "Age at which messages are acknowledged for everybody",
        INT,
        at_least_0("Invalid value for message TTL, message TTL must >= 0"),
    ),
    Policy(
        "retention_policies",
        "retention",
        "How long acknowledged messages stay",
        RETENTION,
        check_retention_of_namespace,
    ),
    Policy("deduplicationEnabled", "deduplication", "Whether messages that were sent twice are dropped", BOOL),
    Policy(
        "deduplicationSnapshotIntervalSeconds",
        "deduplicationSnapshotInterval",
        "Seconds after which sequence ids are kept",
        INTEGER,
        at_least_0("interval must be greater than or equal to 0"),
        methods=SET_ONLY,
    ),
    Policy("delayed_delivery_policies", "delayedDelivery", "Whether deliver_at_time is heeded", DELAYED_DELIVERY),
    Policy("inactive_topic_policies", "inactiveTopicPolicies", "When unused topics are deleted", INACTIVE_TOPICS),
    Policy(
        "compaction_threshold",
        "compactionThreshold",
        "Bytes of new messages at which a topic is compacted",
        LONG,
        at_least_0("compactionThreshold must be 0 or more"),
        methods=("GET", "PUT", "DELETE"),
    ),
    most("max_unacked_messages_per_consumer", "maxUnackedMessagesPerConsumer", "Messages that a consumer may owe"),
    most("max_unacked_messages_per_subscription", "maxUnackedMessagesPerSubscription", "The same for all of them"),
    most("max_producers_per_topic", "maxProducersPerTopic", "Most producers of a topic"),
    most("max_consumers_per_topic", "maxConsumersPerTopic", "Most consumers of a topic"),
    most("max_consumers_per_subscription", "maxConsumersPerSubscription", "Most consumers of a subscription"),
    most("max_subscriptions_per_topic", "maxSubscriptionsPerTopic", "Most subscriptions of a topic"),
    Policy(
        "autoTopicCreationOverride",
        "autoTopicCreation",
        "Whether clients make topics, and of how many partitions",
        AUTO_TOPIC_CREATION,
        check_auto_creation,
    ),
    Policy(
        "autoSubscriptionCreationOverride",
        "autoSubscriptionCreation",
        "Whether consumers make subscriptions",
        AUTO_SUBSCRIPTION_CREATION,
    ),
    Policy(
        "encryption_required",
        "encryptionRequired",
        "Whether what is not encrypted is refused",
        BOOL,
        unset=json_reply(False),
        methods=SET_ONLY,
    ),
    Policy(
        "clusterSubscribeRate",
        "subscribeRate",
        "How often one consumer may subscribe",
        SUBSCRIBE_RATE,
        per_cluster=True,
    ),
    Policy(
        "subscription_types_enabled",
        "subscriptionTypesEnabled",
        "Subscription types that consumers may ask for; []: those of the broker",
        SET_OF_TYPES,
        check_types_of_namespace,
        unset=json_reply([]),
    ),
    Policy(
        "schema_compatibility_strategy",
        "schemaCompatibilityStrategy",
        "What a new schema must be compatible with",
        COMPATIBILITY,
        unset=json_reply("UNDEFINED"),
        methods=("GET", "PUT"),
    ),
)


# how those are read that come with a new namespace, where subscription types are but texts
KINDS: Mapping[str, Kind] = {
    QUOTAS: QUOTA_MAP,
    **{each.name: mapping(each.kind) if each.per_cluster else each.kind for each in POLICIES},
    "subscription_types_enabled": TEXTS,
}


def _routes(policy: Policy) -> Iterator[tuple[Route, Handler]]:
    """The handlers of one policy."""

    def get(call: Call) -> Reply:
        return policy.shown(call, call.broker.metadata.namespaces[call.existing_namespace])

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
            what = "Namespace policies does" if policy.name in POLICIES_DO_NOT_EXIST else "Namespace does"
            raise AdminError(404, f"{what} not exist")
        metadata.put_namespace(name, policy.changed(call, kept, value))
        return done()

    for method in policy.methods:
        handler = {"GET": get, "DELETE": delete}.get(method, set_)
        yield (
            Route(method, f"{NAMESPACE}/{policy.word}"),
            named(handler, f"{method.lower()}_{policy.word}", policy.about),
        )


__routes__ = tuple(found for policy in POLICIES for found in _routes(policy))
