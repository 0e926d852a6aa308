"""What a command line says of policies and permissions: words for them, options of `set`, the values they make."""

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
class Form:
    """What a command line says of a policy, and how it is shown: `options` and `body` are those of set."""

    what: str
    options: tuple[click.Parameter, ...]
    body: Body
    show: Show = output.value


ENABLE = option("--enable", "-e", flag=True, help="Turn it on.")
DISABLE = option("--disable", "-d", flag=True, help="Turn it off.")
DISPATCH_RATE = (
    option("--msg-dispatch-rate", "-md", type=INT, default=-1, help="Messages a period; -1 is without limit."),
    option("--byte-dispatch-rate", "-bd", type=LONG, default=-1, help="Bytes a period; -1 is without limit."),
    option("--dispatch-rate-period", "-dt", type=INT, default=1, help="The period in seconds."),
)
RELATIVE = option("--relative-to-publish-rate", "-rp", flag=True, help="Add the rate of publishing to the limit.")


def number(what: str, name: str, short: str, says: str = "The number; 0 is without limit.") -> Form:
    """The form of a policy that is one number."""
    return Form(what, (option(name, short, dest="number", type=INT, required=True, help=says),), of("number"))


def quota_options(size_default: str | None = None) -> tuple[click.Option, ...]:
    return (
        option(
            "--limit", "-l", type=BYTES, default=size_default, help="Most bytes of backlog, for destination_storage."
        ),
        option("--limitTime", "-lt", type=INT_SECONDS, default=size_default, help="Oldest message, for message_age."),
        option("--policy", "-p", type=click.Choice(QUOTA_POLICIES), required=True, help="What happens at the limit."),
        QUOTA_TYPE,
    )


