"""`pulsarium admin namespaces`."""

from typing import Any

import click

from .api import Api
from .command import Command, Group, Values, argument, delete, get, option, path_of, post, put
from .namespace_policies import POLICIES
from .namespace_settings import SETTINGS
from .output import lines, pairs, value
from .permissions import ACTIONS, ROLE, actions
from .policies import NAMESPACES
from .values import LONG, key_values, split

NAMESPACE = NAMESPACES.of
_PATH = NAMESPACES.path
BUNDLE = option("--bundle", "-b", metavar="0x..._0x...", help="Of this bundle alone.")
SYSTEM_TOPICS = option("--include-system-topic", "-ist", flag=True, help="System topics too.")
SUB = option("--sub", "-s", required=True, help="The subscription.")
KEY = option("--key", "-k", required=True, help="The property.")
_MOST_BUNDLES = 2**32

# What Pulsar's Policies class says where nothing was; a broker takes what is there literally.
_NEW_POLICIES: dict[str, object] = {
    "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
    "replication_clusters": [],
    "allowed_clusters": [],
    "backlog_quota_map": {},
    "clusterDispatchRate": {},
    "topicDispatchRate": {},
    "subscriptionDispatchRate": {},
    "replicatorDispatchRate": {},
    "clusterSubscribeRate": {},
    "publishMaxMessageRate": {},
    "latency_stats_sample_rate": {},
    "deleted": False,
    "encryption_required": False,
    "subscription_auth_mode": "None",
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "schema_compatibility_strategy": "UNDEFINED",
    "schema_validation_enforced": False,
    "subscription_types_enabled": [],
    "properties": {},
    "migrated": False,
}


def _new(values: Values) -> dict[str, object]:
    if not 0 <= values.bundles <= _MOST_BUNDLES:
        raise click.UsageError("Invalid number of bundles. Number of bundles has to be in the range of (0, 2^32].")
    bundles = {"bundles": {"numBundles": values.bundles}} if values.bundles else {}
    return {**_NEW_POLICIES, "replication_clusters": split(values.clusters), **bundles}


def _in_bundle(action: str) -> Any:
    """A path for the namespace, or with --bundle for that bundle; and for one subscription where it is named."""

    def path(values: Values) -> str:
        bundle = "/{bundle}" if values.bundle is not None else ""
        subscription = "/{sub:twice}" if getattr(values, "sub", None) is not None else ""
        return f"{_PATH}{bundle}/{action}{subscription}"

    return path


def _clear_backlog(api: Api, values: Values) -> None:
    if not values.force and not click.confirm("Are you sure you want to clear the backlog?"):
        raise click.Abort
    api.call("POST", path_of(_in_bundle("clearBacklog")(values), values))


def _split_bundle(api: Api, values: Values) -> None:
    bundle = values.bundle or values.bundle_type
    if bundle is None:
        raise click.UsageError("Must pass one of the params: --bundle / --bundle-type")
    boundaries = list(values.split_boundaries)
    query = {"unload": values.unload, "splitAlgorithmName": values.split_algorithm_name}
    path = f"{path_of(_PATH, values)}/{bundle}/split"
    if boundaries:
        api.call("PUT", path, query=query, body=boundaries)
    else:
        api.call("PUT", path, query=query)


def _positions(api: Api, values: Values) -> Any:
    if values.bundle is None:
        raise click.UsageError("Must pass one of the params: --bundle")
    path = path_of(f"{_PATH}/{{bundle}}/topicHashPositions", values)
    return api.call("GET", path, query={"topics": values.topic_list})


def _list_cluster(api: Api, values: Values) -> Any:
    cluster, slash, tenant = values.params.partition("/")
    if not slash:
        raise click.UsageError("Parameter format is incorrect: it is cluster/tenant")
    return api.call("GET", f"/admin/namespaces/{cluster}/{tenant}")


_UNLOAD_TO = option(
    "--destinationBroker", "-d", dest="destination", metavar="HOST:PORT", help="Move it to this broker."
)

