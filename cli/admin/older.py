"""`pulsarium admin persistent` and `non-persistent`: the older form of `topics`, for older scripts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from pulsarium.cli.admin import messages, partitions, subscriptions, topics, upkeep
from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandGroup, CommandsOf, Values, option
from pulsarium.cli.admin.forms import ACTIONS, LONG_ROLE, single_actions
from pulsarium.cli.admin.message import hex_dump
from pulsarium.cli.admin.messages import TOPIC_ARGUMENT, of_topic
from pulsarium.cli.admin.output import lines
from pulsarium.cli.admin.partitions import PARTITIONED_METADATA
from pulsarium.cli.admin.policies import NAMESPACES
from pulsarium.cli.admin.topics import LOOKUP, PRECISE
from pulsarium.cli.admin.values import INT
from pulsarium.rest.topics import NonPersistentTopics, Topics

_FORCE = option("--force", flag=True, help="Delete also while clients are connected, and disconnect them.")
_PARTITIONS = option("--partitions", "-p", type=INT, required=True, help="The number of partitions.")


def _only(command: AdminCommand, persistent: bool) -> AdminCommand:
    """Return the command, limited to persistent or to non-persistent topics."""

    async def run(api: Api, values: Values) -> Any:
        if (topic := getattr(values, "topic", None)) is not None and topic.is_persistent != persistent:
            raise click.UsageError(f"Need to provide a {'' if persistent else 'non-'}persistent topic name")
        return await command.run(api, values)

    return replace(command, run=run)


_OF_PERSISTENT = (
    topics.LIST,
    topics.LIST_PARTITIONED,
    topics.PERMISSIONS,
    of_topic.does(
        "grant-permission",
        Topics.grant_permission,
        "Allow a role to use a topic.",
        LONG_ROLE,
        option("--actions", **{**ACTIONS, "metavar": "ACTION"}),
        actions=single_actions,
    ),
    of_topic.does(
        "revoke-permission", Topics.revoke_permissions, "Revoke all permissions of a role on a topic.", LONG_ROLE
    ),
    topics.LOOKUP,
    topics.BUNDLE_RANGE,
    of_topic.does("delete", Topics.delete, "Delete a topic.", _FORCE),
    upkeep.UNLOAD,
    upkeep.TRUNCATE,
    subscriptions.LIST,
    subscriptions.UNSUBSCRIBE,
    subscriptions.create_command(),
    of_topic.shows(
        "stats", Topics.get_stats, "Show the stats of a topic.", PRECISE, subscription_backlog_size=lambda v: False
    ),
    topics.STATS_INTERNAL,
    topics.INFO_INTERNAL,
    of_topic.shows(
        "partitioned-stats",
        Topics.get_partitioned_stats,
        "Show the stats of all partitions together.",
        option("--per-partition", flag=True, help="Show each partition too."),
        subscription_backlog_size=lambda v: False,
    ),
    topics.PARTITIONED_STATS_INTERNAL,
    subscriptions.SKIP,
    subscriptions.clear_command("skip-all"),
    subscriptions.expire_command(subscriptions.EXPIRE_TIME),
    subscriptions.EXPIRE_ALL,
    AdminCommand(
        "create-partitioned-topic",
        "Create a partitioned topic.",
        partitions.create_partitioned,
        (TOPIC_ARGUMENT, _PARTITIONS),
    ),
    AdminCommand(
        "update-partitioned-topic",
        "Give a partitioned topic more partitions.",
        partitions.update_partitioned,
        (TOPIC_ARGUMENT, _PARTITIONS),
    ),
    partitions.PARTITIONED_METADATA,
    of_topic.does("delete-partitioned-topic", Topics.delete_partitioned_topic, "Delete a partitioned topic.", _FORCE),
    messages.peek_command(),
    replace(messages.BY_ID, show=lambda data, values: "\n".join(hex_dump(message.payload) for message in data)),
    messages.LAST,
    subscriptions.reset_command(),
    upkeep.TERMINATE,
    upkeep.COMPACT,
    upkeep.COMPACTION_STATUS,
)


of_namespace = CommandsOf(NonPersistentTopics, NAMESPACES.of)
of_non_persistent = CommandsOf(NonPersistentTopics, TOPIC_ARGUMENT)


_OF_NON_PERSISTENT = (
    of_non_persistent.does(
        "create-partitioned-topic",
        NonPersistentTopics.create_partitioned_topic,
        "Create a partitioned topic.",
        option("--partitions", "-p", type=INT, required=True, help="The number of partitions."),
    ),
    of_non_persistent.shows("stats", NonPersistentTopics.get_stats, "Show the stats of a topic."),
    of_non_persistent.shows(
        "stats-internal", NonPersistentTopics.get_internal_stats, "Show the internal stats of a topic."
    ),
    PARTITIONED_METADATA,
    of_namespace.shows("list", NonPersistentTopics.get_list, "List the topics of a namespace.", show=lines),
    of_namespace.shows(
        "list-in-bundle",
        NonPersistentTopics.get_list_in_bundle,
        "List the topics of a bundle.",
        option("--bundle", "-b", required=True, metavar="0x..._0x...", help="The bundle."),
        show=lines,
    ),
)

GROUPS = {
    "persistent": CommandGroup(tuple(_only(command, persistent=True) for command in _OF_PERSISTENT), hidden=True),
    "non-persistent": CommandGroup(
        (*(_only(command, persistent=False) for command in _OF_NON_PERSISTENT), LOOKUP), hidden=True
    ),
}
