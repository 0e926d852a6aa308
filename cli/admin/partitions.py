"""The commands of `topics` that make, count and ask partitions."""

from typing import Any

import click

from pulsarium.proto.topic_name import TopicName

from .api import Api
from .command import Command, Values, delete, get, option, path_of, post
from .errors import AdminError
from .messages import TOPIC_ARGUMENT
from .output import pairs
from .upkeep import position_of
from .values import INT, key_values

_WITH_PROPERTIES = "application/vnd.partitioned-topic-metadata+json"
METADATA = option("--metadata", "-m", many=True, metavar="KEY=VALUE", help="A property of it; may be repeated.")


def _partitioned_lookup(api: Api, values: Values) -> dict[str, str]:
    partitions = api.call("GET", path_of("{topic}/partitions", values))["partitions"]
    if partitions == 0:
        raise AdminError(f"Topic {values.topic} is not a partitioned topic")
    found = {}
    for index in range(partitions):
        name = values.topic.partition(index)
        found[str(name)] = api.call("GET", path_of("/lookup/v2/topic/{topic}", Values(topic=name)))["brokerUrl"]
    return found


def _show_lookups(data: dict[str, str], values: Values) -> str:
    if not values.sort_by_broker:
        return pairs(data)
    brokers: dict[str, list[str]] = {}
    for name, url in data.items():
        brokers.setdefault(url, []).append(name)
    return pairs(brokers)


def create_partitioned(api: Api, values: Values) -> None:
    if values.partitions <= 0:
        raise click.UsageError("--partitions: the number of partitions has to be more than 0")
    put_partitioned(api, values.topic, values.partitions, key_values(getattr(values, "metadata", ())))


def put_partitioned(api: Api, topic: TopicName, partitions: int, properties: dict[str, str]) -> None:
    path, query = path_of("{topic}/partitions", Values(topic=topic)), {"createLocalTopicOnly": False}
    if properties:
        body = {"partitions": partitions, "deleted": False, "properties": properties}
        api.call("PUT", path, query=query, body=body, content_type=_WITH_PROPERTIES)
    else:
        api.call("PUT", path, query=query, body=partitions)


def update_partitioned(api: Api, values: Values) -> None:
    if values.partitions <= 0:
        raise click.UsageError("--partitions: the number of partitions has to be more than 0")
    local, force = getattr(values, "update_local_only", False), getattr(values, "force", False)
    query = {"updateLocalTopicOnly": local, "force": force}
    api.call("POST", path_of("{topic}/partitions", values), query=query, body=values.partitions)


def _partitions_terminated(data: Any, values: Values) -> str:
    return "\n".join(
        f"Topic {values.topic}-partition-{index} successfully terminated at {position_of(position)}"
        for index, position in data.items()
    )


PARTITIONED_METADATA = get(
    "get-partitioned-topic-metadata",
    "{topic}/partitions",
    "Show how many partitions a topic has; 0 if it is not partitioned.",
    TOPIC_ARGUMENT,
)

COMMANDS = (
    Command(
        "partitioned-lookup",
        "Show the broker that serves each partition.",
        _partitioned_lookup,
        (TOPIC_ARGUMENT, option("--sort-by-broker", "-s", flag=True, help="The partitions of each broker instead.")),
        _show_lookups,
    ),
    Command(
        "create-partitioned-topic",
        "Create a partitioned topic.",
        create_partitioned,
        (TOPIC_ARGUMENT, option("--partitions", "-p", type=INT, required=True, help="How many partitions."), METADATA),
        example="orders --partitions 4",
    ),
    post(
        "create-missed-partitions",
        "{topic}/createMissedPartitions",
        "Create partitions that are not there yet.",
        TOPIC_ARGUMENT,
    ),
    Command(
        "update-partitioned-topic",
        "Give a partitioned topic more partitions.",
        update_partitioned,
        (
            TOPIC_ARGUMENT,
            option("--partitions", "-p", type=INT, required=True, help="How many it has then."),
            option("--update-local-only", "-ulo", flag=True, help="In this cluster alone."),
            option("--force", "-f", flag=True, help="Without looking at the partitions that exist."),
        ),
        example="orders --partitions 8",
    ),
    PARTITIONED_METADATA,
    delete(
        "delete-partitioned-topic",
        "{topic}/partitions?deleteSchema=true",
        "Delete a partitioned topic.",
        TOPIC_ARGUMENT,
        option("--force", "-f", flag=True, help="Also while clients are connected; they are closed."),
        option("--deleteSchema", "-d", flag=True, hidden=True, help="Its schemas too, which always go."),
        query={"force": "force"},
    ),
    post(
        "partitioned-terminate",
        "{topic}/terminate/partitions",
        "End all partitions of a topic.",
        TOPIC_ARGUMENT,
        show=_partitions_terminated,
    ),
)
