"""The policies that `topics` keeps for scripts which are older than topicPolicies."""

from dataclasses import replace

from . import offload, policies
from .command import Command, does
from .policies import TOPICS, number, of, policy
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

_OFFLOAD = offload.options(
    "--ro",
    "--s3-role",
    block=("--maxBlockSizeInBytes", "--maxBlockSize", "-m", "-mbs"),
    buffer=("--readBufferSizeInBytes", "--readBufferSize", "-rb", "-rbs"),
    size=("--offloadThresholdInBytes", "--offloadAfterThreshold", "-t", "-oat"),
    seconds=("--offloadThresholdInSeconds", "--offloadAfterThresholdInSeconds", "-ts", "-oats"),
    lag=("--offloadDeletionLagInMillis", "--offloadAfterElapsed", "-dl", "-oae"),
    units=True,
)


def older_policies() -> list[Command]:
    """What `topics` keeps for scripts that are older than topicPolicies."""
    named = {command.name: command for command in shared(TOPICS, _OFFLOAD)}
    switches = [
        does(
            "enable-deduplication",
            lambda api, v: api.topic_policies.set_deduplication_status(v.topic, True),
            "Enable deduplication.",
            TOPICS.of,
            hidden=True,
        ),
        does(
            "disable-deduplication",
            lambda api, v: api.topic_policies.set_deduplication_status(v.topic, False),
            "Disable deduplication.",
            TOPICS.of,
            hidden=True,
        ),
    ]
    doubled = (
        ("get-deduplication-enabled", "get-deduplication"),
        *((f"{verb}-maxProducers", f"{verb}-max-producers") for verb in ("get", "set", "remove")),
    )
    return [
        *_visible(named, "get-retention"),
        *switches,
        *(_renamed(named[old], new) for new, old in doubled),
        *policy(
            TOPICS,
            "backlog-quota",
            "what happens at how much backlog",
            *policies.quota_options("-1"),
            get_name="get-backlog-quotas",
            remove_options=(policies.QUOTA_TYPE,),
            body=lambda values: policies.quota_of(values.limit, values.limit_time, values.policy),
            applied=APPLIED,
            show=policies.show_quotas,
            get_method="backlog_quota_map",
            more={"quota_type": "type"},
        ),
        *unacked(TOPICS, "on-consumer", *ON_CONSUMER),
        *unacked(TOPICS, "on-subscription", *ON_SUBSCRIPTION),
        *unacked(TOPICS, "per-consumer", *ON_CONSUMER),
        *unacked(TOPICS, "per-subscription", *ON_SUBSCRIPTION),
        *policy(
            TOPICS,
            "max-subscriptions",
            SUBSCRIPTIONS,
            number("--max-subscriptions-per-topic", "-m", "The number; 0 is without limit."),
            body=of("number"),
            method="max_subscriptions_per_topic",
        ),
        *policy(
            TOPICS,
            "subscription-dispatch-rate",
            SUBSCRIPTION_RATE,
            *policies.DISPATCH_RATE,
            policies.RELATIVE,
            body=policies.dispatch_rate,
            applied=APPLIED,
        ),
        *replication_clusters(TOPICS),
    ]


def _visible(named: dict[str, Command], name: str) -> list[Command]:
    return [replace(command, hidden=False) if command.name == name else command for command in named.values()]


def _renamed(command: Command, name: str) -> Command:
    return replace(command, name=name)
