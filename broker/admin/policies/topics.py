"""/admin/v2/persistent and non-persistent: the policies of a topic one by one, a line for each.

They are kept for the topic by its own name, a partitioned one by that of all its partitions, and hold before those of
its namespace. With ?isGlobal=true they are kept apart, for all clusters, and a topic's local ones hold before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from pulsarium.broker.admin.call import Call
from pulsarium.broker.admin.errors import AdminError, ContainerError
from pulsarium.broker.admin.partitions import JAVA_INT, NUMBER
from pulsarium.broker.admin.policies.applied import delays_of, inactivity_of, retention_of, subscribe_rate_of
from pulsarium.broker.admin.policies.checks import at_least_0, check_message_size, check_types_of_topic
from pulsarium.broker.admin.policies.policy import Json, Policy, named, with_value
from pulsarium.broker.admin.policies.retention import check_retention_of_topic, policies_of_namespace
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
from pulsarium.broker.admin.registry import Handler, Route, of_topic, route
from pulsarium.broker.admin.reply import NAMES, Reply, done, json_reply, nothing
from pulsarium.broker.model.namespace.metadata import GLOBAL
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.policy.resolve import resolve
from pulsarium.proto.topic_name import TopicName

UNSET_204 = done()


@dataclass(frozen=True, slots=True)
class TopicPolicy(Policy):
    """`applied`: what holds for the topic, from wherever it is set."""

    applied: Callable[[Policies], Any] | None = None


def read_ttl(call: Call) -> int | None:
    """Of topics, it stands in the query."""
    value = call.query.get("messageTTL")
    if value is None:
        return None
    if not NUMBER.fullmatch(value) or int(value) not in JAVA_INT:
        raise ContainerError(404, NAMES[404])
    return int(value)


def most(
    name: str, word: str, about: str, text: str, kind: Kind = INT, applied: Callable[[Policies], Any] | None = None
) -> TopicPolicy:
    """A limit; `text` refuses negative ones. Those of which Pulsar shows none applied answer 204 when unset."""
    unset = UNSET_204 if applied is None else nothing()
    return TopicPolicy(name, word, about, kind, at_least_0(text), unset, applied=applied)


POLICIES = (
    TopicPolicy(
        "message_ttl_in_seconds",
        "messageTTL",
        "Age at which messages are acknowledged for everybody",
        INTEGER,
        at_least_0("Invalid value for message TTL"),
        read=read_ttl,
        applied=attrgetter("message_ttl_seconds"),
    ),
    TopicPolicy(
        "retention_policies",
        "retention",
        "How long acknowledged messages stay",
        RETENTION,
        check_retention_of_topic,
        applied=retention_of,
    ),
    TopicPolicy(
        "deduplicationEnabled",
        "deduplicationEnabled",
        "Whether messages that were sent twice are dropped",
        BOOLEAN,
        applied=attrgetter("deduplication"),
    ),
    TopicPolicy(
        "deduplicationSnapshotIntervalSeconds",
        "deduplicationSnapshotInterval",
        "Seconds after which sequence ids are kept",
        INTEGER,
        at_least_0("interval must be 0 or more"),
    ),
    TopicPolicy(
        "delayed_delivery_policies",
        "delayedDelivery",
        "Whether deliver_at_time is heeded",
        DELAYED_DELIVERY,
        applied=delays_of,
    ),
    TopicPolicy(
        "inactive_topic_policies",
        "inactiveTopicPolicies",
        "When the topic is deleted because nobody uses it",
        INACTIVE_TOPICS,
        applied=inactivity_of,
    ),
    most(
        "max_unacked_messages_per_consumer",
        "maxUnackedMessagesOnConsumer",
        "Messages that a consumer may owe",
        "maxUnackedNum must be 0 or more",
        INTEGER,
        attrgetter("max_unacked_per_consumer"),
    ),
    most(
        "max_unacked_messages_per_subscription",
        "maxUnackedMessagesOnSubscription",
        "Messages that all consumers of a subscription may owe",
        "maxUnackedNum must be 0 or more",
        INTEGER,
        attrgetter("max_unacked_per_subscription"),
    ),
    most(
        "max_producers_per_topic",
        "maxProducers",
        "Most producers",
        "maxProducers must be 0 or more",
        applied=attrgetter("max_producers"),
    ),
    most(
        "max_consumers_per_topic",
        "maxConsumers",
        "Most consumers",
        "maxConsumers must be 0 or more",
        applied=attrgetter("max_consumers"),
    ),
    most(
        "max_consumers_per_subscription",
        "maxConsumersPerSubscription",
        "Most consumers of a subscription",
        "Invalid value for maxConsumersPerSubscription",
    ),
    most(
        "max_subscriptions_per_topic",
        "maxSubscriptionsPerTopic",
        "Most subscriptions",
        "maxSubscriptionsPerTopic must be 0 or more",
    ),
    TopicPolicy(
        "compaction_threshold",
        "compactionThreshold",
        "Bytes of new messages at which the topic is compacted",
        LONG,
        at_least_0("Invalid value for compactionThreshold"),
        applied=attrgetter("compaction_threshold"),
    ),
    TopicPolicy(
        "max_message_size", "maxMessageSize", "Bytes of the largest message", INT, check_message_size, UNSET_204
    ),
    TopicPolicy(
        "autoSubscriptionCreationOverride",
        "autoSubscriptionCreation",
        "Whether consumers make subscriptions",
        AUTO_SUBSCRIPTION_CREATION,
        applied=lambda policies: {"allowAutoSubscriptionCreation": policies.auto_subscription},
    ),
    TopicPolicy(
        "clusterSubscribeRate",
        "subscribeRate",
        "How often one consumer may subscribe",
        SUBSCRIBE_RATE,
        per_cluster=True,
        applied=subscribe_rate_of,
    ),
    TopicPolicy(
        "subscription_types_enabled",
        "subscriptionTypesEnabled",
        "Subscription types that consumers may ask for; []: those of the namespace",
        SET_OF_TYPES,
        check_types_of_topic,
        json_reply([]),
    ),
)


def topic_of(call: Call) -> TopicName:
    """The topic of the path, which must exist; partitions have no policies of their own."""
    name = call.topic
    if name.is_partition:
        raise AdminError(412, "Not allowed to set/get topic policy for a partition")
    if not (call.broker.topics.exists(name) or call.broker.metadata.partitions_of(name)):
        raise AdminError(404, f"Topic {name} not found")
    return name


def kept_of(call: Call, name: TopicName) -> dict[str, Any]:
    """What is set for a topic, here or for all clusters."""
    kept = call.broker.metadata.topic_policies.get(str(name), {})
    found: dict[str, Any] = kept.get(GLOBAL, {}) if call.flag("isGlobal") else kept
    return found


def applied_to(call: Call, name: TopicName) -> Policies:
    """What REST calls applied: without those of all clusters, or with them alone, though both hold."""
    return resolve(call.broker.config, policies_of_namespace(call), kept_of(call, name))


def keep(call: Call, name: TopicName, changed: Json) -> Reply:
    """Keep it there."""
    metadata = call.broker.metadata
    policies = {field: value for field, value in changed.items() if value != {}}
    if call.flag("isGlobal"):
        policies = with_value(metadata.topic_policies.get(str(name), {}), GLOBAL, policies or None)
    metadata.put_topic_policies(name, policies)
    return done()


def _routes(policy: TopicPolicy) -> Iterator[tuple[Route, Handler]]:
    """The handlers of one policy."""

    def get(call: Call) -> Reply:
        name = topic_of(call)
        if policy.applied is not None and call.flag("applied"):
            return json_reply(policy.applied(applied_to(call, name)))
        return policy.shown(call, kept_of(call, name))

    def set_(call: Call) -> Reply:
        value = policy.read_value(call)
        name = topic_of(call)
        kept = kept_of(call, name)
        policy.check(call, kept, value)
        return keep(call, name, policy.changed(call, kept, value))

    def delete(call: Call) -> Reply:
        name = topic_of(call)
        return keep(call, name, policy.changed(call, kept_of(call, name), None))

    for method in policy.methods:
        handler = {"GET": get, "DELETE": delete}.get(method, set_)
        for path in of_topic(f"/{policy.word}"):
            yield Route(method, path), named(handler, f"{method.lower()}_{policy.word}", policy.about)


__routes__ = tuple(found for policy in POLICIES for found in _routes(policy))


@route("DELETE", *of_topic("/policies"))
def delete_policies(call: Call) -> Reply:
    """Forget all policies of the topic, which need not exist."""
    call.broker.metadata.put_topic_policies(call.topic, {})
    return done()
