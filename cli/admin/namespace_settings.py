"""Settings of namespaces that are not got, set and removed alike."""

from typing import Any

import click

from pulsarium.broker.config.keys import SCHEMA_STRATEGIES
from pulsarium.rest.policies import BookieAffinity

from . import offload
from .api import Api
from .command import Command, Values, does, option, shows
from .output import value
from .policies import NAMESPACES, of, policy
from .values import BYTES, INT, MILLISECONDS, SECONDS

_N = NAMESPACES
_STRATEGIES = (
    "Backward",
    "Forward",
    "Full",
    "AlwaysCompatible",
    "BackwardTransitive",
    "ForwardTransitive",
    "FullTransitive",
)
_OFFLOAD = offload.options(
    "--s3-role",
    "-ro",
    block=("--maxBlockSize", "-mbs"),
    buffer=("--readBufferSize", "-rbs"),
    size=("--offloadAfterThreshold", "-oat"),
    seconds=("--offloadAfterThresholdInSeconds", "-oats"),
    lag=("--offloadAfterElapsed", "-oae"),
    units=True,
)


def _bookies(values: Values) -> BookieAffinity:
    groups: BookieAffinity = {"bookkeeperAffinityGroupPrimary": values.primary_group}
    if values.secondary_group:
        groups["bookkeeperAffinityGroupSecondary"] = values.secondary_group
    return groups


async def _offload_threshold(api: Api, values: Values) -> dict[str, Any]:
    return {
        "offloadThresholdInBytes": await api.namespaces.get_offload_threshold(values.namespace),
        "offloadThresholdInSeconds": await api.namespaces.get_offload_threshold_in_seconds(values.namespace),
    }


async def _set_offload_threshold(api: Api, values: Values) -> None:
    await api.namespaces.set_offload_threshold(values.namespace, values.size)
    await api.namespaces.set_offload_threshold_in_seconds(values.namespace, values.time)


def _lag(data: Any, values: Values) -> str:
    return "Unset for namespace. Defaulting to broker setting." if data is None else f"{data // 60_000} minute(s)"


def _auto_update(values: Values) -> str:
    if values.compatibility is None and not values.disabled:
        raise click.UsageError("Either --compatibility or --disabled must be specified")
    if values.disabled:
        return "AutoUpdateDisabled"
    known = {name.upper(): name for name in _STRATEGIES}
    strategy = known.get(values.compatibility.upper())
    if strategy is None:
        raise click.UsageError(
            f"Unknown strategy {values.compatibility}. Known strategies are {', '.join(_STRATEGIES)}"
        )
    return strategy


def _show_auto_update(data: Any, values: Values) -> str:
    return "null" if data is None else str(data).upper()


def _compatibility(values: Values) -> str:
    strategy = (values.compatibility or "").upper()
    if strategy not in SCHEMA_STRATEGIES:
        known = ", ".join(SCHEMA_STRATEGIES)
        raise click.UsageError(f"Illegal schema compatibility strategy {strategy}. Possible values: [{known}]")
    return strategy


