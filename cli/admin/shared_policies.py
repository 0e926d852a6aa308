"""Policies of topics that `topicPolicies` has, and `topics` of old, by the same names."""

import click

from . import offload, policies
from .command import Command, Query, option
from .output import json_value
from .policies import Scope, applied, number, of, policy
from .values import BYTES, INT, SECONDS

APPLIED = applied()
_TTL = option("--ttl", "-t", type=SECONDS, required=True, help="How long, like 10s, 3h or 2d; 0 is for ever.")
_INTERVAL = option("--interval", "-i", dest="number", type=INT, required=True, help="Entries between two snapshots.")
_THRESHOLD = option("--threshold", "-t", dest="number", type=BYTES, required=True, help="Bytes of backlog; 0 is never.")
QUOTA: Query = {"backlogQuotaType": "type"}
ON_CONSUMER = ("maxUnackedMessagesOnConsumer", "how many messages a consumer may leave unacknowledged")
ON_SUBSCRIPTION = ("maxUnackedMessagesOnSubscription", "how many messages a subscription may leave unacknowledged")
SUBSCRIPTIONS = ("maxSubscriptionsPerTopic", "how many subscriptions there may be")
SUBSCRIPTION_RATE = ("subscriptionDispatchRate", "how fast messages are dispatched to a subscription")
_CLUSTERS = ("replication", "the clusters it is replicated to")


def shared(scope: Scope, offload_options: tuple[click.Option, ...]) -> list[Command]:
    """The policies that both groups have, by the same names."""
    found = [
        policy(
            scope,
            "message-ttl",
            "messageTTL",
            "the time after which messages expire",
            _TTL,
            query={"messageTTL": "ttl"},
            remove_query={"messageTTL": lambda values: 0},
            applied=APPLIED,
            example="orders --ttl 2d",
        ),
        policy(
            scope,
            "max-consumers-per-subscription",
            "maxConsumersPerSubscription",
            "how many consumers a subscription may have",
            number("--max-consumers-per-subscription", "-c", "The number; 0 is without limit."),
            body=of("number"),
        ),
        policy(
            scope,
            "subscription-types-enabled",
            "subscriptionTypesEnabled",
            "the types of subscription allowed",
            policies.SUBSCRIPTION_TYPES_OPTION,
            body=policies.subscription_types,
            show=json_value,
        ),
        policy(
            scope,
            "retention",
            "retention",
            "how much acknowledged data is kept",
            *policies.RETENTION,
            body=policies.retention,
            applied=APPLIED,
            example="orders --time 3h --size 10G",
        ),
        policy(
            scope,
            "max-producers",
            "maxProducers",
            "how many producers there may be",
            number("--max-producers", "-p", "The number; 0 is without limit."),
            body=of("number"),
            applied=APPLIED,
        ),
        policy(
            scope,
            "max-message-size",
            "maxMessageSize",
            "how large a message may be",
            number("--max-message-size", "-m", "Bytes; 0 is the broker's own limit."),
            body=of("number"),
        ),
        policy(
            scope,
            "deduplication",
            "deduplicationEnabled",
            "whether repeated messages are dropped",
            policies.ENABLE,
            policies.DISABLE,
            body=policies.on_or_off,
            applied=True,
        ),
        policy(
            scope,
            "deduplication-snapshot-interval",
            "deduplicationSnapshotInterval",
            "how often sequence ids are saved for deduplication",
            _INTERVAL,
            body=of("number"),
        ),
        policy(
            scope,
            "persistence",
            "persistence",
            "how data is spread over bookies",
            *policies.PERSISTENCE,
            body=policies.persistence,
            applied=True,
        ),
        policy(
            scope,
            "replicator-dispatch-rate",
            "replicatorDispatchRate",
            "how fast messages are replicated",
            *policies.DISPATCH_RATE,
            policies.RELATIVE,
            body=policies.dispatch_rate,
            applied=APPLIED,
        ),
        policy(
            scope,
            "publish-rate",
            "publishRate",
            "how fast messages may be published",
            *policies.PUBLISH_RATE,
            body=policies.publish_rate,
            example="orders --msg-publish-rate 100",
        ),
        policy(
            scope,
            "compaction-threshold",
            "compactionThreshold",
            "the backlog at which compaction starts",
            _THRESHOLD,
            body=of("number"),
            applied=APPLIED,
        ),
        policy(
            scope,
            "subscribe-rate",
            "subscribeRate",
            "how often a consumer may subscribe",
            *policies.SUBSCRIBE_RATE,
            body=policies.subscribe_rate,
            applied=APPLIED,
        ),
        policy(
            scope,
            "max-consumers",
            "maxConsumers",
            "how many consumers there may be",
            number("--max-consumers", "-c", "The number; 0 is without limit."),
            body=of("number"),
            applied=APPLIED,
        ),
        policy(
            scope,
            "delayed-delivery",
            "delayedDelivery",
            "whether messages can be delayed",
            *policies.DELAYED_DELIVERY,
            body=policies.delayed_delivery,
            applied=APPLIED,
        ),
        policy(
            scope,
            "dispatch-rate",
            "dispatchRate",
            "how fast messages are dispatched",
            *policies.DISPATCH_RATE,
            policies.RELATIVE,
            body=policies.dispatch_rate,
            applied=APPLIED,
        ),
        policy(
            scope,
            "offload-policies",
            "offloadPolicies",
            "where old ledgers are offloaded to",
            *offload_options,
            body=offload.body,
            applied=APPLIED,
        ),
        policy(
            scope,
            "inactive-topic-policies",
            "inactiveTopicPolicies",
            "when nobody's topic is deleted",
            *policies.INACTIVE_TOPICS,
            body=policies.inactive_topics,
            applied=APPLIED,
        ),
    ]
    return [command for commands in found for command in commands]


def unacked(scope: Scope, name: str, route: str, what: str) -> list[Command]:
    limit = number("--maxNum", "-m", "The number; 0 is without limit.")
    return policy(scope, f"max-unacked-messages-{name}", route, what, limit, body=of("number"), applied=APPLIED)


def replication_clusters(scope: Scope) -> list[Command]:
    return policy(
        scope,
        "replication-clusters",
        *_CLUSTERS,
        policies.CLUSTERS,
        body=policies.clusters,
        applied=APPLIED,
        show=json_value,
        hidden=False,
    )
