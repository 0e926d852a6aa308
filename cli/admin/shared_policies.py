"""Policies of topics that `topicPolicies` has, and `topics` of old, by the same names."""

import click

from . import offload, policies
from .command import Command, option
from .output import json_value
from .policies import Scope, applied, number, of, policy
from .values import BYTES, INT, SECONDS

APPLIED = applied()
_TTL = option("--ttl", "-t", type=SECONDS, required=True, help="How long, like 10s, 3h or 2d; 0 is for ever.")
_INTERVAL = option("--interval", "-i", dest="number", type=INT, required=True, help="Entries between two snapshots.")
_THRESHOLD = option("--threshold", "-t", dest="number", type=BYTES, required=True, help="Bytes of backlog; 0 is never.")
ON_CONSUMER = ("max_unacked_messages_on_consumer", "how many messages a consumer may leave unacknowledged")
ON_SUBSCRIPTION = ("max_unacked_messages_on_subscription", "how many messages a subscription may leave unacknowledged")
SUBSCRIPTIONS = "how many subscriptions there may be"
SUBSCRIPTION_RATE = "how fast messages are dispatched to a subscription"
_CLUSTERS = "the clusters it is replicated to"


def shared(scope: Scope, offload_options: tuple[click.Option, ...]) -> list[Command]:
    """The policies that both groups have, by the same names."""
    found = [
        policy(
            scope,
            "message-ttl",
            "the time after which messages expire",
            _TTL,
            body=of("ttl"),
            applied=APPLIED,
            example="orders --ttl 2d",
        ),
        policy(
            scope,
            "max-consumers-per-subscription",
            "how many consumers a subscription may have",
            number("--max-consumers-per-subscription", "-c", "The number; 0 is without limit."),
            body=of("number"),
        ),
        policy(
            scope,
            "subscription-types-enabled",
            "the types of subscription allowed",
            policies.SUBSCRIPTION_TYPES_OPTION,
            body=policies.subscription_types,
            show=json_value,
        ),
        policy(
            scope,
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
            "how many producers there may be",
            number("--max-producers", "-p", "The number; 0 is without limit."),
            body=of("number"),
            applied=APPLIED,
        ),
        policy(
            scope,
            "max-message-size",
            "how large a message may be",
            number("--max-message-size", "-m", "Bytes; 0 is the broker's own limit."),
            body=of("number"),
        ),
        policy(
            scope,
            "deduplication",
            "whether repeated messages are dropped",
            policies.ENABLE,
            policies.DISABLE,
            body=policies.on_or_off,
            applied=True,
            method="deduplication_status",
        ),
        policy(
            scope,
            "deduplication-snapshot-interval",
            "how often sequence ids are saved for deduplication",
            _INTERVAL,
            body=of("number"),
        ),
        policy(
            scope,
            "persistence",
            "how data is spread over bookies",
            *policies.PERSISTENCE,
            body=policies.persistence,
            applied=True,
        ),
        policy(
            scope,
            "replicator-dispatch-rate",
            "how fast messages are replicated",
            *policies.DISPATCH_RATE,
            policies.RELATIVE,
            body=policies.dispatch_rate,
            applied=APPLIED,
        ),
        policy(
            scope,
            "publish-rate",
            "how fast messages may be published",
            *policies.PUBLISH_RATE,
            body=policies.publish_rate,
            example="orders --msg-publish-rate 100",
        ),
        policy(
            scope,
            "compaction-threshold",
            "the backlog at which compaction starts",
            _THRESHOLD,
            body=of("number"),
            applied=APPLIED,
        ),
        policy(
            scope,
            "subscribe-rate",
            "how often a consumer may subscribe",
            *policies.SUBSCRIBE_RATE,
            body=policies.subscribe_rate,
            applied=APPLIED,
        ),
        policy(
            scope,
            "max-consumers",
            "how many consumers there may be",
            number("--max-consumers", "-c", "The number; 0 is without limit."),
            body=of("number"),
            applied=APPLIED,
        ),
        policy(
            scope,
            "delayed-delivery",
            "whether messages can be delayed",
            *policies.DELAYED_DELIVERY,
            body=policies.delayed_delivery,
            applied=APPLIED,
            method="delayed_delivery_policy",
        ),
        policy(
            scope,
            "dispatch-rate",
            "how fast messages are dispatched",
            *policies.DISPATCH_RATE,
            policies.RELATIVE,
            body=policies.dispatch_rate,
            applied=APPLIED,
        ),
        policy(
            scope,
            "offload-policies",
            "where old ledgers are offloaded to",
            *offload_options,
            body=offload.body,
            applied=APPLIED,
        ),
        policy(
            scope,
            "inactive-topic-policies",
            "when nobody's topic is deleted",
            *policies.INACTIVE_TOPICS,
            body=policies.inactive_topics,
            applied=APPLIED,
        ),
    ]
    return [command for commands in found for command in commands]


def unacked(scope: Scope, name: str, method: str, what: str) -> list[Command]:
    limit = number("--maxNum", "-m", "The number; 0 is without limit.")
    name = f"max-unacked-messages-{name}"
    return policy(scope, name, what, limit, body=of("number"), applied=APPLIED, method=method)


def replication_clusters(scope: Scope) -> list[Command]:
    return policy(
        scope,
        "replication-clusters",
        _CLUSTERS,
        policies.CLUSTERS,
        body=policies.clusters,
        applied=APPLIED,
        show=json_value,
        hidden=False,
    )
