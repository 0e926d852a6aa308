"""/admin/v2/persistent and non-persistent: the policies of a topic one by one, a line for each.

They are kept for the topic by its own name, a partitioned one by that of all its partitions, and hold before those of
its namespace. With ?isGlobal=true they are kept apart, for all clusters, and a topic's local ones hold before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from pulsarium.broker.admin.policies.applied import delays_of, inactivity_of, retention_of, subscribe_rate_of
from pulsarium.broker.admin.policies.checks import at_least_0, check_message_size, check_types_of_topic
from pulsarium.broker.admin.policies.entry_filters import TOPIC_FILTERS
from pulsarium.broker.admin.policies.kept import applied_to, keep, kept_of, topic_of
from pulsarium.broker.admin.policies.offload import TOPIC_OFFLOAD
from pulsarium.broker.admin.policies.persistence import TOPIC_PERSISTENCE
from pulsarium.broker.admin.policies.policy import TopicPolicy, named
from pulsarium.broker.admin.policies.rates import TOPIC_RATES
from pulsarium.broker.admin.policies.replication import TOPIC_REPLICATION
from pulsarium.broker.admin.policies.retention import check_retention_of_topic, policies_of_namespace
from pulsarium.broker.admin.policies.schemas import TOPIC_SCHEMAS
from pulsarium.broker.admin.policies.values import (
    AUTO_SUBSCRIPTION_CREATION,
    BOOLEAN,
    DELAYED_DELIVERY,
    INACTIVE_TOPICS,
    INT,
    INTEGER,
    LONG,
    RETENTION,
    SET_OF_TYPES,
    SUBSCRIBE_RATE,
    Kind,
)
from pulsarium.broker.admin.topic.partitions import JAVA_INT, NUMBER
from pulsarium.broker.auth.needs import TENANT_ADMIN, topic_policy
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import ContainerError
from pulsarium.broker.http.registry import Handler, Route, of_topic, route
from pulsarium.broker.http.reply import NAMES, Reply, done, json_reply, nothing
from pulsarium.broker.model.policy.policies import Policies

UNSET_204 = done()


def read_number(name: str) -> Callable[[Call], int | None]:
    """Of topics, some numbers stand in the query."""

    def read(call: Call) -> int | None:
        value = call.query.get(name)
        if value is None:
            return None
        if not NUMBER.fullmatch(value) or int(value) not in JAVA_INT:
            raise ContainerError(404, NAMES[404])
        return int(value)

    return read


def most(
    name: str,
    word: str,
    right: str,
    about: str,
    text: str,
    kind: Kind = INT,
    applied: Callable[[Policies], Any] | None = None,
) -> TopicPolicy:
    """A limit; `text` refuses negative ones. Those of which Pulsar shows none applied answer 204 when unset."""
    unset = UNSET_204 if applied is None else nothing()
    return TopicPolicy(name, word, right, about, kind, at_least_0(text), unset, applied=applied)


POLICIES: tuple[TopicPolicy, ...] = (
    TopicPolicy(
        "message_ttl_in_seconds",
        "messageTTL",
        "TTL",
        "Age at which messages are acknowledged for everybody",
        INTEGER,
        at_least_0("Invalid value for message TTL"),
        read=read_number("messageTTL"),
        applied=attrgetter("message_ttl_seconds"),
    ),
    TopicPolicy(
        "retention_policies",
        "retention",
        "RETENTION",
        "How long acknowledged messages stay",
        RETENTION,
        check_retention_of_topic,
        applied=retention_of,
    ),
    TopicPolicy(
        "deduplicationEnabled",
        "deduplicationEnabled",
        "DEDUPLICATION",
        "Whether messages that were sent twice are dropped",
        BOOLEAN,
        applied=attrgetter("deduplication"),
    ),
    TopicPolicy(
        "deduplicationSnapshotIntervalSeconds",
        "deduplicationSnapshotInterval",
        "DEDUPLICATION_SNAPSHOT",
        "Seconds after which sequence ids are kept",
        INTEGER,
        at_least_0("interval must be 0 or more"),
    ),
    TopicPolicy(
        "delayed_delivery_policies",
        "delayedDelivery",
        "DELAYED_DELIVERY",
        "Whether deliver_at_time is heeded",
        DELAYED_DELIVERY,
        applied=delays_of,
    ),
    TopicPolicy(
        "inactive_topic_policies",
        "inactiveTopicPolicies",
        "INACTIVE_TOPIC",
        "When the topic is deleted because nobody uses it",
        INACTIVE_TOPICS,
        applied=inactivity_of,
    ),
    most(
        "max_unacked_messages_per_consumer",
        "maxUnackedMessagesOnConsumer",
        "MAX_UNACKED",
        "Messages that a consumer may owe",
        "maxUnackedNum must be 0 or more",
        INTEGER,
        attrgetter("max_unacked_per_consumer"),
    ),
    most(
        "max_unacked_messages_per_subscription",
        "maxUnackedMessagesOnSubscription",
        "MAX_UNACKED",
        "Messages that all consumers of a subscription may owe",
        "maxUnackedNum must be 0 or more",
        INTEGER,
        attrgetter("max_unacked_per_subscription"),
    ),
    most(
        "max_producers_per_topic",
        "maxProducers",
        "MAX_PRODUCERS",
        "Most producers",
        "maxProducers must be 0 or more",
        applied=attrgetter("max_producers"),
    ),
    most(
        "max_consumers_per_topic",
        "maxConsumers",
        "MAX_CONSUMERS",
        "Most consumers",
        "maxConsumers must be 0 or more",
        applied=attrgetter("max_consumers"),
    ),
    most(
        "max_consumers_per_subscription",
        "maxConsumersPerSubscription",
        "MAX_CONSUMERS",
        "Most consumers of a subscription",
        "Invalid value for maxConsumersPerSubscription",
    ),
    most(
        "max_subscriptions_per_topic",
        "maxSubscriptionsPerTopic",
        "MAX_SUBSCRIPTIONS",
        "Most subscriptions",
        "maxSubscriptionsPerTopic must be 0 or more",
    ),
    TopicPolicy(
        "compaction_threshold",
        "compactionThreshold",
        "COMPACTION",
        "Bytes of new messages at which the topic is compacted",
        LONG,
        at_least_0("Invalid value for compactionThreshold"),
        applied=attrgetter("compaction_threshold"),
    ),
    TopicPolicy(
        "max_message_size",
        "maxMessageSize",
        "MAX_MESSAGE_SIZE",
        "Bytes of the largest message",
        INT,
        check_message_size,
        UNSET_204,
        guard=TENANT_ADMIN,
    ),
    TopicPolicy(
        "autoSubscriptionCreationOverride",
        "autoSubscriptionCreation",
        "AUTO_SUBSCRIPTION_CREATION",
        "Whether consumers make subscriptions",
        AUTO_SUBSCRIPTION_CREATION,
        applied=lambda policies: {"allowAutoSubscriptionCreation": policies.auto_subscription},
    ),
    TopicPolicy(
        "clusterSubscribeRate",
        "subscribeRate",
        "RATE",
        "How often one consumer may subscribe",
        SUBSCRIBE_RATE,
        per_cluster=True,
        applied=subscribe_rate_of,
    ),
    TopicPolicy(
        "subscription_types_enabled",
        "subscriptionTypesEnabled",
        "SUBSCRIPTION_AUTH_MODE",
        "Subscription types that consumers may ask for; []: those of the namespace",
        SET_OF_TYPES,
        check_types_of_topic,
        json_reply([]),
    ),
    TopicPolicy(
        "subscription_expiration_time_minutes",
        "subscriptionExpirationTime",
        "SUBSCRIPTION_EXPIRATION_TIME",
        "Minutes after which a subscription that nobody uses is deleted",
        INTEGER,
        at_least_0("Invalid value for subscription expiration time"),
        read=read_number("subscriptionExpirationTime"),
        applied=attrgetter("subscription_expiration_minutes"),
    ),
    TopicPolicy(
        "dispatcherPauseOnAckStatePersistentEnabled",
        "dispatcherPauseOnAckStatePersistent",
        "DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT",
        "Whether dispatch waits while acknowledgements cannot be kept",
        BOOLEAN,
        unset=json_reply(False),
        read=lambda call: True,
        default=lambda config: False,
    ),
    *TOPIC_RATES,
    *TOPIC_SCHEMAS,
    *TOPIC_PERSISTENCE,
    *TOPIC_REPLICATION,
    *TOPIC_FILTERS,
    *TOPIC_OFFLOAD,
)


def _routes(policy: TopicPolicy) -> Iterator[tuple[Route, Handler]]:
    """The handlers of one policy."""

    def get(call: Call) -> Reply:
        name = topic_of(call)
        kept = kept_of(call, name, is_local=policy.is_local)
        if not policy.has_applied or not call.flag("applied"):
            return policy.shown(call, kept)
        if policy.applied is not None:
            return json_reply(policy.applied(applied_to(call, name)))
        value = policy.in_force(call, kept, policies_of_namespace(call))
        return policy.unset if value is None else json_reply(value)

    def set_(call: Call) -> Reply:
        value = policy.read_value(call)
        name = topic_of(call)
        kept = kept_of(call, name, is_local=policy.is_local)
        policy.check(call, kept, value)
        if value is None and policy.keeps_at_null:
            return done()
        return keep(call, name, policy.changed(call, kept, value), is_local=policy.is_local)

    def delete(call: Call) -> Reply:
        name = topic_of(call)
        kept = kept_of(call, name, is_local=policy.is_local)
        return keep(call, name, policy.changed(call, kept, None), is_local=policy.is_local)

    for method in policy.methods:
        handler = {"GET": get, "DELETE": delete}.get(method, set_)
        needs = policy.needs(write=method != "GET")
        for path in of_topic(f"/{policy.word}"):
            yield Route(method, path, needs), named(handler, f"{method.lower()}_{policy.word}", policy.about)


__routes__ = tuple(found for policy in POLICIES for found in _routes(policy))


@route("DELETE", *of_topic("/policies"), needs=topic_policy("MAX_PRODUCERS", write=True), anywhere=True)
def delete_policies(call: Call) -> Reply:
    """Forget all policies of the topic, which need not exist."""
    call.broker.metadata.forget_topic_policies(call.topic)
    return done()
