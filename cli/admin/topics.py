"""`pulsarium admin topics`: their life and what is told of them; the other commands have modules of their own."""

import re
from pathlib import Path

import click

from pulsarium.proto.topic_name import TopicName

from . import messages, partitions, shadows, subscriptions, topic_stats, upkeep
from .api import Api
from .command import Command, Group, Values, argument, delete, get, option, path_of, post, put
from .errors import AdminError
from .listing import DOMAINS, listed
from .messages import TOPIC_ARGUMENT
from .older_policies import older_policies
from .output import lines, pairs, value
from .permissions import ACTIONS, ROLE, actions
from .policies import ENABLE, NAMESPACES, applied
from .values import TOPIC, key_values

NAMESPACE = NAMESPACES.of
_SYSTEM_TOPICS = option("--include-system-topic", "-ist", flag=True, help="System topics too.")


def _list(api: Api, values: Values) -> list[str]:
    asked = getattr(values, "topic_domain", None)
    domains = DOMAINS if asked is None else (asked.replace("_", "-"),)
    query = {"bundle": getattr(values, "bundle", None), "includeSystemTopic": _system_topics(values)}
    return listed(api, values.namespace, domains, query=query)


def _list_partitioned(api: Api, values: Values) -> list[str]:
    query = {"includeSystemTopic": _system_topics(values)}
    return listed(api, values.namespace, partitioned=True, query=query)


def _system_topics(values: Values) -> bool:
    return getattr(values, "include_system_topic", False)


def _delete(api: Api, values: Values) -> list[str]:
    """Goes on after a refusal, as pulsar-admin does; what was refused is the result."""
    refused = []
    for name in _named(api, values):
        try:
            query = {"force": values.force, "deleteSchema": True}
            api.call("DELETE", path_of("{topic}", Values(topic=name)), query=query)
        except AdminError as error:
            refused.append(f"Failed to delete topic: {name}. Exception: {error.message}")
    return refused


def _named(api: Api, values: Values) -> list[TopicName]:
    if values.from_file and values.regex:
        raise click.UsageError("Could not apply regex when read topics from file.")
    if values.from_file:
        try:
            text = Path(values.topic.removeprefix("path://")).read_text()
        except OSError as error:
            raise AdminError(f"{values.topic} cannot be read: {error.strerror}") from None
        return [_topic(line.strip()) for line in text.splitlines() if line.strip()]
    name = _topic(values.topic)
    if not values.regex:
        return [name]
    pattern = re.compile(str(name))
    return [_topic(topic) for topic in listed(api, name.namespace_name) if pattern.fullmatch(topic)]


def _topic(text: str) -> TopicName:
    name: TopicName = TOPIC.convert(text, None, click.get_current_context(silent=True))
    return name


LIST = Command("list", "List the topics of a namespace.", _list, (NAMESPACE,), lines)
LIST_PARTITIONED = Command(
    "list-partitioned-topics", "List the partitioned topics.", _list_partitioned, (NAMESPACE,), lines
)
PERMISSIONS = get(
    "permissions", "{topic}/permissions", "Show who may do what with a topic.", TOPIC_ARGUMENT, show=pairs
)
LOOKUP = get(
    "lookup",
    "/lookup/v2/topic/{topic}",
    "Show the broker that serves a topic.",
    TOPIC_ARGUMENT,
    show=lambda data, values: value(data["brokerUrl"]),
)
BUNDLE_RANGE = get(
    "bundle-range", "/lookup/v2/topic/{topic}/bundle", "Show the bundle of a topic.", TOPIC_ARGUMENT, text=True
)

_LIFE = (
    Command(
        "list",
        "List the topics of a namespace.",
        _list,
        (
            NAMESPACE,
            option(
                "--topic-domain",
                "-td",
                type=click.Choice(["persistent", "non-persistent", "non_persistent"]),
                help="Only these.",
            ),
            option("--bundle", "-b", metavar="0x..._0x...", help="Of this bundle alone."),
            _SYSTEM_TOPICS,
        ),
        lines,
        example="public/default",
    ),
    Command(
        "list-partitioned-topics",
        "List the partitioned topics of a namespace.",
        _list_partitioned,
        (NAMESPACE, _SYSTEM_TOPICS),
        lines,
    ),
    PERMISSIONS,
    post(
        "grant-permission",
        "{topic}/permissions/{role}",
        "Allow a role to use a topic.",
        TOPIC_ARGUMENT,
        ROLE,
        option("--actions", "-a", **ACTIONS),
        body=actions,
        example="orders --role alice --actions produce,consume",
    ),
    delete("revoke-permission", "{topic}/permissions/{role}", "Take that back.", TOPIC_ARGUMENT, ROLE),
    LOOKUP,
    BUNDLE_RANGE,
    Command(
        "delete",
        "Delete topics. What cannot be deleted is said, and the rest goes on.",
        _delete,
        (
            argument("topic"),
            option("--force", "-f", flag=True, help="Also while clients are connected; they are closed."),
            option("--deleteSchema", "-d", flag=True, hidden=True, help="Its schemas too, which always go."),
            option("--regex", "-r", flag=True, help="TOPIC is a regular expression."),
            option("--from-file", flag=True, help="TOPIC is a file with one name a line."),
        ),
        lines,
    ),
    put(
        "create",
        "{topic}",
        "Create a topic without partitions.",
        TOPIC_ARGUMENT,
        partitions.METADATA,
        body=lambda values: key_values(values.metadata),
        example="persistent://public/default/orders",
    ),
    get("get-properties", "{topic}/properties", "Show the properties of a topic.", TOPIC_ARGUMENT, show=pairs),
    put(
        "update-properties",
        "{topic}/properties",
        "Set properties of a topic.",
        TOPIC_ARGUMENT,
        subscriptions.PROPERTY,
        body=lambda values: key_values(values.property),
    ),
    delete(
        "remove-properties",
        "{topic}/properties",
        "Remove a property of a topic.",
        TOPIC_ARGUMENT,
        option("--key", "-k", help="Which one."),
        query={"key": "key"},
    ),
    get(
        "get-schema-validation-enforce",
        "{topic}/schemaValidationEnforced",
        "Show whether producers have to have a schema.",
        TOPIC_ARGUMENT,
        applied(),
        query={"applied": "applied"},
    ),
    post(
        "set-schema-validation-enforce",
        "{topic}/schemaValidationEnforced",
        "Say whether producers have to have a schema.",
        TOPIC_ARGUMENT,
        ENABLE,
        body=lambda values: values.enable,
    ),
)

GROUP = Group(
    "topics",
    "Topics: their life, stats, messages and subscriptions.",
    (
        *_LIFE,
        *partitions.COMMANDS,
        *topic_stats.COMMANDS,
        *subscriptions.COMMANDS,
        *messages.COMMANDS,
        *upkeep.COMMANDS,
        *shadows.COMMANDS,
        *older_policies(),
    ),
    examples=(
        "topics create orders",
        "topics stats persistent://public/default/orders",
        "topics create-subscription orders -s billing --messageId earliest",
        "topics peek-messages orders -s billing -n 3",
    ),
)
