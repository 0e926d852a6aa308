"""`pulsarium admin topics`: create, delete and inspect topics. Other modules have the group's other commands."""

from __future__ import annotations

from pathlib import Path

import click

from pulsarium.cli import completing
from pulsarium.cli.admin import messages, partitions, subscriptions, upkeep
from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandGroup, CommandsOf, Values, argument, of, option
from pulsarium.cli.admin.errors import AdminError, ServerError
from pulsarium.cli.admin.forms import ACTIONS, ENABLE, ROLE, SYSTEM_TOPICS, actions
from pulsarium.cli.admin.messages import TOPIC_ARGUMENT, of_topic
from pulsarium.cli.admin.output import gson, lines, pairs, value
from pulsarium.cli.admin.policies import NAMESPACES, TOPIC_POLICIES, applied
from pulsarium.cli.admin.topic_policies import older_policies
from pulsarium.cli.admin.values import TOPIC, key_values, pattern, split
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.lookups import Lookups
from pulsarium.rest.policies import SCHEMA_VALIDATION, SHADOW_TOPICS
from pulsarium.rest.topics import Topics

lookups = CommandsOf(Lookups, TOPIC_ARGUMENT)

NAMESPACE = NAMESPACES.of
of_namespace = CommandsOf(Topics, NAMESPACE)


async def _list(api: Api, values: Values) -> list[str]:
    domain = values.topic_domain and values.topic_domain.replace("_", "-")
    return await Topics(api).get_list(
        values.namespace, domain=domain, bundle=values.bundle, include_system_topic=values.include_system_topic
    )


async def _delete(api: Api, values: Values) -> list[str]:
    """Delete the topics and return the refusals. A refusal does not stop the rest, as in pulsar-admin."""
    refused = []
    for name in await _named(api, values):
        try:
            await Topics(api).delete(name, force=values.force)
        except ServerError as error:
            refused.append(f"Failed to delete topic: {name}. Exception: {error.message}")
    if refused and values.fail:
        for said in refused:
            click.echo(f"pulsarium: {said}", err=True)
        raise click.exceptions.Exit(AdminError.exit_code)
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
    return [_topic(topic) for topic in await Topics(api).get_list(name.namespace_name) if wanted.fullmatch(topic)]


def _in_file(name: str) -> list[TopicName]:
    try:
        text = Path(name).read_text()
    except OSError as error:
        raise AdminError(f"{name} cannot be read: {error.strerror}") from None
    return [_topic(line.strip()) for line in text.splitlines() if line.strip()]


def _topic(text: str) -> TopicName:
    name: TopicName = TOPIC.convert(text, None, click.get_current_context(silent=True))
    return name


LIST = of_namespace.shows("list", Topics.get_list, "List the topics of a namespace.", show=lines)
LIST_PARTITIONED = of_namespace.shows(
    "list-partitioned-topics", Topics.get_partitioned_topic_list, "List the partitioned topics.", show=lines
)
PERMISSIONS = of_topic.shows(
    "permissions", Topics.get_permissions, "Show the permissions of roles on a topic.", show=pairs
)
LOOKUP = lookups.shows(
    "lookup",
    Lookups.lookup_topic,
    "Show the broker that serves a topic.",
    show=lambda data, values: value(partitions.url_of(data)),
)
BUNDLE_RANGE = lookups.shows("bundle-range", Lookups.get_bundle_range, "Show the bundle of a topic.")

_LIFE = (
    AdminCommand(
        "list",
        "List the topics of a namespace.",
        _list,
        (
            NAMESPACE,
            option(
                "--topic-domain",
                "-td",
                type=click.Choice(["persistent", "non-persistent", "non_persistent"]),
                help="Select topics of this domain.",
            ),
            option("--bundle", "-b", metavar="0x..._0x...", help="Select topics of this bundle."),
            SYSTEM_TOPICS,
        ),
        lines,
        example="public/default",
    ),
    of_namespace.shows(
        "list-partitioned-topics",
        Topics.get_partitioned_topic_list,
        "List the partitioned topics of a namespace.",
        SYSTEM_TOPICS,
        show=lines,
    ),
    PERMISSIONS,
    of_topic.does(
        "grant-permission",
        Topics.grant_permission,
        "Grant a role permissions on a topic.",
        ROLE,
        option("--actions", "-a", **ACTIONS),
        example="orders --role alice --actions produce,consume",
        actions=actions,
    ),
    of_topic.does("revoke-permission", Topics.revoke_permissions, "Revoke all permissions of a role on a topic.", ROLE),
    LOOKUP,
    BUNDLE_RANGE,
    AdminCommand(
        "delete",
        "Delete topics. A topic that cannot be deleted, such as one in use, is reported, and the others are deleted. "
        "The exit code is 0 all the same, as that of pulsar-admin; --fail makes it 1.",
        _delete,
        (
            argument("topic", shell_complete=completing.topics),
            option("--force", "-f", flag=True, help="Delete also while clients are connected, and disconnect them."),
            option("--deleteSchema", "-d", flag=True, hidden=True, help="Ignored: schemas are always deleted too."),
            option("--regex", "-r", flag=True, help="Take TOPIC as a regular expression."),
            option("--fail", flag=True, help="Exit with 1 when a topic was not deleted."),
            option("--from-file", flag=True, help="Take TOPIC as a file with one name a line."),
        ),
        lines,
        example="orders --fail",
    ),
    of_topic.does(
        "create",
        Topics.create_non_partitioned_topic,
        "Create a topic without partitions.",
        partitions.METADATA,
        example="persistent://public/default/orders",
        properties=lambda v: key_values(v.metadata),
    ),
    of_topic.shows("get-properties", Topics.get_properties, "Show the properties of a topic.", show=pairs),
    of_topic.does(
        "update-properties",
        Topics.update_properties,
        "Set properties of a topic.",
        subscriptions.PROPERTY,
        properties=lambda v: key_values(v.property),
    ),
    of_topic.does(
        "remove-properties",
        Topics.remove_properties,
        "Remove a property of a topic.",
        option("--key", "-k", help="The property."),
    ),
    TOPIC_POLICIES.gets(
        SCHEMA_VALIDATION, "get-schema-validation-enforce", "Show whether producers need a schema.", applied()
    ),
    TOPIC_POLICIES.sets(
        SCHEMA_VALIDATION,
        "set-schema-validation-enforce",
        "Set whether producers need a schema.",
        ENABLE,
        body=of("enable"),
    ),
)

