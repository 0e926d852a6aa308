"""The policies and settings of `pulsarium admin namespaces`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from pulsarium.broker.config.keys import SCHEMA_STRATEGIES
from pulsarium.cli.admin import offload
from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandsOf, Values, of, option
from pulsarium.cli.admin.forms import (
    DISABLE,
    DISPATCH_RATE,
    ENABLE,
    FORMS,
    PolicyForm,
    clusters,
    number,
    on_or_off,
    quota,
    quota_options,
    show_quotas,
)
from pulsarium.cli.admin.output import json_value, lines, value
from pulsarium.cli.admin.policies import NAMESPACES, applied, backlog_quota, dashed, policy
from pulsarium.cli.admin.values import BYTES, INT, MILLISECONDS, SECONDS
from pulsarium.rest import policies as rows
from pulsarium.rest.namespaces import Namespaces
from pulsarium.rest.policies import BookieAffinity, Policy
from pulsarium.rest.policy_calls import NamespacePolicies

_N = NAMESPACES
of_namespace = CommandsOf(Namespaces, _N.of)
_STRATEGIES = (
    "Backward",
    "Forward",
    "Full",
    "AlwaysCompatible",
    "BackwardTransitive",
    "ForwardTransitive",
    "FullTransitive",
)
_OFFLOAD = offload.options(
    "--s3-role",
    "-ro",
    block=("--maxBlockSize", "-mbs"),
    buffer=("--readBufferSize", "-rbs"),
    size=("--offloadAfterThreshold", "-oat"),
    seconds=("--offloadAfterThresholdInSeconds", "-oats"),
    lag=("--offloadAfterElapsed", "-oae"),
    units=True,
)


def _bookies(values: Values) -> BookieAffinity:
    groups: BookieAffinity = {"bookkeeperAffinityGroupPrimary": values.primary_group}
    if values.secondary_group:
        groups["bookkeeperAffinityGroupSecondary"] = values.secondary_group
    return groups


async def _offload_threshold(api: Api, values: Values) -> dict[str, Any]:
    return {
        "offloadThresholdInBytes": await NamespacePolicies(api)[rows.OFFLOAD_THRESHOLD].get(values.namespace),
        "offloadThresholdInSeconds": await NamespacePolicies(api)[rows.OFFLOAD_SECONDS].get(values.namespace),
    }


async def _set_offload_threshold(api: Api, values: Values) -> None:
    await NamespacePolicies(api)[rows.OFFLOAD_THRESHOLD].set(values.namespace, values.size)
    await NamespacePolicies(api)[rows.OFFLOAD_SECONDS].set(values.namespace, values.time)


def _lag(data: Any, values: Values) -> str:
    return "Unset for namespace. Defaulting to broker setting." if data is None else f"{data // 60_000} minute(s)"


def _auto_update(values: Values) -> str:
    if values.compatibility is None and not values.disabled:
        raise click.UsageError("Either --compatibility or --disabled must be specified")
    if values.disabled:
        return "AutoUpdateDisabled"
    known = {name.upper(): name for name in _STRATEGIES}
    strategy = known.get(values.compatibility.upper())
    if strategy is None:
        raise click.UsageError(
            f"Unknown strategy {values.compatibility}. Known strategies are {', '.join(_STRATEGIES)}"
        )
    return strategy


def _show_auto_update(data: Any, values: Values) -> str:
    return "null" if data is None else str(data).upper()


def _compatibility(values: Values) -> str:
    strategy = (values.compatibility or "").upper()
    if strategy not in SCHEMA_STRATEGIES:
        known = ", ".join(SCHEMA_STRATEGIES)
        raise click.UsageError(f"Illegal schema compatibility strategy {strategy}. Possible values: [{known}]")
    return strategy


def _topic_creation(values: Values) -> dict[str, object]:
    body = {"allowAutoTopicCreation": on_or_off(values), "topicType": values.type}
    if values.num_partitions is not None:
        body["defaultNumPartitions"] = values.num_partitions
    return body


def _creation_options() -> tuple[click.Option, ...]:
    kinds = click.Choice(["partitioned", "non-partitioned"])
    return (
        ENABLE,
        DISABLE,
        option("--type", "-t", type=kinds, default="non-partitioned", help="Create topics of this kind."),
        option("--num-partitions", "-n", type=INT, help="Create topics with this many partitions."),
    )


def _limit(row: Policy[int], what: str, short: str) -> list[AdminCommand]:
    assert row.namespace is not None
    return policy(_N, row, number(what, f"--{dashed(row.namespace)}", short))


def _switch(row: Policy[bool], what: str, applied: click.Option | None = None, name: str = "") -> list[AdminCommand]:
    return policy(_N, row, PolicyForm(what, (ENABLE, DISABLE), on_or_off), applied=applied, name=name)


_QUOTA = PolicyForm("the backlog quota", quota_options(), quota, show_quotas)
_TTL = option(
    "--messageTTL",
    "-ttl",
    dest="ttl",
    type=SECONDS,
    required=True,
    help="Expire messages after this time, such as 10s, 3h or 2d; 0: never.",
)
_MODE = option("--subscription-auth-mode", "-m", required=True, type=click.Choice(["None", "Prefix"]), help="The mode.")

# fmt: off
_GROUPS = [
    policy(_N, rows.REPLICATION, clusters("the replication clusters", lines), name="clusters"),
    policy(_N, rows.ALLOWED_CLUSTERS, clusters("the allowed clusters", lines)),
    policy(_N, rows.SUBSCRIPTION_TYPES),
    backlog_quota(_N, "get-backlog-quotas", _QUOTA, example="shop/orders --limit 10G --policy producer_exception"),
    policy(_N, rows.PERSISTENCE),
    policy(_N, rows.MESSAGE_TTL, PolicyForm("the time to live of messages", (_TTL,), of("ttl")),
           example="shop/orders --messageTTL 2d"),
    _limit(rows.MAX_SUBSCRIPTIONS, "the maximum number of subscriptions per topic", "-m"),
    policy(_N, rows.SUBSCRIPTION_EXPIRATION,
           number("the expiry of inactive subscriptions", "--time", "-t", "Minutes of inactivity; 0: never.")),
    policy(_N, rows.DEDUPLICATION),
    policy(_N, rows.AUTO_TOPIC_CREATION,
           PolicyForm("the automatic creation of topics", _creation_options(), _topic_creation),
           example="shop/orders --enable --type partitioned --num-partitions 4"),
    policy(_N, rows.AUTO_SUBSCRIPTION_CREATION),
    policy(_N, rows.RETENTION, example="shop/orders --time 3h --size 10G"),
    policy(_N, rows.DISPATCH_RATE),
    policy(_N, rows.SUBSCRIBE_RATE),
    policy(_N, rows.SUBSCRIPTION_DISPATCH_RATE,
           replace(FORMS[rows.DISPATCH_RATE], what="the subscription dispatch rate limit")),
    policy(_N, rows.PUBLISH_RATE, example="shop/orders --msg-publish-rate 100"),
    policy(_N, rows.REPLICATOR_DISPATCH_RATE, replace(FORMS[rows.REPLICATOR_DISPATCH_RATE], options=DISPATCH_RATE)),
    _switch(rows.ENCRYPTION_REQUIRED, "the encryption requirement"),
    policy(_N, rows.SUBSCRIPTION_AUTH_MODE,
           PolicyForm("the subscription authentication mode", (_MODE,), of("subscription_auth_mode"), json_value)),
    policy(_N, rows.DELAYED_DELIVERY),
    policy(_N, rows.INACTIVE_TOPICS),
    _limit(rows.MAX_PRODUCERS, "the maximum number of producers per topic", "-p"),
    _limit(rows.MAX_CONSUMERS, "the maximum number of consumers per topic", "-c"),
    _limit(rows.MAX_CONSUMERS_PER_SUBSCRIPTION, "the maximum number of consumers per subscription", "-c"),
    _limit(rows.MAX_UNACKED_PER_SUBSCRIPTION, "the maximum number of unacknowledged messages per subscription", "-c"),
    policy(_N, rows.MAX_UNACKED_PER_CONSUMER, number(
        "the maximum number of unacknowledged messages per consumer", "--max-unacked-messages-per-topic", "-c")),
    policy(_N, rows.COMPACTION_THRESHOLD),
    _switch(rows.SCHEMA_AUTO_UPDATE, "the automatic updates of schemas"),
    _switch(rows.SCHEMA_VALIDATION, "the schema enforcement", applied(), name="schema-validation-enforce"),
    _limit(rows.MAX_TOPICS, "the maximum number of topics", "-t"),
    policy(_N, rows.ENTRY_FILTERS),
    policy(_N, rows.DISPATCHER_PAUSE),
]
# fmt: on
POLICIES: tuple[AdminCommand, ...] = tuple(command for group in _GROUPS for command in group)

SETTINGS: tuple[AdminCommand, ...] = (
    of_namespace.shows(
        "get-anti-affinity-group",
        Namespaces.get_namespace_anti_affinity_group,
        "Show the anti-affinity group of a namespace.",
    ),
    of_namespace.does(
        "set-anti-affinity-group",
        Namespaces.set_namespace_anti_affinity_group,
        "Set the anti-affinity group, whose namespaces go to different brokers.",
        option("--group", "-g", required=True, help="The group."),
    ),
    of_namespace.does(
        "delete-anti-affinity-group",
        Namespaces.delete_namespace_anti_affinity_group,
        "Remove a namespace from its anti-affinity group.",
    ),
    of_namespace.does(
        "set-bookie-affinity-group",
        Namespaces.set_bookie_affinity_group,
        "Set the bookie groups of a namespace.",
        option("--primary-group", "-pg", required=True, help="The primary group."),
        option("--secondary-group", "-sg", help="The secondary group, used if needed."),
        groups=_bookies,
    ),
    of_namespace.shows(
        "get-bookie-affinity-group", Namespaces.get_bookie_affinity_group, "Show the bookie groups of a namespace."
    ),
    of_namespace.does(
        "delete-bookie-affinity-group",
        Namespaces.delete_bookie_affinity_group,
        "Remove the bookie groups of a namespace.",
    ),
    AdminCommand(
        "get-offload-threshold",
        "Show the size and age thresholds of offloading.",
        _offload_threshold,
        (_N.of,),
        lambda data, values: "\n".join(f"{name}: {value(amount)}" for name, amount in data.items()),
    ),
    AdminCommand(
        "set-offload-threshold",
        "Set the size and age thresholds of offloading.",
        _set_offload_threshold,
        (
            _N.of,
            option("--size", "-s", type=BYTES, required=True, help="The size; -1: never."),
            option("--time", "-t", type=SECONDS, default="-1", help="The age; -1: never."),
        ),
    ),
    _N.gets(
        rows.OFFLOAD_LAG, "get-offload-deletion-lag", "Show how long offloaded ledgers stay in BookKeeper.", show=_lag
    ),
    _N.sets(
        rows.OFFLOAD_LAG,
        "set-offload-deletion-lag",
        "Set how long offloaded ledgers stay in BookKeeper.",
        option("--lag", "-l", type=MILLISECONDS, required=True, help="Keep ledgers for this time, such as 10m or 2d."),
        body=of("lag"),
    ),
    _N.removes(rows.OFFLOAD_LAG, "clear-offload-deletion-lag", "Remove the offload deletion lag."),
    _N.gets(
        rows.OLDER_SCHEMA_STRATEGY,
        "get-schema-autoupdate-strategy",
        "Show how producers may change schemas (older command).",
        show=_show_auto_update,
    ),
    _N.sets(
        rows.OLDER_SCHEMA_STRATEGY,
        "set-schema-autoupdate-strategy",
        "Set how producers may change schemas (older command).",
        option("--compatibility", "-c", help=f"One of {', '.join(_STRATEGIES)}."),
        option("--disabled", "-d", flag=True, help="Forbid changes of schemas."),
        body=_auto_update,
    ),
    _N.gets(rows.SCHEMA_STRATEGY, "get-schema-compatibility-strategy", "Show the schema compatibility strategy."),
    _N.sets(
        rows.SCHEMA_STRATEGY,
        "set-schema-compatibility-strategy",
        "Set the schema compatibility strategy.",
        option("--compatibility", "-c", help=f"One of {', '.join(SCHEMA_STRATEGIES)}."),
        body=_compatibility,
    ),
    *policy(
        _N,
        rows.OFFLOAD,
        PolicyForm("the offload policies", _OFFLOAD, offload.body),
        removable=False,
    ),
    _N.removes(rows.OFFLOAD, "remove-offload-policies", "Remove the offload policies."),
    *policy(_N, rows.DEDUPLICATION_SNAPSHOTS, removable=False),
    _N.removes(
        rows.DEDUPLICATION_SNAPSHOTS,
        "remove-deduplication-snapshot-interval",
        "Remove the deduplication snapshot interval.",
    ),
    of_namespace.shows("get-resource-group", Namespaces.get_namespace_resource_group, "Show the resource group."),
    of_namespace.does(
        "set-resource-group",
        Namespaces.set_namespace_resource_group,
        "Put a namespace into a resource group.",
        option("--resource-group-name", "-rgn", dest="group", required=True, help="The group."),
    ),
    of_namespace.does(
        "remove-resource-group",
        Namespaces.remove_namespace_resource_group,
        "Remove a namespace from its resource group.",
    ),
    of_namespace.does(
        "update-migration-state",
        Namespaces.update_migration_state,
        "Set whether a namespace has migrated to another cluster.",
        option("--migrated", flag=True, help="Mark the namespace as migrated."),
    ),
)
