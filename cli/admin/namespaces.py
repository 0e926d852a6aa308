"""`pulsarium admin namespaces`."""

from __future__ import annotations

from typing import Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandGroup, CommandsOf, Values, argument, option
from pulsarium.cli.admin.errors import AdminError
from pulsarium.cli.admin.forms import ACTIONS, LONG_ROLE, ROLE, SYSTEM_TOPICS, actions
from pulsarium.cli.admin.namespace_policies import POLICIES, SETTINGS
from pulsarium.cli.admin.output import lines, pairs, value
from pulsarium.cli.admin.policies import NAMESPACES
from pulsarium.cli.admin.values import LONG, key_values, split
from pulsarium.rest.namespaces import Namespaces

namespaces = CommandsOf(Namespaces)

NAMESPACE = NAMESPACES.of
of_namespace = CommandsOf(Namespaces, NAMESPACE)
BUNDLE = option("--bundle", "-b", metavar="0x..._0x...", help="Select topics of this bundle.")
SUB = option("--sub", "-s", dest="subscription", required=True, help="The subscription.")
KEY = option("--key", "-k", required=True, help="The property.")
_MOST_BUNDLES = 2**32


def _bundles(values: Values) -> int:
    if not 0 <= values.bundles <= _MOST_BUNDLES:
        raise click.UsageError("Invalid number of bundles. Number of bundles has to be in the range of (0, 2^32].")
    bundles: int = values.bundles
    return bundles


def _confirmed(question: str) -> bool:
    try:
        return click.confirm(question)
    except click.Abort:  # no terminal, or Ctrl-C
        return False


async def _clear_backlog(api: Api, values: Values) -> None:
    if not values.force and not _confirmed("Are you sure you want to clear the backlog?"):
        raise AdminError("the backlog was not cleared; pass --force to clear it without a question")
    await Namespaces(api).clear_namespace_backlog(values.namespace, bundle=values.bundle, subscription=values.sub)


async def _split_bundle(api: Api, values: Values) -> None:
    bundle = values.bundle or values.bundle_type
    if bundle is None:
        raise click.UsageError("Must pass one of the params: --bundle / --bundle-type")
    await Namespaces(api).split_namespace_bundle(
        values.namespace,
        bundle,
        unload=values.unload,
        algorithm=values.split_algorithm_name,
        boundaries=values.split_boundaries,
    )


async def _positions(api: Api, values: Values) -> Any:
    if values.bundle is None:
        raise click.UsageError("Must pass one of the params: --bundle")
    return await Namespaces(api).get_topic_hash_positions(values.namespace, values.bundle, values.topic_list)


async def _list_cluster(api: Api, values: Values) -> Any:
    cluster, slash, tenant = values.params.partition("/")
    if not slash:
        raise click.UsageError("Parameter format is incorrect: write cluster/tenant")
    return await Namespaces(api).get_namespaces_of_cluster(cluster, tenant)


_UNLOAD_TO = option(
    "--destinationBroker", "-d", dest="destination_broker", metavar="HOST:PORT", help="Move it to this broker."
)

