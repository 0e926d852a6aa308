"""Options of `set` commands for policies and permissions, and the values that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from pulsarium.broker.config.keys import INACTIVE_TOPIC_MODES, QUOTA_POLICIES, SUBSCRIPTION_TYPES
from pulsarium.cli.admin import output
from pulsarium.cli.admin.command import Body, Show, Values, either, of, option
from pulsarium.cli.admin.values import BYTES, INT, INT_SECONDS, LONG, MILLISECONDS, SECONDS, split
from pulsarium.rest import policies as rows
from pulsarium.rest.policies import BacklogQuota, Policy

QUOTA_TYPES = ("destination_storage", "message_age")


@dataclass(frozen=True, slots=True)
class PolicyForm:
    """The form of a policy: `what` names the policy in help, `options` and `body` belong to set, `show` prints it."""

    what: str
    options: tuple[click.Parameter, ...]
    body: Body
    show: Show = output.value


ENABLE = option("--enable", "-e", flag=True, help="Turn it on.")
DISABLE = option("--disable", "-d", flag=True, help="Turn it off.")
DISPATCH_RATE = (
    option("--msg-dispatch-rate", "-md", type=INT, default=-1, help="Limit messages a period; -1: no limit."),
    option("--byte-dispatch-rate", "-bd", type=LONG, default=-1, help="Limit bytes a period; -1: no limit."),
    option("--dispatch-rate-period", "-dt", type=INT, default=1, help="The period in seconds."),
)
RELATIVE = option("--relative-to-publish-rate", "-rp", flag=True, help="Add the publish rate to the limit.")


def number(what: str, name: str, short: str, says: str = "The number; 0: no limit.") -> PolicyForm:
    """Return the form of a policy that is one number."""
    return PolicyForm(what, (option(name, short, dest="number", type=INT, required=True, help=says),), of("number"))


def quota_options(size_default: str | None = None) -> tuple[click.Option, ...]:
    return (
        option(
            "--limit",
            "-l",
            type=BYTES,
            default=size_default,
            help="Limit the backlog to this size, for destination_storage.",
        ),
        option(
            "--limitTime",
            "-lt",
            type=INT_SECONDS,
            default=size_default,
            help="Limit the age of messages, for message_age.",
        ),
        option("--policy", "-p", type=click.Choice(QUOTA_POLICIES), required=True, help="Do this at the limit."),
        QUOTA_TYPE,
    )


QUOTA_TYPE = option(
    "--type",
    "-t",
    type=click.Choice(QUOTA_TYPES),
    default="destination_storage",
    help="The quota's type: size or age of the backlog.",
)


def on_or_off(values: Values) -> bool:
    return either(values, "enable", "disable")


def retention(values: Values) -> dict[str, int]:
    time, size = values.time, values.size
    return {
        "retentionTimeInMinutes": -1 if time == -1 else time // 60,
        "retentionSizeInMB": -1 if size == -1 else size // 2**20,
    }


def quota(values: Values) -> BacklogQuota:
    """Return the backlog quota for --type; its other limit is -1."""
    size, time = values.limit, values.limit_time
    if values.type == "destination_storage":
        if size is None:
            raise click.UsageError("Quota type of 'destination_storage' needs a size limit: --limit 10G")
        return quota_of(size, -1, values.policy)
    if time is None:
        raise click.UsageError("Quota type of 'message_age' needs a time limit: --limitTime 3h")
    return quota_of(-1, time, values.policy)


def quota_of(size: int, time: int, policy: str) -> BacklogQuota:
    return {"limit": size, "limitSize": size, "limitTime": time, "policy": policy}


def show_quotas(data: Any, values: Values) -> str:
    fields = ("limit", "limitSize", "limitTime", "policy")
    return "\n".join(
        f"{kind}    BacklogQuotaImpl({', '.join(f'{name}={output.java(quota.get(name))}' for name in fields)})"
        for kind, quota in (data or {}).items()
    )


def subscription_types(values: Values) -> list[str]:
    types = split(values.types)
    if wrong := [name for name in types if name not in SUBSCRIPTION_TYPES] or ([""] if not types else []):
        raise click.UsageError(
            f"Illegal subscription type {wrong[0]}. Possible values: [{', '.join(SUBSCRIPTION_TYPES)}]."
        )
    return types


def persistence(values: Values) -> dict[str, object]:
    quorums = (values.bookkeeper_ensemble, values.bookkeeper_write_quorum, values.bookkeeper_ack_quorum)
    if min(quorums) <= 0:
        raise click.UsageError(
            "[--bookkeeper-ensemble], [--bookkeeper-write-quorum] and [--bookkeeper-ack-quorum] must greater than 0."
        )
    body = {
        "bookkeeperEnsemble": quorums[0],
        "bookkeeperWriteQuorum": quorums[1],
        "bookkeeperAckQuorum": quorums[2],
        "managedLedgerMaxMarkDeleteRate": values.ml_mark_delete_max_rate,
    }
    if values.ml_storage_class is not None:
        body["managedLedgerStorageClassName"] = values.ml_storage_class
    return body


def publish_rate(values: Values) -> dict[str, int]:
    return {
        "publishThrottlingRateInMsg": values.msg_publish_rate,
        "publishThrottlingRateInByte": values.byte_publish_rate,
    }


def dispatch_rate(values: Values) -> dict[str, object]:
    return {
        "dispatchThrottlingRateInMsg": values.msg_dispatch_rate,
        "dispatchThrottlingRateInByte": values.byte_dispatch_rate,
        "relativeToPublishRate": getattr(values, "relative_to_publish_rate", False),
        "ratePeriodInSecond": values.dispatch_rate_period,
    }


def subscribe_rate(values: Values) -> dict[str, int]:
    return {
        "subscribeThrottlingRatePerConsumer": values.subscribe_rate,
        "ratePeriodInSecond": values.subscribe_rate_period,
    }


def delayed_delivery(values: Values) -> dict[str, object]:
    return {"tickTime": values.time, "active": on_or_off(values), "maxDeliveryDelayInMillis": values.max_delay}


def inactive_topics(values: Values) -> dict[str, object]:
    return {
        "inactiveTopicDeleteMode": values.delete_mode,
        "maxInactiveDurationSeconds": values.max_inactive_duration,
        "deleteWhileInactive": either(values, "enable-delete-while-inactive", "disable-delete-while-inactive"),
    }


def clusters(what: str, show: Show) -> PolicyForm:
    names = option("--clusters", "-c", required=True, metavar="CLUSTER,...", help="The clusters.")
    return PolicyForm(what, (names,), lambda values: split(values.clusters), show)


FORMS: Final[Mapping[Policy[Any], PolicyForm]] = {
    rows.RETENTION: PolicyForm(
        "the retention policy",
        (
            option(
                "--time",
                "-t",
                type=SECONDS,
                required=True,
                help="Keep acknowledged messages this long; -1: for ever.",
            ),
            option("--size", "-s", type=BYTES, required=True, help="Keep this much acknowledged data; -1: no limit."),
        ),
        retention,
    ),
    rows.COMPACTION_THRESHOLD: PolicyForm(
        "the compaction threshold",
        (option("--threshold", "-t", type=BYTES, required=True, help="Compact at a backlog of this size; 0: never."),),
        of("threshold"),
    ),
    rows.INACTIVE_TOPICS: PolicyForm(
        "the inactive topic policies",
        (
            option("--enable-delete-while-inactive", "-e", flag=True, help="Delete inactive topics."),
            option("--disable-delete-while-inactive", "-d", flag=True, help="Keep inactive topics."),
            option(
                "--max-inactive-duration",
                "-t",
                type=INT_SECONDS,
                required=True,
                help="Delete a topic after this time of inactivity.",
            ),
            option(
                "--delete-mode",
                "-m",
                type=click.Choice(INACTIVE_TOPIC_MODES),
                required=True,
                help="Delete a topic under this condition.",
            ),
        ),
        inactive_topics,
    ),
    rows.PUBLISH_RATE: PolicyForm(
        "the publish rate limit",
        (
            option("--msg-publish-rate", "-m", type=INT, default=-1, help="Limit messages a second; -1: no limit."),
            option("--byte-publish-rate", "-b", type=LONG, default=-1, help="Limit bytes a second; -1: no limit."),
        ),
        publish_rate,
    ),
    rows.DISPATCH_RATE: PolicyForm("the dispatch rate limit", (*DISPATCH_RATE, RELATIVE), dispatch_rate),
    rows.REPLICATOR_DISPATCH_RATE: PolicyForm(
        "the replicator dispatch rate limit", (*DISPATCH_RATE, RELATIVE), dispatch_rate
    ),
    rows.SUBSCRIBE_RATE: PolicyForm(
        "the subscribe rate limit",
        (
            option(
                "--subscribe-rate",
                "-sr",
                type=INT,
                default=-1,
                help="Limit a consumer's subscribes a period; -1: no limit.",
            ),
            option("--subscribe-rate-period", "-st", type=INT, default=30, help="The period in seconds."),
        ),
        subscribe_rate,
    ),
    rows.DEDUPLICATION: PolicyForm("the deduplication setting", (ENABLE, DISABLE), on_or_off),
    rows.DEDUPLICATION_SNAPSHOTS: PolicyForm(
        "the deduplication snapshot interval",
        (option("--interval", "-i", type=INT, required=True, help="Take a snapshot after this many entries."),),
        of("interval"),
    ),
    rows.DELAYED_DELIVERY: PolicyForm(
        "the delayed delivery policy",
        (
            ENABLE,
            DISABLE,
            option("--time", "-t", type=MILLISECONDS, default="1s", help="Look for due messages at this interval."),
            option(
                "--maxDelay",
                "-md",
                type=MILLISECONDS,
                default="0",
                help="Limit the delay; 0: no limit.",
            ),
        ),
        delayed_delivery,
    ),
    rows.AUTO_SUBSCRIPTION_CREATION: PolicyForm(
        "the automatic creation of subscriptions",
        (ENABLE,),
        lambda values: {"allowAutoSubscriptionCreation": values.enable},
    ),
    rows.SUBSCRIPTION_TYPES: PolicyForm(
        "the allowed subscription types",
        (
            option(
                "--types",
                "-t",
                many=True,
                required=True,
                metavar="TYPE,...",
                help=f"One or more of {', '.join(SUBSCRIPTION_TYPES)}.",
            ),
        ),
        subscription_types,
        output.json_value,
    ),
    rows.ENTRY_FILTERS: PolicyForm(
        "the entry filters",
        (option("--entry-filters-name", "-efn", required=True, metavar="NAME,...", help="Filters, by name."),),
        lambda values: {"entryFilterNames": values.entry_filters_name},
    ),
    rows.DISPATCHER_PAUSE: PolicyForm("the dispatcher pause setting", (), lambda values: True),
    rows.PERSISTENCE: PolicyForm(
        "the persistence policy",
        (
            option("--bookkeeper-ensemble", "-e", type=INT, default=2, help="Spread a ledger over this many bookies."),
            option(
                "--bookkeeper-write-quorum", "-w", type=INT, default=2, help="Write each entry to this many bookies."
            ),
            option("--bookkeeper-ack-quorum", "-a", type=INT, default=2, help="Wait for this many bookies."),
            option(
                "--ml-mark-delete-max-rate",
                "-r",
                type=float,
                default=0.0,
                help="Limit saves of a cursor a second; 0: no limit.",
            ),
            option("--ml-storage-class", "-c", help="Storage class of managed ledgers."),
        ),
        persistence,
    ),
    rows.REPLICATION: clusters("the replication clusters", output.json_value),
}

# ---- permissions

_ACTIONS: Final = ("produce", "consume", "functions", "sources", "sinks", "packages")

SYSTEM_TOPICS = option("--include-system-topic", "-ist", flag=True, help="Include system topics.")
ROLE: Final = option("--role", "-r", required=True, help="The role.")
LONG_ROLE: Final = option("--role", required=True, help="The role.")  # without -r, which has another meaning
ACTIONS: Final[dict[str, Any]] = {
    "many": True,
    "required": True,
    "metavar": "ACTION,...",
    "help": f"One or more of {', '.join(_ACTIONS)}.",
}


def actions(values: Values) -> list[str]:
    """Return the actions of all --actions, each a list with commas."""
    return single_actions(values, split(values.actions))


def single_actions(values: Values, found: list[str] | None = None) -> list[str]:
    """Return the actions of all --actions, each a single action. Refuse an unknown one."""
    found = list(values.actions) if found is None else found
    for action in found:
        if action not in _ACTIONS:
            raise click.UsageError(f"Illegal auth action '{action}'. Possible values: [{', '.join(_ACTIONS)}]")
    return found
