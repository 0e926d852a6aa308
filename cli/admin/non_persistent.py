"""`pulsarium admin non-persistent`: what of `topics` concerns those, for scripts of old."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import Command, Group, Values, does, option, shows
from pulsarium.cli.admin.messages import TOPIC_ARGUMENT
from pulsarium.cli.admin.output import lines
from pulsarium.cli.admin.partitions import PARTITIONED_METADATA
from pulsarium.cli.admin.policies import NAMESPACES
from pulsarium.cli.admin.topics import LOOKUP
from pulsarium.cli.admin.values import INT


def _non_persistent(command: Command) -> Command:
    """Refuses topics of the other kind."""

    async def run(api: Api, values: Values) -> Any:
        if (topic := getattr(values, "topic", None)) is not None and topic.is_persistent:
            raise click.UsageError("Need to provide a non-persistent topic name")
        return await command.run(api, values)

    return replace(command, run=run)


_COMMANDS = (
    does(
        "create-partitioned-topic",
        lambda api, v: api.non_persistent_topics.create_partitioned_topic(v.topic, v.partitions),
        "Create a partitioned topic.",
        TOPIC_ARGUMENT,
        option("--partitions", "-p", type=INT, required=True, help="How many partitions."),
    ),
    shows(
        "stats",
        lambda api, v: api.non_persistent_topics.get_stats(v.topic),
        "Show the stats of a topic.",
        TOPIC_ARGUMENT,
    ),
    shows(
        "stats-internal",
        lambda api, v: api.non_persistent_topics.get_internal_stats(v.topic),
        "Show the internal stats of a topic.",
        TOPIC_ARGUMENT,
    ),
    PARTITIONED_METADATA,
    shows(
        "list",
        lambda api, v: api.non_persistent_topics.get_list(v.namespace),
        "List the topics of a namespace.",
        NAMESPACES.of,
        show=lines,
    ),
    shows(
        "list-in-bundle",
        lambda api, v: api.non_persistent_topics.get_list_in_bundle(v.namespace, v.bundle),
        "List the topics of a bundle.",
        NAMESPACES.of,
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
