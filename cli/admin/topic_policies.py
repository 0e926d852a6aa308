"""`pulsarium admin topicPolicies`, and the policies that `topics` has for older scripts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from pulsarium.broker.config.keys import SCHEMA_STRATEGIES
from pulsarium.cli.admin import offload
from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandGroup, CommandsOf, Values, of, option
from pulsarium.cli.admin.forms import FORMS, PolicyForm, number, quota, quota_of, quota_options, show_quotas
from pulsarium.cli.admin.policies import TOPIC_POLICIES, TOPICS, Scope, applied, backlog_quota, policy
from pulsarium.cli.admin.values import SECONDS
from pulsarium.rest import policies as rows
from pulsarium.rest.policy_calls import PolicyCalls, TopicPolicies

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
_OLDER_OFFLOAD = offload.options(
    "--ro",
    "--s3-role",
    block=("--maxBlockSizeInBytes", "--maxBlockSize", "-m", "-mbs"),
    buffer=("--readBufferSizeInBytes", "--readBufferSize", "-rb", "-rbs"),
    size=("--offloadThresholdInBytes", "--offloadAfterThreshold", "-t", "-oat"),
    seconds=("--offloadThresholdInSeconds", "--offloadAfterThresholdInSeconds", "-ts", "-oats"),
    lag=("--offloadDeletionLagInMillis", "--offloadAfterElapsed", "-dl", "-oae"),
    units=True,
)
APPLIED = applied()
_TTL = option(
    "--ttl", "-t", type=SECONDS, required=True, help="Expire messages after this time, such as 10s, 3h or 2d; 0: never."
)
_STRATEGY = option("--strategy", "-s", type=click.Choice(SCHEMA_STRATEGIES), required=True, help="The strategy.")
_SUBSCRIPTIONS, _MOST_SUBSCRIPTIONS = "the maximum number of subscriptions", "--max-subscriptions-per-topic"
_SUBSCRIPTION_RATE = replace(FORMS[rows.DISPATCH_RATE], what="the subscription dispatch rate limit")


def _shared(scope: Scope, offload_options: tuple[click.Option, ...]) -> list[AdminCommand]:
    """Return the commands that both groups have under the same names."""
    # fmt: off
    found = (
        policy(scope, rows.MESSAGE_TTL, PolicyForm("the time to live of messages", (_TTL,), of("ttl")),
               applied=APPLIED, example="orders --ttl 2d"),
        policy(scope, rows.MAX_CONSUMERS_PER_SUBSCRIPTION,
               number("the maximum number of consumers per subscription", "--max-consumers-per-subscription", "-c")),
        policy(scope, rows.SUBSCRIPTION_TYPES),
        policy(scope, rows.RETENTION, applied=APPLIED, example="orders --time 3h --size 10G"),
        policy(scope, rows.MAX_PRODUCERS,
               number("the maximum number of producers", "--max-producers", "-p"), applied=APPLIED),
        policy(scope, rows.MAX_MESSAGE_SIZE,
               number("the maximum message size", "--max-message-size", "-m", "Bytes; 0 means the broker's limit.")),
        policy(scope, rows.DEDUPLICATION, name="deduplication"),
        policy(scope, rows.DEDUPLICATION_SNAPSHOTS),
        policy(scope, rows.PERSISTENCE),
        policy(scope, rows.REPLICATOR_DISPATCH_RATE, applied=APPLIED),
        policy(scope, rows.PUBLISH_RATE, example="orders --msg-publish-rate 100"),
        policy(scope, rows.COMPACTION_THRESHOLD, applied=APPLIED),
        policy(scope, rows.SUBSCRIBE_RATE, applied=APPLIED),
        policy(scope, rows.MAX_CONSUMERS,
               number("the maximum number of consumers", "--max-consumers", "-c"), applied=APPLIED),
        policy(scope, rows.DELAYED_DELIVERY, applied=APPLIED),
        policy(scope, rows.DISPATCH_RATE, applied=APPLIED),
        policy(scope, rows.OFFLOAD, PolicyForm("the offload policies", offload_options, offload.body), applied=APPLIED),
        policy(scope, rows.INACTIVE_TOPICS, applied=APPLIED),
    )
    # fmt: on
    return [command for commands in found for command in commands]


def _unacked(scope: Scope, before: str) -> list[AdminCommand]:
    """Return the commands for unacknowledged messages per consumer and subscription, named with the word `before`."""
    found = ((rows.MAX_UNACKED_PER_CONSUMER, "consumer"), (rows.MAX_UNACKED_PER_SUBSCRIPTION, "subscription"))
    return [
        command
        for row, who in found
        for command in policy(
            scope,
            row,
            number(f"the maximum number of unacknowledged messages per {who}", "--maxNum", "-m"),
            name=f"max-unacked-messages-{before}-{who}",
            applied=APPLIED,
        )
    ]


def _replication_clusters(scope: Scope) -> list[AdminCommand]:
    return policy(scope, rows.REPLICATION, applied=APPLIED, hidden=False, name="replication-clusters")


def _subscription_rate() -> list[AdminCommand]:
    """Return the commands for the dispatch rate of all subscriptions, or with --subscription of one."""
    one = option("--subscription", "-s", help="Select this subscription.")
    return policy(
        TOPIC_POLICIES,
        rows.SUBSCRIPTION_DISPATCH_RATE,
        replace(_SUBSCRIPTION_RATE, options=(*_SUBSCRIPTION_RATE.options, one)),
        applied=APPLIED,
        more=(one,),
        calls=_of_subscription,
    )


def _of_subscription(api: Api, values: Values) -> PolicyCalls[Any, Any]:
    if values.subscription is None:
        return TopicPolicies(api)[rows.SUBSCRIPTION_DISPATCH_RATE]
    return TopicPolicies(api).dispatch_rate_of(values.subscription)


def _of_topic_policies() -> list[AdminCommand]:
    scope = TOPIC_POLICIES
    quotas = PolicyForm("the backlog quota", quota_options(), quota, show_quotas)
    quota_example = "orders --limit 10G --policy producer_exception"
    strategy = PolicyForm("the schema compatibility strategy", (_STRATEGY,), of("strategy"))
    subscriptions = number(_SUBSCRIPTIONS, _MOST_SUBSCRIPTIONS, "-s")
    return [
        *_shared(scope, _OFFLOAD),
        *backlog_quota(scope, "get-backlog-quota", quotas, applied=APPLIED, example=quota_example),
        *_unacked(scope, "per"),
        *_subscription_rate(),
        *policy(scope, rows.MAX_SUBSCRIPTIONS, subscriptions),
        *policy(scope, rows.SCHEMA_STRATEGY, strategy, applied=APPLIED),
        *policy(scope, rows.ENTRY_FILTERS, applied=APPLIED, name="entry-filters-per-topic"),
        *policy(scope, rows.AUTO_SUBSCRIPTION_CREATION, applied=applied("-a")),
        *policy(scope, rows.DISPATCHER_PAUSE, applied=applied("-a")),
        *_replication_clusters(scope),
    ]


GROUPS = {
    "topicPolicies": CommandGroup(
        (
            CommandsOf(TopicPolicies, TOPIC_POLICIES.of).does(
                "delete", TopicPolicies.delete_topic_policies, "Remove all policies of a topic."
            ),
            *_of_topic_policies(),
        ),
        examples=(
            "topicPolicies set-retention orders --time 3h --size 10G",
            "topicPolicies get-retention orders --applied",
        ),
    )
}


def older_policies() -> list[AdminCommand]:
    """Return the policy commands of `topics`, for scripts older than topicPolicies."""
    named = {command.name: command for command in _shared(TOPICS, _OLDER_OFFLOAD)}
    switches = [
        TOPIC_POLICIES.sets(
            rows.DEDUPLICATION, "enable-deduplication", "Enable deduplication.", hidden=True, body=lambda v: True
        ),
        TOPIC_POLICIES.sets(
            rows.DEDUPLICATION, "disable-deduplication", "Disable deduplication.", hidden=True, body=lambda v: False
        ),
    ]
    doubled = (
        ("get-deduplication-enabled", "get-deduplication"),
        *((f"{verb}-maxProducers", f"{verb}-max-producers") for verb in ("get", "set", "remove")),
    )
    quotas = PolicyForm(
        "the backlog quota",
        quota_options("-1"),
        lambda values: quota_of(values.limit, values.limit_time, values.policy),
        show_quotas,
    )
    return [
        *_visible(named, "get-retention"),
        *switches,
        *(_renamed(named[old], new) for new, old in doubled),
        *backlog_quota(TOPICS, "get-backlog-quotas", quotas, applied=APPLIED),
        *_unacked(TOPICS, "on"),
        *_unacked(TOPICS, "per"),
        *policy(
            TOPICS, rows.MAX_SUBSCRIPTIONS, number(_SUBSCRIPTIONS, _MOST_SUBSCRIPTIONS, "-m"), name="max-subscriptions"
        ),
        *policy(TOPICS, rows.SUBSCRIPTION_DISPATCH_RATE, _SUBSCRIPTION_RATE, applied=APPLIED),
        *_replication_clusters(TOPICS),
    ]


def _visible(named: dict[str, AdminCommand], name: str) -> list[AdminCommand]:
    return [replace(command, hidden=False) if command.name == name else command for command in named.values()]


def _renamed(command: AdminCommand, name: str) -> AdminCommand:
    return replace(command, name=name)
