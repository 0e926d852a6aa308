"""`pulsarium admin topics`: their life and what is told of them; the other commands have modules of their own."""

from pathlib import Path

import click

from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.policies import SCHEMA_VALIDATION

from . import messages, partitions, shadows, subscriptions, topic_stats, upkeep
from .api import Api
from .command import Command, Group, Values, argument, does, option, shows
from .errors import AdminError
from .forms import ENABLE
from .messages import TOPIC_ARGUMENT
from .output import lines, pairs, value
from .permissions import ACTIONS, ROLE, actions
from .policies import NAMESPACES, applied
from .topic_policies import older_policies
from .values import TOPIC, key_values, pattern

NAMESPACE = NAMESPACES.of
_SYSTEM_TOPICS = option("--include-system-topic", "-ist", flag=True, help="System topics too.")


async def _list(api: Api, values: Values) -> list[str]:
    domain = values.topic_domain and values.topic_domain.replace("_", "-")
    return await api.topics.get_list(
        values.namespace, domain=domain, bundle=values.bundle, include_system_topic=values.include_system_topic
    )


async def _delete(api: Api, values: Values) -> list[str]:
    """Goes on after a refusal, as pulsar-admin does; what was refused is the result."""
    refused = []
    for name in await _named(api, values):
        try:
            await api.topics.delete(name, force=values.force)
        except AdminError as error:
            refused.append(f"Failed to delete topic: {name}. Exception: {error.message}")
    return refused


async def _named(api: Api, values: Values) -> list[TopicName]:
    if values.from_file and values.regex:
        raise click.UsageError("Could not apply regex when read topics from file.")
    if values.from_file:
        return _in_file(values.topic.removeprefix("path://"))
    name = _topic(values.topic)
    if not values.regex:
        return [name]
    wanted = pattern("TOPIC", str(name))
    return [_topic(topic) for topic in await api.topics.get_list(name.namespace_name) if wanted.fullmatch(topic)]


def _in_file(name: str) -> list[TopicName]:
    try:
        text = Path(name).read_text()
    except OSError as error:
        raise AdminError(f"{name} cannot be read: {error.strerror}") from None
    return [_topic(line.strip()) for line in text.splitlines() if line.strip()]


def _topic(text: str) -> TopicName:
    name: TopicName = TOPIC.convert(text, None, click.get_current_context(silent=True))
    return name


LIST = shows(
    "list", lambda api, v: api.topics.get_list(v.namespace), "List the topics of a namespace.", NAMESPACE, show=lines
)
LIST_PARTITIONED = shows(
    "list-partitioned-topics",
    lambda api, v: api.topics.get_partitioned_topic_list(v.namespace),
    "List the partitioned topics.",
    NAMESPACE,
    show=lines,
)
PERMISSIONS = shows(
    "permissions",
    lambda api, v: api.topics.get_permissions(v.topic),
    "Show who may do what with a topic.",
    TOPIC_ARGUMENT,
    show=pairs,
)
LOOKUP = shows(
    "lookup",
    lambda api, v: api.lookups.lookup_topic(v.topic),
    "Show the broker that serves a topic.",
    TOPIC_ARGUMENT,
    show=lambda data, values: value(data["brokerUrl"]),
)
BUNDLE_RANGE = shows(
    "bundle-range", lambda api, v: api.lookups.get_bundle_range(v.topic), "Show the bundle of a topic.", TOPIC_ARGUMENT
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
    shows(
        "list-partitioned-topics",
        lambda api, v: api.topics.get_partitioned_topic_list(v.namespace, include_system_topic=v.include_system_topic),
        "List the partitioned topics of a namespace.",
        NAMESPACE,
        _SYSTEM_TOPICS,
        show=lines,
    ),
    PERMISSIONS,
    does(
        "grant-permission",
        lambda api, v: api.topics.grant_permission(v.topic, v.role, actions(v)),
        "Allow a role to use a topic.",
        TOPIC_ARGUMENT,
        ROLE,
        option("--actions", "-a", **ACTIONS),
        example="orders --role alice --actions produce,consume",
    ),
    does(
        "revoke-permission",
        lambda api, v: api.topics.revoke_permissions(v.topic, v.role),
        "Take that back.",
        TOPIC_ARGUMENT,
        ROLE,
    ),
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
    does(
        "create",
        lambda api, v: api.topics.create_non_partitioned_topic(v.topic, key_values(v.metadata)),
        "Create a topic without partitions.",
        TOPIC_ARGUMENT,
        partitions.METADATA,
        example="persistent://public/default/orders",
    ),
    shows(
        "get-properties",
        lambda api, v: api.topics.get_properties(v.topic),
        "Show the properties of a topic.",
        TOPIC_ARGUMENT,
        show=pairs,
    ),
    does(
        "update-properties",
        lambda api, v: api.topics.update_properties(v.topic, key_values(v.property)),
        "Set properties of a topic.",
        TOPIC_ARGUMENT,
        subscriptions.PROPERTY,
    ),
    does(
        "remove-properties",
        lambda api, v: api.topics.remove_properties(v.topic, v.key),
        "Remove a property of a topic.",
        TOPIC_ARGUMENT,
        option("--key", "-k", help="Which one."),
    ),
    shows(
        "get-schema-validation-enforce",
        lambda api, v: api.topic_policies[SCHEMA_VALIDATION].get(v.topic, applied=v.applied),
        "Show whether producers have to have a schema.",
        TOPIC_ARGUMENT,
        applied(),
    ),
    does(
        "set-schema-validation-enforce",
        lambda api, v: api.topic_policies[SCHEMA_VALIDATION].set(v.topic, v.enable),
        "Say whether producers have to have a schema.",
        TOPIC_ARGUMENT,
        ENABLE,
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