_COMMANDS = (
    namespaces.shows(
        "list", Namespaces.get_namespaces, "List the namespaces of a tenant.", argument("tenant"), show=lines
    ),
    AdminCommand(
        "list-cluster",
        "List namespaces by cluster (older command).",
        _list_cluster,
        (argument("params"),),
        lines,
        hidden=True,
    ),
    of_namespace.shows(
        "topics",
        Namespaces.get_topics,
        "List the topics of a namespace.",
        option(
            "--mode", "-m", type=click.Choice(["PERSISTENT", "NON_PERSISTENT", "ALL"]), help="List topics of this kind."
        ),
        SYSTEM_TOPICS,
        show=lines,
    ),
    of_namespace.shows("bundles", Namespaces.get_bundles, "Show the bundles of a namespace."),
    of_namespace.shows(
        "destinations", Namespaces.get_topics, "List the topics (older command).", show=lines, hidden=True
    ),
    of_namespace.shows("policies", Namespaces.get_policies, "Show all policies of a namespace."),
    of_namespace.does(
        "create",
        Namespaces.create_namespace,
        "Create a namespace.",
        option("--clusters", "-c", many=True, metavar="CLUSTER,...", help="Replicate to these clusters."),
        option(
            "--bundles", "-b", type=LONG, default=0, help="Split the namespace into this many bundles; 0: the default."
        ),
        example="shop/orders --bundles 8",
        bundles=_bundles,
        replication_clusters=lambda v: split(v.clusters),
    ),
    of_namespace.does(
        "delete",
        Namespaces.delete_namespace,
        "Delete a namespace without topics.",
        option("--force", "-f", flag=True, help="Delete its topics too."),
    ),
    of_namespace.shows(
        "permissions", Namespaces.get_permissions, "Show the permissions of roles in a namespace.", show=pairs
    ),
    of_namespace.does(
        "grant-permission",
        Namespaces.grant_permission_on_namespace,
        "Grant a role permissions in a namespace.",
        LONG_ROLE,
        option("--actions", **ACTIONS),
        example="shop/orders --role alice --actions produce,consume",
        actions=actions,
    ),
    of_namespace.does(
        "revoke-permission",
        Namespaces.revoke_permissions_on_namespace,
        "Revoke all permissions of a role in a namespace.",
        LONG_ROLE,
    ),
    of_namespace.shows(
        "subscription-permission",
        Namespaces.get_permission_on_subscription,
        "Show the roles that may use each subscription.",
        show=pairs,
    ),
    of_namespace.does(
        "grant-subscription-permission",
        Namespaces.grant_permission_on_subscription,
        "Allow roles to use a subscription.",
        option("--subscription", "-s", required=True, help="The subscription."),
        option("--roles", "-rs", many=True, required=True, metavar="ROLE,...", help="The roles."),
        roles=lambda v: split(v.roles),
    ),
    of_namespace.does(
        "revoke-subscription-permission",
        Namespaces.revoke_permission_on_subscription,
        "Revoke a role's permission to use a subscription.",
        option("--subscription", "-s", required=True, help="The subscription."),
        ROLE,
    ),
    of_namespace.does(
        "unload",
        Namespaces.unload,
        "Close the topics of a namespace or bundle; clients look them up again.",
        BUNDLE,
        _UNLOAD_TO,
    ),
    AdminCommand(
        "split-bundle",
        "Split a bundle of a namespace.",
        _split_bundle,
        (
            NAMESPACE,
            option("--bundle", "-b", metavar="0x..._0x...", help="The bundle."),
            option(
                "--bundle-type",
                "-bt",
                type=click.Choice(["LARGEST", "HOT"]),
                help="Split the largest or the busiest bundle.",
            ),
            option("--unload", "-u", flag=True, help="Unload the new bundles at once."),
            option("--split-algorithm-name", "-san", help="Split with this algorithm."),
            option(
                "--split-boundaries",
                "-sb",
                many=True,
                type=LONG,
                help="Split at these hashes, with specified_positions_divide.",
            ),
        ),
    ),
    AdminCommand(
        "get-topic-positions",
        "Show the hashes of the topics in a bundle.",
        _positions,
        (
            NAMESPACE,
            option("--bundle", "-b", metavar="0x..._0x...", help="The bundle."),
            option("--topic-list", "-tl", many=True, help="Select these topics."),
        ),
        value,
    ),
    AdminCommand(
        "clear-backlog",
        "Clear the backlog of a namespace.",
        _clear_backlog,
        (
            NAMESPACE,
            option("--sub", "-s", help="Select this subscription."),
            BUNDLE,
            option("--force", "-force", flag=True, help="Do not ask."),
        ),
    ),
    of_namespace.does(
        "unsubscribe", Namespaces.unsubscribe_namespace, "Delete a subscription from all topics.", SUB, BUNDLE
    ),
    of_namespace.does(
        "set-property",
        Namespaces.set_property,
        "Set a property of a namespace.",
        KEY,
        option("--value", "-v", required=True, help="The value."),
    ),
    of_namespace.shows("get-property", Namespaces.get_property, "Show a property of a namespace.", KEY),
    of_namespace.shows(
        "remove-property", Namespaces.remove_property, "Remove a property, and show its old value.", KEY, show=value
    ),
    of_namespace.does(
        "set-properties",
        Namespaces.set_properties,
        "Set properties of a namespace.",
        option(
            "--properties", "-p", many=True, required=True, metavar="KEY=VALUE", help="A property; may be repeated."
        ),
        properties=lambda v: key_values(v.properties),
    ),
    of_namespace.shows("get-properties", Namespaces.get_properties, "Show the properties of a namespace."),
    of_namespace.does("clear-properties", Namespaces.clear_properties, "Remove all properties of a namespace."),
    namespaces.shows(
        "get-anti-affinity-namespaces",
        Namespaces.get_anti_affinity_namespaces,
        "List the namespaces of an anti-affinity group.",
        option("--tenant", "-p", help="The tenant whose permission the broker checks."),
        option("--cluster", "-c", required=True, help="The cluster."),
        option("--group", "-g", required=True, help="The group."),
        show=lines,
    ),
)

GROUPS = {
    "namespaces": CommandGroup(
        (*_COMMANDS, *POLICIES, *SETTINGS),
        examples=(
            "namespaces create shop/orders",
            "namespaces set-retention shop/orders --time 3h --size 10G",
            "namespaces policies shop/orders",
        ),
    )
}