PRECISE = option("--get-precise-backlog", "-gpb", flag=True, help="Count the backlog exactly, by message.")
# In pulsar-admin too, this flag turns off a setting that is on by default.
_SIZES = option("--get-subscription-backlog-size", "-sbs", flag=True, help="Leave out the size of each backlog.")
_EARLIEST = option(
    "--get-earliest-time-in-backlog", "-etb", flag=True, help="Show the publish time of the oldest message."
)


def _with_sizes(values: Values) -> bool:
    return not values.get_subscription_backlog_size


STATS_INTERNAL = of_topic.shows(
    "stats-internal",
    Topics.get_internal_stats,
    "Show the ledgers and cursors of a topic.",
    option("--metadata", "-m", flag=True, help="Show metadata of the ledgers too."),
)
INFO_INTERNAL = of_topic.shows(
    "info-internal", Topics.get_internal_info, "Show the metadata of a topic's ledgers.", show=gson
)
PARTITIONED_STATS_INTERNAL = of_topic.shows(
    "partitioned-stats-internal",
    Topics.get_partitioned_internal_stats,
    "Show the ledgers and cursors of all partitions.",
)

_STATS = (
    of_topic.shows(
        "stats",
        Topics.get_stats,
        "Show the rates, producers, subscriptions and backlog of a topic.",
        PRECISE,
        _SIZES,
        _EARLIEST,
        example="orders --get-precise-backlog",
        subscription_backlog_size=_with_sizes,
    ),
    STATS_INTERNAL,
    INFO_INTERNAL,
    of_topic.shows(
        "partitioned-stats",
        Topics.get_partitioned_stats,
        "Show the stats of all partitions together.",
        option("--per-partition", flag=True, help="Show each partition too."),
        PRECISE,
        _SIZES,
        _EARLIEST,
        subscription_backlog_size=_with_sizes,
    ),
    PARTITIONED_STATS_INTERNAL,
)

_SHADOWS = (
    TOPIC_POLICIES.gets(SHADOW_TOPICS, "get-shadow-topics", "List the shadow topics of a topic.", show=lines),
    TOPIC_POLICIES.sets(
        SHADOW_TOPICS,
        "set-shadow-topics",
        "Set the shadow topics of a topic.",
        option("--topics", "-t", required=True, metavar="TOPIC,...", help="The topics."),
        body=lambda v: split(v.topics),
    ),
    TOPIC_POLICIES.removes(SHADOW_TOPICS, "remove-shadow-topics", "Remove the shadow topics of a topic."),
    of_topic.does(
        "create-shadow-topic",
        Topics.create_shadow_topic,
        "Create a topic that shadows another.",
        option("--source", "-s", type=TOPIC, required=True, help="The source topic."),
        option("--properties", "-p", many=True, metavar="KEY=VALUE,...", help="Properties of the shadow topic."),
        properties=lambda v: key_values(split(v.properties)),
    ),
    of_topic.shows("get-shadow-source", Topics.get_shadow_source, "Show the source topic of a shadow topic."),
)

_ROWS = (
    *_LIFE,
    *partitions.COMMANDS,
    *_STATS,
    *subscriptions.COMMANDS,
    *messages.COMMANDS,
    *upkeep.COMMANDS,
    *_SHADOWS,
    *older_policies(),
)

GROUPS = {
    "topics": CommandGroup(
        _ROWS,
        examples=(
            "topics create orders",
            "topics stats persistent://public/default/orders",
            "topics create-subscription orders -s billing --messageId earliest",
            "topics peek-messages orders -s billing -n 3",
        ),
    )
}