SETTINGS: tuple[Command, ...] = (
    shows(
        "get-anti-affinity-group",
        lambda api, v: api.namespaces.get_namespace_anti_affinity_group(v.namespace),
        "Show the anti-affinity group of a namespace.",
        _N.of,
    ),
    does(
        "set-anti-affinity-group",
        lambda api, v: api.namespaces.set_namespace_anti_affinity_group(v.namespace, v.group),
        "Set the anti-affinity group of a namespace: others of the group go to other brokers.",
        _N.of,
        option("--group", "-g", required=True, help="The group."),
    ),
    does(
        "delete-anti-affinity-group",
        lambda api, v: api.namespaces.delete_namespace_anti_affinity_group(v.namespace),
        "Leave the anti-affinity group.",
        _N.of,
    ),
    does(
        "set-bookie-affinity-group",
        lambda api, v: api.namespaces.set_bookie_affinity_group(v.namespace, _bookies(v)),
        "Say which bookies keep a namespace.",
        _N.of,
        option("--primary-group", "-pg", required=True, help="These."),
        option("--secondary-group", "-sg", help="And these if needed."),
    ),
    shows(
        "get-bookie-affinity-group",
        lambda api, v: api.namespaces.get_bookie_affinity_group(v.namespace),
        "Show which bookies keep it.",
        _N.of,
    ),
    does(
        "delete-bookie-affinity-group",
        lambda api, v: api.namespaces.delete_bookie_affinity_group(v.namespace),
        "Let any bookie keep it.",
        _N.of,
    ),
    Command(
        "get-offload-threshold",
        "Show from which size and age on a topic is offloaded.",
        _offload_threshold,
        (_N.of,),
        lambda data, values: "\n".join(f"{name}: {value(amount)}" for name, amount in data.items()),
    ),
    Command(
        "set-offload-threshold",
        "Set from which size and age on a topic is offloaded.",
        _set_offload_threshold,
        (
            _N.of,
            option("--size", "-s", type=BYTES, required=True, help="The size; -1 is never."),
            option("--time", "-t", type=SECONDS, default="-1", help="The age; -1 is never."),
        ),
    ),
    shows(
        "get-offload-deletion-lag",
        lambda api, v: api.namespaces.get_offload_delete_lag_ms(v.namespace),
        "Show how long offloaded ledgers stay in BookKeeper.",
        _N.of,
        show=_lag,
    ),
    does(
        "set-offload-deletion-lag",
        lambda api, v: api.namespaces.set_offload_delete_lag(v.namespace, v.lag),
        "Set how long offloaded ledgers stay in BookKeeper.",
        _N.of,
        option("--lag", "-l", type=MILLISECONDS, required=True, help="How long, like 10m or 2d."),
    ),
    does(
        "clear-offload-deletion-lag",
        lambda api, v: api.namespaces.clear_offload_delete_lag(v.namespace),
        "Leave that to the broker.",
        _N.of,
    ),
    shows(
        "get-schema-autoupdate-strategy",
        lambda api, v: api.namespaces.get_schema_auto_update_compatibility_strategy(v.namespace),
        "Show how producers may change schemas, by its old name.",
        _N.of,
        show=_show_auto_update,
    ),
    does(
        "set-schema-autoupdate-strategy",
        lambda api, v: api.namespaces.set_schema_auto_update_compatibility_strategy(v.namespace, _auto_update(v)),
        "Set how producers may change schemas, by its old name.",
        _N.of,
        option("--compatibility", "-c", help=f"One of {', '.join(_STRATEGIES)}."),
        option("--disabled", "-d", flag=True, help="Not at all."),
    ),
    shows(
        "get-schema-compatibility-strategy",
        lambda api, v: api.namespaces.get_schema_compatibility_strategy(v.namespace),
        "Show which new schemas are accepted.",
        _N.of,
    ),
    does(
        "set-schema-compatibility-strategy",
        lambda api, v: api.namespaces.set_schema_compatibility_strategy(v.namespace, _compatibility(v)),
        "Set which new schemas are accepted.",
        _N.of,
        option("--compatibility", "-c", help=f"One of {', '.join(SCHEMA_STRATEGIES)}."),
    ),
    *policy(
        _N,
        "offload-policies",
        "where old ledgers are offloaded to",
        *_OFFLOAD,
        body=offload.body,
        removable=False,
    ),
    does(
        "remove-offload-policies",
        lambda api, v: api.namespaces.remove_offload_policies(v.namespace),
        "Remove the offload policies.",
        _N.of,
    ),
    *policy(
        _N,
        "deduplication-snapshot-interval",
        "how often sequence ids are saved for deduplication",
        option("--interval", "-i", dest="number", type=INT, required=True, help="Entries between two snapshots."),
        body=of("number"),
        removable=False,
    ),
    does(
        "remove-deduplication-snapshot-interval",
        lambda api, v: api.namespaces.remove_deduplication_snapshot_interval(v.namespace),
        "Leave that to the broker.",
        _N.of,
    ),
    shows(
        "get-resource-group",
        lambda api, v: api.namespaces.get_namespace_resource_group(v.namespace),
        "Show the resource group.",
        _N.of,
    ),
    does(
        "set-resource-group",
        lambda api, v: api.namespaces.set_namespace_resource_group(v.namespace, v.resource_group_name),
        "Put a namespace into a resource group.",
        _N.of,
        option("--resource-group-name", "-rgn", required=True, help="The group."),
    ),
    does(
        "remove-resource-group",
        lambda api, v: api.namespaces.remove_namespace_resource_group(v.namespace),
        "Take it out of its resource group.",
        _N.of,
    ),
    does(
        "update-migration-state",
        lambda api, v: api.namespaces.update_migration_state(v.namespace, v.migrated),
        "Say whether a namespace has migrated to another cluster.",
        _N.of,
        option("--migrated", flag=True, help="It has."),
    ),
)
