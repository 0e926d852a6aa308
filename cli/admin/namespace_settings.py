"""Settings of namespaces that are not got, set and removed alike."""

from typing import Any

import click

from pulsarium.broker.config.keys import SCHEMA_STRATEGIES

from . import offload
from .api import Api
from .command import Command, Values, delete, get, option, path_of, post, put
from .output import value
from .policies import NAMESPACES, of, policy
from .values import BYTES, INT, MILLISECONDS, SECONDS

_N = NAMESPACES
_PATH = _N.path
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


def _bookies(values: Values) -> dict[str, str]:
    secondary = {"bookkeeperAffinityGroupSecondary": values.secondary_group} if values.secondary_group else {}
    return {"bookkeeperAffinityGroupPrimary": values.primary_group, **secondary}


def _offload_threshold(api: Api, values: Values) -> dict[str, Any]:
    routes = {"offloadThresholdInBytes": "offloadThreshold", "offloadThresholdInSeconds": "offloadThresholdInSeconds"}
    return {name: api.call("GET", path_of(f"{_PATH}/{route}", values)) for name, route in routes.items()}


def _set_offload_threshold(api: Api, values: Values) -> None:
    api.call("PUT", path_of(f"{_PATH}/offloadThreshold", values), body=values.size)
    api.call("PUT", path_of(f"{_PATH}/offloadThresholdInSeconds", values), body=values.time)


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
    get(
        "get-anti-affinity-group",
        f"{_PATH}/antiAffinity",
        "Show the anti-affinity group of a namespace.",
        _N.of,
        text=True,
    ),
    post(
        "set-anti-affinity-group",
        f"{_PATH}/antiAffinity",
        "Set the anti-affinity group of a namespace: others of the group go to other brokers.",
        _N.of,
        option("--group", "-g", required=True, help="The group."),
        body=lambda values: values.group.encode(),
    ),
    delete("delete-anti-affinity-group", f"{_PATH}/antiAffinity", "Leave the anti-affinity group.", _N.of),
    post(
        "set-bookie-affinity-group",
        f"{_PATH}/persistence/bookieAffinity",
        "Say which bookies keep a namespace.",
        _N.of,
        option("--primary-group", "-pg", required=True, help="These."),
        option("--secondary-group", "-sg", help="And these if needed."),
        body=_bookies,
    ),
    get("get-bookie-affinity-group", f"{_PATH}/persistence/bookieAffinity", "Show which bookies keep it.", _N.of),
    delete("delete-bookie-affinity-group", f"{_PATH}/persistence/bookieAffinity", "Let any bookie keep it.", _N.of),
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
    get(
        "get-offload-deletion-lag",
        f"{_PATH}/offloadDeletionLagMs",
        "Show how long offloaded ledgers stay in BookKeeper.",
        _N.of,
        show=_lag,
    ),
    put(
        "set-offload-deletion-lag",
        f"{_PATH}/offloadDeletionLagMs",
        "Set how long offloaded ledgers stay in BookKeeper.",
        _N.of,
        option("--lag", "-l", type=MILLISECONDS, required=True, help="How long, like 10m or 2d."),
        body=of("lag"),
    ),
    delete("clear-offload-deletion-lag", f"{_PATH}/offloadDeletionLagMs", "Leave that to the broker.", _N.of),
    get(
        "get-schema-autoupdate-strategy",
        f"{_PATH}/schemaAutoUpdateCompatibilityStrategy",
        "Show how producers may change schemas, by its old name.",
        _N.of,
        show=_show_auto_update,
    ),
    put(
        "set-schema-autoupdate-strategy",
        f"{_PATH}/schemaAutoUpdateCompatibilityStrategy",
        "Set how producers may change schemas, by its old name.",
        _N.of,
        option("--compatibility", "-c", help=f"One of {', '.join(_STRATEGIES)}."),
        option("--disabled", "-d", flag=True, help="Not at all."),
        body=_auto_update,
    ),
    get(
        "get-schema-compatibility-strategy",
        f"{_PATH}/schemaCompatibilityStrategy",
        "Show which new schemas are accepted.",
        _N.of,
    ),
    put(
        "set-schema-compatibility-strategy",
        f"{_PATH}/schemaCompatibilityStrategy",
        "Set which new schemas are accepted.",
        _N.of,
        option("--compatibility", "-c", help=f"One of {', '.join(SCHEMA_STRATEGIES)}."),
        body=_compatibility,
    ),
    *policy(
        _N,
        "offload-policies",
        "offloadPolicies",
        "where old ledgers are offloaded to",
        *_OFFLOAD,
        body=offload.body,
        removable=False,
    ),
    delete("remove-offload-policies", f"{_PATH}/removeOffloadPolicies", "Remove the offload policies.", _N.of),
    *policy(
        _N,
        "deduplication-snapshot-interval",
        "deduplicationSnapshotInterval",
        "how often sequence ids are saved for deduplication",
        option("--interval", "-i", dest="number", type=INT, required=True, help="Entries between two snapshots."),
        body=of("number"),
        removable=False,
    ),
    post(
        "remove-deduplication-snapshot-interval",
        f"{_PATH}/deduplicationSnapshotInterval",
        "Leave that to the broker.",
        _N.of,
    ),
    get("get-resource-group", f"{_PATH}/resourcegroup", "Show the resource group.", _N.of, text=True),
    post(
        "set-resource-group",
        f"{_PATH}/resourcegroup/{{resource_group_name}}",
        "Put a namespace into a resource group.",
        _N.of,
        option("--resource-group-name", "-rgn", required=True, help="The group."),
    ),
    delete("remove-resource-group", f"{_PATH}/resourcegroup", "Take it out of its resource group.", _N.of),
    post(
        "update-migration-state",
        f"{_PATH}/migration",
        "Say whether a namespace has migrated to another cluster.",
        _N.of,
        option("--migrated", flag=True, help="It has."),
        body=of("migrated"),
    ),
)
