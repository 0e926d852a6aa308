"""The policies of `pulsarium admin namespaces`, each with get, set and remove."""

from typing import Any

import click

from . import policies
from .command import Command, Query, Values, option
from .output import json_value, lines
from .policies import NAMESPACES, number, of, policy
from .values import BYTES, INT, SECONDS

_N = NAMESPACES
_QUOTA: Query = {"backlogQuotaType": "type"}


def _limit(name: str, route: str, what: str, option_name: str, short: str) -> list[Command]:
    the_number = number(option_name, short, "The number; 0 is without limit.")
    return policy(_N, name, route, what, the_number, body=of("number"))


def _switch(name: str, route: str, what: str, **more: Any) -> list[Command]:
    switches = (policies.ENABLE, policies.DISABLE)
    return policy(_N, name, route, what, *switches, body=policies.on_or_off, removable=False, **more)


def _topic_creation(values: Values) -> dict[str, object]:
    body = {"allowAutoTopicCreation": policies.on_or_off(values), "topicType": values.type}
    if values.num_partitions is not None:
        body["defaultNumPartitions"] = values.num_partitions
    return body


_GROUPS = [
    policy(
        _N,
        "clusters",
        "replication",
        "the clusters it is replicated to",
        policies.CLUSTERS,
        body=policies.clusters,
        show=lines,
        removable=False,
    ),
    policy(
        _N,
        "allowed-clusters",
        "allowedClusters",
        "the clusters it may be replicated to",
        policies.CLUSTERS,
        body=policies.clusters,
        show=lines,
        removable=False,
    ),
    policy(
        _N,
        "subscription-types-enabled",
        "subscriptionTypesEnabled",
        "the types of subscription allowed",
        policies.SUBSCRIPTION_TYPES_OPTION,
        body=policies.subscription_types,
        show=json_value,
    ),
    policy(
        _N,
        "backlog-quota",
        "backlogQuota",
        "what happens at how much backlog",
        *policies.quota_options(),
        get_name="get-backlog-quotas",
        get_route="backlogQuotaMap",
        query=_QUOTA,
        remove_query=_QUOTA,
        remove_options=(policies.QUOTA_TYPE,),
        body=policies.quota,
        show=policies.show_quotas,
        example="shop/orders --limit 10G --policy producer_exception",
    ),
    policy(
        _N,
        "persistence",
        "persistence",
        "how data is spread over bookies",
        *policies.PERSISTENCE,
        body=policies.persistence,
    ),
    policy(
        _N,
        "message-ttl",
        "messageTTL",
        "the time after which messages expire",
        option(
            "--messageTTL", "-ttl", dest="ttl", type=SECONDS, required=True, help="Like 10s, 3h or 2d; 0: for ever."
        ),
        body=of("ttl"),
        example="shop/orders --messageTTL 2d",
    ),
    _limit(
        "max-subscriptions-per-topic",
        "maxSubscriptionsPerTopic",
        "how many subscriptions a topic may have",
        "--max-subscriptions-per-topic",
        "-m",
    ),
    policy(
        _N,
        "subscription-expiration-time",
        "subscriptionExpirationTime",
        "after how long nobody's subscription is deleted",
        number("--time", "-t", "Minutes; 0 is never."),
        body=of("number"),
    ),
    policy(
        _N,
        "deduplication",
        "deduplication",
        "whether repeated messages are dropped",
        policies.ENABLE,
        policies.DISABLE,
        body=policies.on_or_off,
    ),
    policy(
        _N,
        "auto-topic-creation",
        "autoTopicCreation",
        "whether clients create topics",
        policies.ENABLE,
        policies.DISABLE,
        option(
            "--type",
            "-t",
            type=click.Choice(["partitioned", "non-partitioned"]),
            default="non-partitioned",
            help="Which kind of topic.",
        ),
        option("--num-partitions", "-n", type=INT, help="With how many partitions."),
        body=_topic_creation,
        example="shop/orders --enable --type partitioned --num-partitions 4",
    ),
    policy(
        _N,
        "auto-subscription-creation",
        "autoSubscriptionCreation",
        "whether consumers create subscriptions",
        policies.ENABLE,
        body=lambda values: {"allowAutoSubscriptionCreation": values.enable},
    ),
    policy(
        _N,
        "retention",
        "retention",
        "how much acknowledged data is kept",
        *policies.RETENTION,
        body=policies.retention,
        example="shop/orders --time 3h --size 10G",
    ),
    policy(
        _N,
        "dispatch-rate",
        "dispatchRate",
        "how fast messages are dispatched",
        *policies.DISPATCH_RATE,
        policies.RELATIVE,
        body=policies.dispatch_rate,
    ),
    policy(
        _N,
        "subscribe-rate",
        "subscribeRate",
        "how often a consumer may subscribe",
        *policies.SUBSCRIBE_RATE,
        body=policies.subscribe_rate,
    ),
    policy(
        _N,
        "subscription-dispatch-rate",
        "subscriptionDispatchRate",
        "how fast a subscription gets messages",
        *policies.DISPATCH_RATE,
        policies.RELATIVE,
        body=policies.dispatch_rate,
    ),
    policy(
        _N,
        "publish-rate",
        "publishRate",
        "how fast messages may be published",
        *policies.PUBLISH_RATE,
        body=policies.publish_rate,
        example="shop/orders --msg-publish-rate 100",
    ),
    policy(
        _N,
        "replicator-dispatch-rate",
        "replicatorDispatchRate",
        "how fast messages are replicated",
        *policies.DISPATCH_RATE,
        body=policies.dispatch_rate,
    ),
    _switch("encryption-required", "encryptionRequired", "whether messages have to be encrypted"),
    policy(
        _N,
        "subscription-auth-mode",
        "subscriptionAuthMode",
        "how names of subscriptions are tied to roles",
        option(
            "--subscription-auth-mode", "-m", required=True, type=click.Choice(["None", "Prefix"]), help="The mode."
        ),
        body=of("subscription_auth_mode"),
        show=json_value,
        removable=False,
    ),
    policy(
        _N,
        "delayed-delivery",
        "delayedDelivery",
        "whether messages can be delayed",
        *policies.DELAYED_DELIVERY,
        body=policies.delayed_delivery,
    ),
    policy(
        _N,
        "inactive-topic-policies",
        "inactiveTopicPolicies",
        "when nobody's topic is deleted",
        *policies.INACTIVE_TOPICS,
        body=policies.inactive_topics,
    ),
    _limit(
        "max-producers-per-topic",
        "maxProducersPerTopic",
        "how many producers a topic may have",
        "--max-producers-per-topic",
        "-p",
    ),
    _limit(
        "max-consumers-per-topic",
        "maxConsumersPerTopic",
        "how many consumers a topic may have",
        "--max-consumers-per-topic",
        "-c",
    ),
    _limit(
        "max-consumers-per-subscription",
        "maxConsumersPerSubscription",
        "how many consumers a subscription may have",
        "--max-consumers-per-subscription",
        "-c",
    ),
    _limit(
        "max-unacked-messages-per-subscription",
        "maxUnackedMessagesPerSubscription",
        "how many messages a subscription may leave unacknowledged",
        "--max-unacked-messages-per-subscription",
        "-c",
    ),
    _limit(
        "max-unacked-messages-per-consumer",
        "maxUnackedMessagesPerConsumer",
        "how many messages a consumer may leave unacknowledged",
        "--max-unacked-messages-per-topic",
        "-c",
    ),
    policy(
        _N,
        "compaction-threshold",
        "compactionThreshold",
        "the backlog at which compaction starts",
        option("--threshold", "-t", type=BYTES, required=True, help="Bytes of backlog; 0 is never."),
        body=of("threshold"),
        put_it=True,
    ),
    _switch("is-allow-auto-update-schema", "isAllowAutoUpdateSchema", "whether producers may change schemas"),
    _switch(
        "schema-validation-enforce",
        "schemaValidationEnforced",
        "whether producers have to have a schema",
        applied=policies.applied(),
    ),
    _limit(
        "max-topics-per-namespace",
        "maxTopicsPerNamespace",
        "how many topics there may be",
        "--max-topics-per-namespace",
        "-t",
    ),
    policy(
        _N, "entry-filters", "entryFilters", "the entry filters", policies.ENTRY_FILTERS, body=policies.entry_filters
    ),
    policy(
        _N,
        "dispatcher-pause-on-ack-state-persistent",
        "dispatcherPauseOnAckStatePersistent",
        "whether dispatch waits for acknowledgements to be saved",
    ),
]

POLICIES: tuple[Command, ...] = tuple(command for group in _GROUPS for command in group)
