"""`pulsarium admin namespaces`."""

from typing import Any

import click

from .api import Api
from .command import Command, Group, Values, argument, does, option, shows
from .errors import AdminError
from .namespace_policies import POLICIES, SETTINGS
from .output import lines, pairs, value
from .permissions import ACTIONS, ROLE, actions
from .policies import NAMESPACES
from .values import LONG, key_values, split

NAMESPACE = NAMESPACES.of
BUNDLE = option("--bundle", "-b", metavar="0x..._0x...", help="Of this bundle alone.")
SYSTEM_TOPICS = option("--include-system-topic", "-ist", flag=True, help="System topics too.")
SUB = option("--sub", "-s", required=True, help="The subscription.")
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
    except click.Abort:  # nobody is there to answer
        return False


async def _clear_backlog(api: Api, values: Values) -> None:
    if not values.force and not _confirmed("Are you sure you want to clear the backlog?"):
        raise AdminError("the backlog was not cleared; --force clears it without being asked")
    await api.namespaces.clear_namespace_backlog(values.namespace, bundle=values.bundle, subscription=values.sub)


async def _split_bundle(api: Api, values: Values) -> None:
    bundle = values.bundle or values.bundle_type
    if bundle is None:
        raise click.UsageError("Must pass one of the params: --bundle / --bundle-type")
    await api.namespaces.split_namespace_bundle(
        values.namespace,
        bundle,
        unload=values.unload,
        algorithm=values.split_algorithm_name,
        boundaries=values.split_boundaries,
    )


async def _positions(api: Api, values: Values) -> Any:
    if values.bundle is None:
        raise click.UsageError("Must pass one of the params: --bundle")
    return await api.namespaces.get_topic_hash_positions(values.namespace, values.bundle, values.topic_list)


async def _list_cluster(api: Api, values: Values) -> Any:
    cluster, slash, tenant = values.params.partition("/")
    if not slash:
        raise click.UsageError("Parameter format is incorrect: it is cluster/tenant")
    return await api.namespaces.get_namespaces_of_cluster(cluster, tenant)


_UNLOAD_TO = option(
    "--destinationBroker", "-d", dest="destination", metavar="HOST:PORT", help="Move it to this broker."
)

