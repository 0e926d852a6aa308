"""The commands of `topics` for shadow topics, which show another topic's messages."""

from typing import Any

from .api import Api
from .command import Command, Values, delete, get, option, path_of, put
from .messages import TOPIC_ARGUMENT
from .output import lines, value
from .partitions import put_partitioned
from .values import TOPIC, key_values, split

_SHADOW_SOURCE = "PULSAR.SHADOW_SOURCE"


def _create_shadow(api: Api, values: Values) -> None:
    properties = {_SHADOW_SOURCE: str(values.source), **key_values(split(values.properties))}
    partitions = api.call("GET", path_of("{source}/partitions", values))["partitions"]
    if partitions:
        put_partitioned(api, values.topic, partitions, properties)
    else:
        api.call("PUT", path_of("{topic}", values), body=properties)


def _shadow_source(api: Api, values: Values) -> Any:
    return (api.call("GET", path_of("{topic}/properties", values)) or {}).get(_SHADOW_SOURCE)


COMMANDS = (
    get("get-shadow-topics", "{topic}/shadowTopics", "List the shadow topics of a topic.", TOPIC_ARGUMENT, show=lines),
    put(
        "set-shadow-topics",
        "{topic}/shadowTopics",
        "Set the shadow topics of a topic.",
        TOPIC_ARGUMENT,
        option("--topics", "-t", required=True, metavar="TOPIC,...", help="The topics."),
        body=lambda values: split(values.topics),
    ),
    delete("remove-shadow-topics", "{topic}/shadowTopics", "Remove the shadow topics of a topic.", TOPIC_ARGUMENT),
    Command(
        "create-shadow-topic",
        "Create a topic that shadows another.",
        _create_shadow,
        (
            TOPIC_ARGUMENT,
            option("--source", "-s", type=TOPIC, required=True, help="The other."),
            option("--properties", "-p", many=True, metavar="KEY=VALUE,...", help="Properties of it."),
        ),
    ),
    Command("get-shadow-source", "Show which topic this one shadows.", _shadow_source, (TOPIC_ARGUMENT,), value),
)
