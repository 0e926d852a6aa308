"""The commands of `topics` for partitions."""

from __future__ import annotations

from typing import Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.asked import AdminRun
from pulsarium.cli.admin.command import AdminCommand, Values, option
from pulsarium.cli.admin.errors import AdminError
from pulsarium.cli.admin.messages import TOPIC_ARGUMENT, of_topic
from pulsarium.cli.admin.output import pairs
from pulsarium.cli.admin.upkeep import position_of
from pulsarium.cli.admin.values import INT, key_values
from pulsarium.rest.data import LookupData
from pulsarium.rest.lookups import Lookups
from pulsarium.rest.topics import Topics

METADATA = option(
    "--metadata", "-m", many=True, metavar="KEY=VALUE", help="Set a property of the topic. May be repeated."
)


def url_of(found: LookupData) -> str | None:
    """Return the URL of a broker: that for TLS if the URL of the admin API is for TLS, as in pulsar-admin."""
    session = click.get_current_context().ensure_object(AdminRun)
    return found.get("brokerUrlTls") if session.url.startswith("https:") else found.get("brokerUrl")


async def _partitioned_lookup(api: Api, values: Values) -> dict[str, str | None]:
    found = await Lookups(api).lookup_partitioned_topic(values.topic)
    if not found:
        raise AdminError(f"Topic {values.topic} is not a partitioned topic")
    return {name: url_of(broker) for name, broker in found.items()}


def _show_lookups(data: dict[str, str | None], values: Values) -> str:
    if not values.sort_by_broker:
        return pairs(data)
    brokers: dict[str | None, list[str]] = {}
    for name, url in data.items():
        brokers.setdefault(url, []).append(name)
    return pairs(brokers)


async def create_partitioned(api: Api, values: Values) -> None:
    properties = key_values(getattr(values, "metadata", ()))
    await Topics(api).create_partitioned_topic(values.topic, _more_than_0(values.partitions), properties)


async def update_partitioned(api: Api, values: Values) -> None:
    local, force = getattr(values, "update_local_only", False), getattr(values, "force", False)
    partitions = _more_than_0(values.partitions)
    await Topics(api).update_partitioned_topic(values.topic, partitions, update_local_only=local, force=force)


def _more_than_0(partitions: int) -> int:
    if partitions <= 0:
        raise click.UsageError("--partitions: the number of partitions has to be more than 0")
    return partitions


def _partitions_terminated(data: Any, values: Values) -> str:
    return "\n".join(
        f"Topic {values.topic}-partition-{index} successfully terminated at {position_of(position)}"
        for index, position in data.items()
    )


PARTITIONED_METADATA = of_topic.shows(
    "get-partitioned-topic-metadata",
    Topics.get_partitioned_topic_metadata,
    "Show how many partitions a topic has; 0: not partitioned.",
)

COMMANDS = (
    AdminCommand(
        "partitioned-lookup",
        "Show the broker that serves each partition.",
        _partitioned_lookup,
        (
            TOPIC_ARGUMENT,
            option("--sort-by-broker", "-s", flag=True, help="Show the partitions of each broker instead."),
        ),
        _show_lookups,
    ),
    AdminCommand(
        "create-partitioned-topic",
        "Create a partitioned topic.",
        create_partitioned,
        (
            TOPIC_ARGUMENT,
            option("--partitions", "-p", type=INT, required=True, help="The number of partitions."),
            METADATA,
        ),
        example="orders --partitions 4",
    ),
    of_topic.does(
        "create-missed-partitions", Topics.create_missed_partitions, "Create the missing partitions of a topic."
    ),
    AdminCommand(
        "update-partitioned-topic",
        "Give a partitioned topic more partitions.",
        update_partitioned,
        (
            TOPIC_ARGUMENT,
            option("--partitions", "-p", type=INT, required=True, help="The new number of partitions."),
            option("--update-local-only", "-ulo", flag=True, help="Change only this cluster."),
            option("--force", "-f", flag=True, help="Do not check the existing partitions."),
        ),
        example="orders --partitions 8",
    ),
    PARTITIONED_METADATA,
    of_topic.does(
        "delete-partitioned-topic",
        Topics.delete_partitioned_topic,
        "Delete a partitioned topic.",
        option("--force", "-f", flag=True, help="Delete also while clients are connected, and disconnect them."),
        option("--deleteSchema", "-d", flag=True, hidden=True, help="Ignored: schemas are always deleted too."),
    ),
    of_topic.shows(
        "partitioned-terminate",
        Topics.terminate_partitioned_topic,
        "Terminate all partitions of a topic.",
        show=_partitions_terminated,
    ),
)