_COMMANDS = (
    shows(
        "list",
        lambda api, v: api.namespaces.get_namespaces(v.tenant),
        "List the namespaces of a tenant.",
        argument("tenant"),
        show=lines,
    ),
    Command("list-cluster", "List by cluster, as of old.", _list_cluster, (argument("params"),), lines, hidden=True),
    shows(
        "topics",
        lambda api, v: api.namespaces.get_topics(v.namespace, mode=v.mode, include_system_topic=v.include_system_topic),
        "List the topics of a namespace.",
        NAMESPACE,
        option("--mode", "-m", type=click.Choice(["PERSISTENT", "NON_PERSISTENT", "ALL"]), help="Which ones."),
        SYSTEM_TOPICS,
        show=lines,
    ),
    shows(
        "bundles", lambda api, v: api.namespaces.get_bundles(v.namespace), "Show the bundles of a namespace.", NAMESPACE
    ),
    shows(
        "destinations",
        lambda api, v: api.namespaces.get_topics(v.namespace),
        "List the topics, as of old.",
        NAMESPACE,
        show=lines,
        hidden=True,
    ),
    shows(
        "policies",
        lambda api, v: api.namespaces.get_policies(v.namespace),
        "Show all policies of a namespace.",
        NAMESPACE,
    ),
    does(
        "create",
        lambda api, v: api.namespaces.create_namespace(
            v.namespace, bundles=_bundles(v), replication_clusters=split(v.clusters)
        ),
        "Create a namespace.",
        NAMESPACE,
        option("--clusters", "-c", many=True, metavar="CLUSTER,...", help="Where it is replicated to."),
        option(
            "--bundles", "-b", type=LONG, default=0, help="Into how many bundles it is split; 0 leaves the default."
        ),
        example="shop/orders --bundles 8",
    ),
    does(
        "delete",
        lambda api, v: api.namespaces.delete_namespace(v.namespace, force=v.force),
        "Delete a namespace without topics.",
        NAMESPACE,
        option("--force", "-f", flag=True, help="Its topics too."),
    ),
    shows(
        "permissions",
        lambda api, v: api.namespaces.get_permissions(v.namespace),
        "Show who may do what in a namespace.",
        NAMESPACE,
        show=pairs,
    ),
    does(
        "grant-permission",
        lambda api, v: api.namespaces.grant_permission_on_namespace(v.namespace, v.role, actions(v)),
        "Allow a role to act in a namespace.",
        NAMESPACE,
        option("--role", required=True, help="Who."),
        option("--actions", **ACTIONS),
        example="shop/orders --role alice --actions produce,consume",
    ),
    does(
        "revoke-permission",
        lambda api, v: api.namespaces.revoke_permissions_on_namespace(v.namespace, v.role),
        "Take back all that a role may do in a namespace.",
        NAMESPACE,
        option("--role", required=True, help="Who."),
    ),
    shows(
        "subscription-permission",
        lambda api, v: api.namespaces.get_permission_on_subscription(v.namespace),
        "Show who may use which subscription.",
        NAMESPACE,
        show=pairs,
    ),
    does(
        "grant-subscription-permission",
        lambda api, v: api.namespaces.grant_permission_on_subscription(v.namespace, v.subscription, split(v.roles)),
        "Allow roles to use a subscription.",
        NAMESPACE,
        option("--subscription", "-s", required=True, help="The subscription."),
        option("--roles", "-rs", many=True, required=True, metavar="ROLE,...", help="Who."),
    ),
    does(
        "revoke-subscription-permission",
        lambda api, v: api.namespaces.revoke_permission_on_subscription(v.namespace, v.subscription, v.role),
        "Take back the use of a subscription.",
        NAMESPACE,
        option("--subscription", "-s", required=True, help="The subscription."),
        ROLE,
    ),
    does(
        "unload",
        lambda api, v: api.namespaces.unload(v.namespace, bundle=v.bundle, destination_broker=v.destination),
        "Close the topics of a namespace or bundle; clients look them up again.",
        NAMESPACE,
        BUNDLE,
        _UNLOAD_TO,
    ),
    Command(
        "split-bundle",
        "Split a bundle of a namespace.",
        _split_bundle,
        (
            NAMESPACE,
            option("--bundle", "-b", metavar="0x..._0x...", help="Which bundle."),
            option("--bundle-type", "-bt", type=click.Choice(["LARGEST", "HOT"]), help="Or of which kind."),
            option("--unload", "-u", flag=True, help="Unload the new ones at once."),
            option("--split-algorithm-name", "-san", help="How to split."),
            option("--split-boundaries", "-sb", many=True, type=LONG, help="Where, for specified_positions_divide."),
        ),
    ),
    Command(
        "get-topic-positions",
        "Show the hashes of the topics in a bundle.",
        _positions,
        (
            NAMESPACE,
            option("--bundle", "-b", metavar="0x..._0x...", help="The bundle."),
            option("--topic-list", "-tl", many=True, help="Of these topics alone."),
        ),
        value,
    ),
    Command(
        "clear-backlog",
        "Drop what subscriptions of a namespace have not read.",
        _clear_backlog,
        (
            NAMESPACE,
            option("--sub", "-s", help="Of this subscription alone."),
            BUNDLE,
            option("--force", "-force", flag=True, help="Without asking."),
        ),
    ),
    does(
        "unsubscribe",
        lambda api, v: api.namespaces.unsubscribe_namespace(v.namespace, v.sub, bundle=v.bundle),
        "Delete a subscription from all topics.",
        NAMESPACE,
        SUB,
        BUNDLE,
    ),
    does(
        "set-property",
        lambda api, v: api.namespaces.set_property(v.namespace, v.key, v.value),
        "Set a property of a namespace.",
        NAMESPACE,
        KEY,
        option("--value", "-v", required=True, help="Its value."),
    ),
    shows(
        "get-property",
        lambda api, v: api.namespaces.get_property(v.namespace, v.key),
        "Show a property of a namespace.",
        NAMESPACE,
        KEY,
    ),
    shows(
        "remove-property",
        lambda api, v: api.namespaces.remove_property(v.namespace, v.key),
        "Remove a property; shows its old value.",
        NAMESPACE,
        KEY,
        show=value,
    ),
    does(
        "set-properties",
        lambda api, v: api.namespaces.set_properties(v.namespace, key_values(v.properties)),
        "Set properties of a namespace.",
        NAMESPACE,
        option(
            "--properties", "-p", many=True, required=True, metavar="KEY=VALUE", help="A property; may be repeated."
        ),
    ),
    shows(
        "get-properties",
        lambda api, v: api.namespaces.get_properties(v.namespace),
        "Show the properties of a namespace.",
        NAMESPACE,
    ),
    does(
        "clear-properties",
        lambda api, v: api.namespaces.clear_properties(v.namespace),
        "Remove all properties of a namespace.",
        NAMESPACE,
    ),
    shows(
        "get-anti-affinity-namespaces",
        lambda api, v: api.namespaces.get_anti_affinity_namespaces(v.tenant, v.cluster, v.group),
        "List the namespaces of an anti-affinity group.",
        option("--tenant", "-p", help="Who asks."),
        option("--cluster", "-c", required=True, help="In which cluster."),
        option("--group", "-g", required=True, help="The group."),
        show=lines,
    ),
)

GROUP = Group(
    "namespaces",
    "Namespaces: their topics and policies.",
    (*_COMMANDS, *POLICIES, *SETTINGS),
    examples=(
        "namespaces create shop/orders",
        "namespaces set-retention shop/orders --time 3h --size 10G",
        "namespaces policies shop/orders",
    ),
)
