"""The policies of `pulsarium admin namespaces`, each with get, set and remove."""

from typing import Any

import click

from . import policies
from .command import Command, Values, option
from .output import json_value, lines
from .policies import NAMESPACES, number, of, policy
from .values import BYTES, INT, SECONDS

_N = NAMESPACES


def _limit(name: str, what: str, option_name: str, short: str) -> list[Command]:
    the_number = number(option_name, short, "The number; 0 is without limit.")
    return policy(_N, name, what, the_number, body=of("number"))


def _switch(name: str, what: str, **more: Any) -> list[Command]:
    switches = (policies.ENABLE, policies.DISABLE)
    return policy(_N, name, what, *switches, body=policies.on_or_off, removable=False, **more)


def _topic_creation(values: Values) -> dict[str, object]:
    body = {"allowAutoTopicCreation": policies.on_or_off(values), "topicType": values.type}
    if values.num_partitions is not None:
        body["defaultNumPartitions"] = values.num_partitions
    return body


_GROUPS = [
    policy(
        _N,
        "clusters",
        "the clusters it is replicated to",
        policies.CLUSTERS,
        body=policies.clusters,
        show=lines,
        removable=False,
        method="namespace_replication_clusters",
    ),
    policy(
        _N,
        "allowed-clusters",
        "the clusters it may be replicated to",
        policies.CLUSTERS,
        body=policies.clusters,
        show=lines,
        removable=False,
        method="namespace_allowed_clusters",
    ),
    policy(
        _N,
        "subscription-types-enabled",
        "the types of subscription allowed",
        policies.SUBSCRIPTION_TYPES_OPTION,
        body=policies.subscription_types,
        show=json_value,
    ),
    policy(
        _N,
        "backlog-quota",
        "what happens at how much backlog",
        *policies.quota_options(),
        get_name="get-backlog-quotas",
        remove_options=(policies.QUOTA_TYPE,),
        body=policies.quota,
        show=policies.show_quotas,
        example="shop/orders --limit 10G --policy producer_exception",
        get_method="backlog_quota_map",
        more={"quota_type": "type"},
    ),
    policy(
        _N,
        "persistence",
        "how data is spread over bookies",
        *policies.PERSISTENCE,
        body=policies.persistence,
    ),
    policy(
        _N,
        "message-ttl",
        "the time after which messages expire",
        option(
            "--messageTTL", "-ttl", dest="ttl", type=SECONDS, required=True, help="Like 10s, 3h or 2d; 0: for ever."
        ),
        body=of("ttl"),
        example="shop/orders --messageTTL 2d",
        method="namespace_message_ttl",
    ),
    _limit(
        "max-subscriptions-per-topic",
        "how many subscriptions a topic may have",
        "--max-subscriptions-per-topic",
        "-m",
    ),
    policy(
        _N,
        "subscription-expiration-time",
        "after how long nobody's subscription is deleted",
        number("--time", "-t", "Minutes; 0 is never."),
        body=of("number"),
    ),
    policy(
        _N,
        "deduplication",
        "whether repeated messages are dropped",
        policies.ENABLE,
        policies.DISABLE,
        body=policies.on_or_off,
        method="deduplication_status",
    ),
    policy(
        _N,
        "auto-topic-creation",
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
        "whether consumers create subscriptions",
        policies.ENABLE,
        body=lambda values: {"allowAutoSubscriptionCreation": values.enable},
    ),
    policy(
        _N,
        "retention",
        "how much acknowledged data is kept",
        *policies.RETENTION,
        body=policies.retention,
        example="shop/orders --time 3h --size 10G",
    ),
    policy(
        _N,
        "dispatch-rate",
        "how fast messages are dispatched",
        *policies.DISPATCH_RATE,
        policies.RELATIVE,
        body=policies.dispatch_rate,
    ),
    policy(
        _N,
        "subscribe-rate",
        "how often a consumer may subscribe",
        *policies.SUBSCRIBE_RATE,
        body=policies.subscribe_rate,
    ),
    policy(
        _N,
        "subscription-dispatch-rate",
        "how fast a subscription gets messages",
        *policies.DISPATCH_RATE,
        policies.RELATIVE,
        body=policies.dispatch_rate,
    ),
    policy(
        _N,
        "publish-rate",
        "how fast messages may be published",
        *policies.PUBLISH_RATE,
        body=policies.publish_rate,
        example="shop/orders --msg-publish-rate 100",
    ),
    policy(
        _N,
        "replicator-dispatch-rate",
        "how fast messages are replicated",
        *policies.DISPATCH_RATE,
        body=policies.dispatch_rate,
    ),
    _switch("encryption-required", "whether messages have to be encrypted", method="encryption_required_status"),
    policy(
        _N,
        "subscription-auth-mode",
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
        "whether messages can be delayed",
        *policies.DELAYED_DELIVERY,
        body=policies.delayed_delivery,
    ),
    policy(
        _N,
        "inactive-topic-policies",
        "when nobody's topic is deleted",
        *policies.INACTIVE_TOPICS,
        body=policies.inactive_topics,
    ),
    _limit(
        "max-producers-per-topic",
        "how many producers a topic may have",
        "--max-producers-per-topic",
        "-p",
    ),
    _limit(
        "max-consumers-per-topic",
        "how many consumers a topic may have",
        "--max-consumers-per-topic",
        "-c",
    ),
    _limit(
        "max-consumers-per-subscription",
        "how many consumers a subscription may have",
        "--max-consumers-per-subscription",
        "-c",
    ),
    _limit(
        "max-unacked-messages-per-subscription",
        "how many messages a subscription may leave unacknowledged",
        "--max-unacked-messages-per-subscription",
        "-c",
    ),
    _limit(
        "max-unacked-messages-per-consumer",
        "how many messages a consumer may leave unacknowledged",
        "--max-unacked-messages-per-topic",
        "-c",
    ),
    policy(
        _N,
        "compaction-threshold",
        "the backlog at which compaction starts",
        option("--threshold", "-t", type=BYTES, required=True, help="Bytes of backlog; 0 is never."),
        body=of("threshold"),
    ),
    _switch("is-allow-auto-update-schema", "whether producers may change schemas"),
    _switch(
        "schema-validation-enforce",
        "whether producers have to have a schema",
        method="schema_validation_enforced",
        applied=policies.applied(),
    ),
    _limit(
        "max-topics-per-namespace",
        "how many topics there may be",
        "--max-topics-per-namespace",
        "-t",
    ),
    policy(
        _N,
        "entry-filters",
        "the entry filters",
        policies.ENTRY_FILTERS,
        body=policies.entry_filters,
        method="namespace_entry_filters",
    ),
    policy(
        _N,
        "dispatcher-pause-on-ack-state-persistent",
        "whether dispatch waits for acknowledgements to be saved",
    ),
]

POLICIES: tuple[Command, ...] = tuple(command for group in _GROUPS for command in group)
