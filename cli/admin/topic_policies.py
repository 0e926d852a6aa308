"""`pulsarium admin topicPolicies`."""

from . import offload, policies
from .command import Command, Group, argument, does, option
from .policies import TOPIC_POLICIES, applied, number, of, policy
from .shared_policies import (
    APPLIED,
    ON_CONSUMER,
    ON_SUBSCRIPTION,
    SUBSCRIPTION_RATE,
    SUBSCRIPTIONS,
    replication_clusters,
    shared,
    unacked,
)
from .values import TOPIC

_OFFLOAD = offload.options(
    "--ro",
    "--s3-role",
    block=("--maxBlockSizeInBytes", "-m"),
    buffer=("--readBufferSizeInBytes", "-rb"),
    size=("--offloadThresholdInBytes", "-t"),
    seconds=("--offloadThresholdInSeconds", "-ts"),
    lag=("--offloadDeletionLagInMillis", "-dl"),
    units=False,
)


def _subscription_rate() -> list[Command]:
    """The rate of all subscriptions, or with --subscription that of one."""
    one = option("--subscription", "-s", help="Of this subscription alone.")
    return policy(
        TOPIC_POLICIES,
        "subscription-dispatch-rate",
        SUBSCRIPTION_RATE,
        *policies.DISPATCH_RATE,
        policies.RELATIVE,
        one,
        body=policies.dispatch_rate,
        applied=APPLIED,
        get_options=(one,),
        remove_options=(one,),
        more={"subscription": "subscription"},
    )


def _of_topic_policies() -> list[Command]:
    scope = TOPIC_POLICIES
    return [
        *shared(scope, _OFFLOAD),
        *policy(
            scope,
            "backlog-quota",
            "what happens at how much backlog",
            *policies.quota_options(),
            remove_options=(policies.QUOTA_TYPE,),
            body=policies.quota,
            applied=APPLIED,
            show=policies.show_quotas,
            example="orders --limit 10G --policy producer_exception",
            get_method="backlog_quota_map",
            more={"quota_type": "type"},
        ),
        *unacked(scope, "per-consumer", *ON_CONSUMER),
        *unacked(scope, "per-subscription", *ON_SUBSCRIPTION),
        *_subscription_rate(),
        *policy(
            scope,
            "max-subscriptions-per-topic",
            SUBSCRIPTIONS,
            number("--max-subscriptions-per-topic", "-s", "The number; 0 is without limit."),
            body=of("number"),
        ),
        *policy(
            scope,
            "schema-compatibility-strategy",
            "which new schemas are accepted",
            policies.SCHEMA_STRATEGY,
            body=of("strategy"),
            applied=APPLIED,
            everywhere=False,
        ),
        *policy(
            scope,
            "entry-filters-per-topic",
            "the entry filters",
            policies.ENTRY_FILTERS,
            body=policies.entry_filters,
            applied=APPLIED,
        ),
        *policy(
            scope,
            "auto-subscription-creation",
            "whether consumers create subscriptions",
            policies.ENABLE,
            body=lambda values: {"allowAutoSubscriptionCreation": values.enable},
            applied=applied("-a"),
        ),
        *policy(
            scope,
            "dispatcher-pause-on-ack-state-persistent",
            "whether dispatch waits for acknowledgements to be saved",
            applied=applied("-a"),
        ),
        *replication_clusters(scope),
    ]


GROUP = Group(
    "topicPolicies",
    "Policies of a topic: they win over its namespace's and the broker's.",
    (
        does(
            "delete",
            lambda api, v: api.topic_policies.delete_topic_policies(v.topic),
            "Remove all policies of a topic.",
            argument("topic", TOPIC),
        ),
        *_of_topic_policies(),
    ),
    examples=(
        "topicPolicies set-retention orders --time 3h --size 10G",
        "topicPolicies get-retention orders --applied",
    ),
)
