"""`pulsarium admin non-persistent`: what of `topics` concerns those, for scripts of old."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import Command, CommandsOf, Group, Values, option
from pulsarium.cli.admin.messages import TOPIC_ARGUMENT
from pulsarium.cli.admin.output import lines
from pulsarium.cli.admin.partitions import PARTITIONED_METADATA
from pulsarium.cli.admin.policies import NAMESPACES
from pulsarium.cli.admin.topics import LOOKUP
from pulsarium.cli.admin.values import INT
from pulsarium.rest.non_persistent_topics import NonPersistentTopics

of_namespace = CommandsOf(NonPersistentTopics, NAMESPACES.of)
of_topic = CommandsOf(NonPersistentTopics, TOPIC_ARGUMENT)


def _non_persistent(command: Command) -> Command:
    """Refuses topics of the other kind."""

    async def run(api: Api, values: Values) -> Any:
        if (topic := getattr(values, "topic", None)) is not None and topic.is_persistent:
            raise click.UsageError("Need to provide a non-persistent topic name")
        return await command.run(api, values)

    return replace(command, run=run)


_COMMANDS = (
    of_topic.does(
        "create-partitioned-topic",
        NonPersistentTopics.create_partitioned_topic,
        "Create a partitioned topic.",
        option("--partitions", "-p", type=INT, required=True, help="How many partitions."),
    ),
    of_topic.shows("stats", NonPersistentTopics.get_stats, "Show the stats of a topic."),
    of_topic.shows("stats-internal", NonPersistentTopics.get_internal_stats, "Show the internal stats of a topic."),
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

GROUP = Group(
    "non-persistent",
    "Non-persistent topics, by the commands of old: see `topics`.",
    (*map(_non_persistent, _COMMANDS), LOOKUP),
    hidden=True,
)
