"""`pulsarium admin non-persistent`: what of `topics` concerns those, for scripts of old."""

from dataclasses import replace
from typing import Any

import click

from .command import Command, Group, Values, get, option, put
from .messages import TOPIC_ARGUMENT
from .output import lines
from .partitions import PARTITIONED_METADATA
from .policies import NAMESPACES
from .topics import LOOKUP
from .values import INT


def _non_persistent(command: Command) -> Command:
    """Refuses topics of the other kind."""

    def run(api: Any, values: Values) -> Any:
        if (topic := getattr(values, "topic", None)) is not None and topic.is_persistent:
            raise click.UsageError("Need to provide a non-persistent topic name")
        return command.run(api, values)

    return replace(command, run=run)


_COMMANDS = (
    put(
        "create-partitioned-topic",
        "{topic}/partitions",
        "Create a partitioned topic.",
        TOPIC_ARGUMENT,
        option("--partitions", "-p", type=INT, required=True, help="How many partitions."),
        body=lambda values: values.partitions,
    ),
    get("stats", "{topic}/stats", "Show the stats of a topic.", TOPIC_ARGUMENT),
    get("stats-internal", "{topic}/internalStats", "Show the internal stats of a topic.", TOPIC_ARGUMENT),
    PARTITIONED_METADATA,
    get("list", "non-persistent/{namespace}", "List the topics of a namespace.", NAMESPACES.of, show=lines),
    get(
        "list-in-bundle",
        "non-persistent/{namespace}/{bundle}",
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