_COMMANDS = (
    get("list", "namespaces/{tenant}", "List the namespaces of a tenant.", argument("tenant"), show=lines),
    Command("list-cluster", "List by cluster, as of old.", _list_cluster, (argument("params"),), lines, hidden=True),
    get(
        "topics",
        f"{_PATH}/topics",
        "List the topics of a namespace.",
        NAMESPACE,
        option("--mode", "-m", type=click.Choice(["PERSISTENT", "NON_PERSISTENT", "ALL"]), help="Which ones."),
        SYSTEM_TOPICS,
        query={"mode": "mode", "includeSystemTopic": "include_system_topic"},
        show=lines,
    ),
    get("bundles", f"{_PATH}/bundles", "Show the bundles of a namespace.", NAMESPACE),
    get("destinations", f"{_PATH}/topics", "List the topics, as of old.", NAMESPACE, show=lines, hidden=True),
    get("policies", _PATH, "Show all policies of a namespace.", NAMESPACE),
    put(
        "create",
        _PATH,
        "Create a namespace.",
        NAMESPACE,
        option("--clusters", "-c", many=True, metavar="CLUSTER,...", help="Where it is replicated to."),
        option(
            "--bundles", "-b", type=LONG, default=0, help="Into how many bundles it is split; 0 leaves the default."
        ),
        body=_new,
        example="shop/orders --bundles 8",
    ),
    delete(
        "delete",
        _PATH,
        "Delete a namespace without topics.",
        NAMESPACE,
        option("--force", "-f", flag=True, help="Its topics too."),
        query={"force": "force"},
    ),
    get("permissions", f"{_PATH}/permissions", "Show who may do what in a namespace.", NAMESPACE, show=pairs),
    post(
        "grant-permission",
        f"{_PATH}/permissions/{{role}}",
        "Allow a role to act in a namespace.",
        NAMESPACE,
        option("--role", required=True, help="Who."),
        option("--actions", **ACTIONS),
        body=actions,
        example="shop/orders --role alice --actions produce,consume",
    ),
    delete(
        "revoke-permission",
        f"{_PATH}/permissions/{{role}}",
        "Take back all that a role may do in a namespace.",
        NAMESPACE,
        option("--role", required=True, help="Who."),
    ),
    get(
        "subscription-permission",
        f"{_PATH}/permissions/subscription",
        "Show who may use which subscription.",
        NAMESPACE,
        show=pairs,
    ),
    post(
        "grant-subscription-permission",
        f"{_PATH}/permissions/subscription/{{subscription}}",
        "Allow roles to use a subscription.",
        NAMESPACE,
        option("--subscription", "-s", required=True, help="The subscription."),
        option("--roles", "-rs", many=True, required=True, metavar="ROLE,...", help="Who."),
        body=lambda values: split(values.roles),
    ),
    delete(
        "revoke-subscription-permission",
        f"{_PATH}/permissions/{{subscription}}/{{role}}",
        "Take back the use of a subscription.",
        NAMESPACE,
        option("--subscription", "-s", required=True, help="The subscription."),
        ROLE,
    ),
    put(
        "unload",
        _in_bundle("unload"),
        "Close the topics of a namespace or bundle; clients look them up again.",
        NAMESPACE,
        BUNDLE,
        _UNLOAD_TO,
        query={"destinationBroker": "destination"},
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
    post("unsubscribe", _in_bundle("unsubscribe"), "Delete a subscription from all topics.", NAMESPACE, SUB, BUNDLE),
    put(
        "set-property",
        f"{_PATH}/property/{{key}}/{{value}}",
        "Set a property of a namespace.",
        NAMESPACE,
        KEY,
        option("--value", "-v", required=True, help="Its value."),
    ),
    get("get-property", f"{_PATH}/property/{{key}}", "Show a property of a namespace.", NAMESPACE, KEY, text=True),
    delete(
        "remove-property",
        f"{_PATH}/property/{{key}}",
        "Remove a property; shows its old value.",
        NAMESPACE,
        KEY,
        text=True,
        show=value,
    ),
    put(
        "set-properties",
        f"{_PATH}/properties",
        "Set properties of a namespace.",
        NAMESPACE,
        option(
            "--properties", "-p", many=True, required=True, metavar="KEY=VALUE", help="A property; may be repeated."
        ),
        body=lambda values: key_values(values.properties),
    ),
    get("get-properties", f"{_PATH}/properties", "Show the properties of a namespace.", NAMESPACE),
    delete("clear-properties", f"{_PATH}/properties", "Remove all properties of a namespace.", NAMESPACE),
    get(
        "get-anti-affinity-namespaces",
        "/admin/v2/namespaces/{cluster}/antiAffinity/{group}",
        "List the namespaces of an anti-affinity group.",
        option("--tenant", "-p", help="Who asks."),
        option("--cluster", "-c", required=True, help="In which cluster."),
        option("--group", "-g", required=True, help="The group."),
        query={"property": "tenant"},
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