QUOTA_TYPE = option(
    "--type", "-t", type=click.Choice(QUOTA_TYPES), default="destination_storage", help="What the quota bounds."
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
    """A backlog quota bounds one thing: the other limit is left open."""
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


def clusters(what: str, show: Show) -> Form:
    names = option("--clusters", "-c", required=True, metavar="CLUSTER,...", help="Clusters, by name.")
    return Form(what, (names,), lambda values: split(values.clusters), show)


FORMS: Final[Mapping[Policy[Any], Form]] = {
    rows.RETENTION: Form(
        "how much acknowledged data is kept",
        (
            option(
                "--time",
                "-t",
                type=SECONDS,
                required=True,
                help="Keep acknowledged messages this long; -1 is for ever.",
            ),
            option("--size", "-s", type=BYTES, required=True, help="Keep this much of them; -1 is without limit."),
        ),
        retention,
    ),
    rows.COMPACTION_THRESHOLD: Form(
        "the backlog at which compaction starts",
        (option("--threshold", "-t", type=BYTES, required=True, help="Bytes of backlog; 0 is never."),),
        of("threshold"),
    ),
    rows.INACTIVE_TOPICS: Form(
        "when nobody's topic is deleted",
        (
            option("--enable-delete-while-inactive", "-e", flag=True, help="Delete topics that nobody uses."),
            option("--disable-delete-while-inactive", "-d", flag=True, help="Leave them."),
            option(
                "--max-inactive-duration", "-t", type=INT_SECONDS, required=True, help="How long nobody has to use one."
            ),
            option(
                "--delete-mode",
                "-m",
                type=click.Choice(INACTIVE_TOPIC_MODES),
                required=True,
                help="When one counts as unused.",
            ),
        ),
        inactive_topics,
    ),
    rows.PUBLISH_RATE: Form(
        "how fast messages may be published",
        (
            option("--msg-publish-rate", "-m", type=INT, default=-1, help="Messages a second; -1 is without limit."),
            option("--byte-publish-rate", "-b", type=LONG, default=-1, help="Bytes a second; -1 is without limit."),
        ),
        publish_rate,
    ),
    rows.DISPATCH_RATE: Form("how fast messages are dispatched", (*DISPATCH_RATE, RELATIVE), dispatch_rate),
    rows.REPLICATOR_DISPATCH_RATE: Form("how fast messages are replicated", (*DISPATCH_RATE, RELATIVE), dispatch_rate),
    rows.SUBSCRIBE_RATE: Form(
        "how often a consumer may subscribe",
        (
            option(
                "--subscribe-rate", "-sr", type=INT, default=-1, help="Subscribes of a consumer a period; -1: no limit."
            ),
            option("--subscribe-rate-period", "-st", type=INT, default=30, help="The period in seconds."),
        ),
        subscribe_rate,
    ),
    rows.DEDUPLICATION: Form("whether repeated messages are dropped", (ENABLE, DISABLE), on_or_off),
    rows.DEDUPLICATION_SNAPSHOTS: Form(
        "how often sequence ids are saved for deduplication",
        (option("--interval", "-i", type=INT, required=True, help="Entries between two snapshots."),),
        of("interval"),
    ),
    rows.DELAYED_DELIVERY: Form(
        "whether messages can be delayed",
        (
            ENABLE,
            DISABLE,
            option(
                "--time", "-t", type=MILLISECONDS, default="1s", help="How often to look for messages that are due."
            ),
            option(
                "--maxDelay",
                "-md",
                type=MILLISECONDS,
                default="0",
                help="The longest delay allowed; 0 is without limit.",
            ),
        ),
        delayed_delivery,
    ),
    rows.AUTO_SUBSCRIPTION_CREATION: Form(
        "whether consumers create subscriptions",
        (ENABLE,),
        lambda values: {"allowAutoSubscriptionCreation": values.enable},
    ),
    rows.SUBSCRIPTION_TYPES: Form(
        "the types of subscription allowed",
        (
            option(
                "--types",
                "-t",
                many=True,
                required=True,
                metavar="TYPE,...",
                help=f"Of {', '.join(SUBSCRIPTION_TYPES)}.",
            ),
        ),
        subscription_types,
        output.json_value,
    ),
    rows.ENTRY_FILTERS: Form(
        "the entry filters",
        (option("--entry-filters-name", "-efn", required=True, metavar="NAME,...", help="Filters, by name."),),
        lambda values: {"entryFilterNames": values.entry_filters_name},
    ),
    rows.DISPATCHER_PAUSE: Form("whether dispatch waits for acknowledgements to be saved", (), lambda values: True),
    rows.PERSISTENCE: Form(
        "how data is spread over bookies",
        (
            option("--bookkeeper-ensemble", "-e", type=INT, default=2, help="Bookies a ledger is spread over."),
            option("--bookkeeper-write-quorum", "-w", type=INT, default=2, help="Bookies each entry is written to."),
            option("--bookkeeper-ack-quorum", "-a", type=INT, default=2, help="Bookies to wait for."),
            option(
                "--ml-mark-delete-max-rate",
                "-r",
                type=float,
                default=0.0,
                help="Saves of a cursor a second; 0: no limit.",
            ),
            option("--ml-storage-class", "-c", help="Storage class of managed ledgers."),
        ),
        persistence,
    ),
    rows.REPLICATION: clusters("the clusters it is replicated to", output.json_value),
}

# ---- permissions

_ACTIONS: Final = ("produce", "consume", "functions", "sources", "sinks", "packages")

ROLE: Final = option("--role", "-r", required=True, help="Who.")
LONG_ROLE: Final = option("--role", required=True, help="Who.")  # where -r is not taken
ACTIONS: Final[dict[str, Any]] = {
    "many": True,
    "required": True,
    "metavar": "ACTION,...",
    "help": f"Of {', '.join(_ACTIONS)}.",
}


def actions(values: Values) -> list[str]:
    found = split(values.actions)
    for action in found:
        if action not in _ACTIONS:
            raise click.UsageError(f"Illegal auth action '{action}'. Possible values: [{', '.join(_ACTIONS)}]")
    return found
