"""`pulsarium admin persistent`: `topics` as it was, for scripts of old."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from pulsarium.cli.admin import messages, partitions, subscriptions, topic_stats, topics, upkeep
from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import Command, Group, Values, does, option, shows
from pulsarium.cli.admin.message import hex_dump
from pulsarium.cli.admin.messages import TOPIC_ARGUMENT
from pulsarium.cli.admin.permissions import ACTIONS, actions
from pulsarium.cli.admin.values import INT

_PRECISE = option("--get-precise-backlog", "-gpb", flag=True, help="Count the backlog exactly, by message.")
_LEAST_STATS = "subscriptionBacklogSize=false&getEarliestTimeInBacklog=false"
_FORCE = option("--force", flag=True, help="Also while clients are connected; they are closed.")
_PARTITIONS = option("--partitions", "-p", type=INT, required=True, help="How many partitions.")


def _persistent(command: Command) -> Command:
    """Refuses topics of the other kind."""

    async def run(api: Api, values: Values) -> Any:
        if (topic := getattr(values, "topic", None)) is not None and not topic.is_persistent:
            raise click.UsageError("Need to provide a persistent topic name")
        return await command.run(api, values)

    return replace(command, run=run)


_COMMANDS = (
    topics.LIST,
    topics.LIST_PARTITIONED,
    topics.PERMISSIONS,
    does(
        "grant-permission",
        lambda api, v: api.topics.grant_permission(v.topic, v.role, actions(v)),
        "Allow a role to use a topic.",
        TOPIC_ARGUMENT,
        option("--role", required=True, help="Who."),
        option("--actions", **ACTIONS),
    ),
    does(
        "revoke-permission",
        lambda api, v: api.topics.revoke_permissions(v.topic, v.role),
        "Take that back.",
        TOPIC_ARGUMENT,
        option("--role", required=True, help="Who."),
    ),
    topics.LOOKUP,
    topics.BUNDLE_RANGE,
    does("delete", lambda api, v: api.topics.delete(v.topic, force=v.force), "Delete a topic.", TOPIC_ARGUMENT, _FORCE),
    upkeep.UNLOAD,
    upkeep.TRUNCATE,
    subscriptions.LIST,
    subscriptions.UNSUBSCRIBE,
    subscriptions.create_command(),
    shows(
        "stats",
        lambda api, v: api.topics.get_stats(
            v.topic, get_precise_backlog=v.get_precise_backlog, subscription_backlog_size=False
        ),
        "Show the stats of a topic.",
        TOPIC_ARGUMENT,
        _PRECISE,
    ),
    topic_stats.STATS_INTERNAL,
    topic_stats.INFO_INTERNAL,
    shows(
        "partitioned-stats",
        lambda api, v: api.topics.get_partitioned_stats(
            v.topic, per_partition=v.per_partition, subscription_backlog_size=False
        ),
        "Show the stats of all partitions together.",
        TOPIC_ARGUMENT,
        option("--per-partition", flag=True, help="Of each partition too."),
    ),
    topic_stats.PARTITIONED_STATS_INTERNAL,
    subscriptions.SKIP,
    subscriptions.clear_command("skip-all"),
    subscriptions.expire_command(subscriptions.EXPIRE_TIME),
    subscriptions.EXPIRE_ALL,
    Command(
        "create-partitioned-topic",
        "Create a partitioned topic.",
        partitions.create_partitioned,
        (TOPIC_ARGUMENT, _PARTITIONS),
    ),
    Command(
        "update-partitioned-topic",
        "Give it more.",
        partitions.update_partitioned,
        (TOPIC_ARGUMENT, _PARTITIONS),
    ),
    partitions.PARTITIONED_METADATA,
    does(
        "delete-partitioned-topic",
        lambda api, v: api.topics.delete_partitioned_topic(v.topic, force=v.force),
        "Delete a partitioned topic.",
        TOPIC_ARGUMENT,
        _FORCE,
    ),
    messages.peek_command(),
    replace(messages.BY_ID, show=lambda data, values: "\n".join(hex_dump(message.payload) for message in data)),
    messages.LAST,
    subscriptions.reset_command(),
    upkeep.TERMINATE,
    upkeep.COMPACT,
    upkeep.COMPACTION_STATUS,
)

GROUP = Group(
    "persistent",
    "Persistent topics, by the commands of old: see `topics`.",
    tuple(map(_persistent, _COMMANDS)),
    hidden=True,
)
