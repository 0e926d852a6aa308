"""`pulsarium admin topicPolicies`."""

from . import offload, policies
from .command import Command, Group, Values, argument, delete, option
from .policies import TOPIC_POLICIES, applied, number, of, policy
from .shared_policies import (
    APPLIED,
    ON_CONSUMER,
    ON_SUBSCRIPTION,
    QUOTA,
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
        _rate_of,
        SUBSCRIPTION_RATE[1],
        *policies.DISPATCH_RATE,
        policies.RELATIVE,
        one,
        body=policies.dispatch_rate,
        applied=APPLIED,
        get_options=(one,),
        remove_options=(one,),
    )


def _rate_of(values: Values) -> str:
    return SUBSCRIPTION_RATE[0] if values.subscription is None else "{subscription:twice}/dispatchRate"


def _of_topic_policies() -> list[Command]:
    scope = TOPIC_POLICIES
    return [
        *shared(scope, _OFFLOAD),
        *policy(
            scope,
            "backlog-quota",
            "backlogQuota",
            "what happens at how much backlog",
            *policies.quota_options(),
            get_route="backlogQuotaMap",
            query=QUOTA,
            remove_query=QUOTA,
            remove_options=(policies.QUOTA_TYPE,),
            body=policies.quota,
            applied=APPLIED,
            show=policies.show_quotas,
            example="orders --limit 10G --policy producer_exception",
        ),
        *unacked(scope, "per-consumer", *ON_CONSUMER),
        *unacked(scope, "per-subscription", *ON_SUBSCRIPTION),
        *_subscription_rate(),
        *policy(
            scope,
            "max-subscriptions-per-topic",
            *SUBSCRIPTIONS,
            number("--max-subscriptions-per-topic", "-s", "The number; 0 is without limit."),
            body=of("number"),
        ),
        *policy(
            scope,
            "schema-compatibility-strategy",
            "schemaCompatibilityStrategy",
            "which new schemas are accepted",
            policies.SCHEMA_STRATEGY,
            body=of("strategy"),
            put_it=True,
            applied=APPLIED,
            everywhere=False,
        ),
        *policy(
            scope,
            "entry-filters-per-topic",
            "entryFilters",
            "the entry filters",
            policies.ENTRY_FILTERS,
            body=policies.entry_filters,
            applied=APPLIED,
        ),
        *policy(
            scope,
            "auto-subscription-creation",
            "autoSubscriptionCreation",
            "whether consumers create subscriptions",
            policies.ENABLE,
            body=lambda values: {"allowAutoSubscriptionCreation": values.enable},
            applied=applied("-a"),
        ),
        *policy(
            scope,
            "dispatcher-pause-on-ack-state-persistent",
            "dispatcherPauseOnAckStatePersistent",
            "whether dispatch waits for acknowledgements to be saved",
            applied=applied("-a"),
        ),
        *replication_clusters(scope),
    ]


GROUP = Group(
    "topicPolicies",
    "Policies of a topic: they win over its namespace's and the broker's.",
    (
        delete("delete", "{topic}/policies", "Remove all policies of a topic.", argument("topic", TOPIC)),
        *_of_topic_policies(),
    ),
    examples=(
        "topicPolicies set-retention orders --time 3h --size 10G",
        "topicPolicies get-retention orders --applied",
    ),
)
