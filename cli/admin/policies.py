"""Policies of namespaces and of topics: get, set and remove, declared once for both."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from pulsarium.broker.config.keys import INACTIVE_TOPIC_MODES, QUOTA_POLICIES, SCHEMA_STRATEGIES, SUBSCRIPTION_TYPES

from . import output
from .api import Api
from .command import Body, Command, Show, Values, argument, does, either, option, shows
from .values import BYTES, INT, INT_SECONDS, LONG, MILLISECONDS, NAMESPACE, SECONDS, TOPIC, split

if TYPE_CHECKING:
    from pulsarium.rest.namespaces import Namespaces
    from pulsarium.rest.topic_policies import TopicPolicies

QUOTA_TYPES = ("destination_storage", "message_age")


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose policies: the argument that names it, the calls for them, and whether --global and hidden."""

    of: click.Argument
    calls: "Callable[[Api], Namespaces | TopicPolicies]"
    noun: str
    everywhere: bool = False  # has --global
    hidden: bool = False

    def named(self, values: Values) -> Any:
        """The namespace or topic of a command line."""
        return getattr(values, self.noun)


NAMESPACES = Scope(argument("namespace", NAMESPACE), lambda api: api.namespaces, "namespace")
TOPICS = Scope(argument("topic", TOPIC), lambda api: api.topic_policies, "topic", hidden=True)
TOPIC_POLICIES = Scope(argument("topic", TOPIC), lambda api: api.topic_policies, "topic", everywhere=True)

GLOBAL = option("--global", "-g", flag=True, help="The policy of all clusters, not of this one alone.")


def applied(short: str = "-ap") -> click.Option:
    return option("--applied", short, flag=True, help="What holds in the end: also from the namespace or the broker.")


ENABLE = option("--enable", "-e", flag=True, help="Turn it on.")
DISABLE = option("--disable", "-d", flag=True, help="Turn it off.")
SUBSCRIPTION_TYPES_OPTION = option(
    "--types", "-t", many=True, required=True, metavar="TYPE,...", help=f"Of {', '.join(SUBSCRIPTION_TYPES)}."
)
RETENTION = (
    option("--time", "-t", type=SECONDS, required=True, help="Keep acknowledged messages this long; -1 is for ever."),
    option("--size", "-s", type=BYTES, required=True, help="Keep this much of them; -1 is without limit."),
)
PERSISTENCE = (
    option("--bookkeeper-ensemble", "-e", type=INT, default=2, help="Bookies a ledger is spread over."),
    option("--bookkeeper-write-quorum", "-w", type=INT, default=2, help="Bookies each entry is written to."),
    option("--bookkeeper-ack-quorum", "-a", type=INT, default=2, help="Bookies to wait for."),
    option("--ml-mark-delete-max-rate", "-r", type=float, default=0.0, help="Saves of a cursor a second; 0: no limit."),
    option("--ml-storage-class", "-c", help="Storage class of managed ledgers."),
)
PUBLISH_RATE = (
    option("--msg-publish-rate", "-m", type=INT, default=-1, help="Messages a second; -1 is without limit."),
    option("--byte-publish-rate", "-b", type=LONG, default=-1, help="Bytes a second; -1 is without limit."),
)
DISPATCH_RATE = (
    option("--msg-dispatch-rate", "-md", type=INT, default=-1, help="Messages a period; -1 is without limit."),
    option("--byte-dispatch-rate", "-bd", type=LONG, default=-1, help="Bytes a period; -1 is without limit."),
    option("--dispatch-rate-period", "-dt", type=INT, default=1, help="The period in seconds."),
)
RELATIVE = option("--relative-to-publish-rate", "-rp", flag=True, help="Add the rate of publishing to the limit.")
SUBSCRIBE_RATE = (
    option("--subscribe-rate", "-sr", type=INT, default=-1, help="Subscribes of a consumer a period; -1: no limit."),
    option("--subscribe-rate-period", "-st", type=INT, default=30, help="The period in seconds."),
)
DELAYED_DELIVERY = (
    ENABLE,
    DISABLE,
    option("--time", "-t", type=MILLISECONDS, default="1s", help="How often to look for messages that are due."),
    option("--maxDelay", "-md", type=MILLISECONDS, default="0", help="The longest delay allowed; 0 is without limit."),
)
INACTIVE_TOPICS = (
    option("--enable-delete-while-inactive", "-e", flag=True, help="Delete topics that nobody uses."),
    option("--disable-delete-while-inactive", "-d", flag=True, help="Leave them."),
    option("--max-inactive-duration", "-t", type=INT_SECONDS, required=True, help="How long nobody has to use one."),
    option(
        "--delete-mode", "-m", type=click.Choice(INACTIVE_TOPIC_MODES), required=True, help="When one counts as unused."
    ),
)
ENTRY_FILTERS = option("--entry-filters-name", "-efn", required=True, metavar="NAME,...", help="Filters, by name.")
CLUSTERS = option("--clusters", "-c", required=True, metavar="CLUSTER,...", help="Clusters, by name.")
SCHEMA_STRATEGY = option("--strategy", "-s", type=click.Choice(SCHEMA_STRATEGIES), required=True, help="The strategy.")


def number(name: str, short: str, help: str) -> click.Option:
    """The option of a policy that is one number; kept as `number`."""
    return option(name, short, dest="number", type=INT, required=True, help=help)


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


def policy(
    scope: Scope,
    name: str,
    what: str,
    *options: click.Parameter,
    body: Body | None = None,
    applied: click.Option | bool | None = None,
    get_options: tuple[click.Parameter, ...] = (),
    remove_options: tuple[click.Parameter, ...] = (),
    more: Mapping[str, str] | None = None,
    method: str = "",
    get_method: str = "",
    get_name: str = "",
    removable: bool = True,
    show: Show = output.value,
    example: str = "",
    everywhere: bool | None = None,
    hidden: bool | None = None,
) -> list[Command]:
    """`get-NAME`, `set-NAME` and `remove-NAME` of `what`; `options` and `body` are those of set.

    `applied` is the option, or True for a call that wants applied=False; None for one that does not ask. `method` is
    what the calls are named behind `get_`, `set_` and `remove_`, NAME if it is not said; `more` are further arguments
    of theirs, from values that one of the commands has.
    """
    hide = scope.hidden if hidden is None else hidden
    anywhere = (GLOBAL,) if (scope.everywhere if everywhere is None else everywhere) else ()
    looks = (applied,) if isinstance(applied, click.Option) else ()
    method = method or name.replace("-", "_")

    def call(api: Api, name: str, values: Values, *given: object, **asked: object) -> Coroutine[Any, Any, Any]:
        further = {"is_global": "global_", **(more or {})}
        asked |= {key: getattr(values, source) for key, source in further.items() if hasattr(values, source)}
        made: Coroutine[Any, Any, Any] = getattr(scope.calls(api), name)(scope.named(values), *given, **asked)
        return made

    def get(api: Api, values: Values) -> Coroutine[Any, Any, Any]:
        asked = {} if applied is None else {"applied": getattr(values, "applied", False)}
        return call(api, f"get_{get_method or method}", values, **asked)

    commands = [
        shows(
            get_name or f"get-{name}",
            get,
            f"Show {what} of a {scope.noun}; null if it is not set there.",
            scope.of,
            *looks,
            *anywhere,
            *get_options,
            show=show,
            hidden=hide,
        ),
        does(
            f"set-{name}",
            lambda api, v: call(api, f"set_{method}", v, *(() if body is None else (body(v),))),
            f"Set {what} of a {scope.noun}.",
            scope.of,
            *options,
            *anywhere,
            hidden=hide,
            example=example,
        ),
    ]
    if removable:
        commands.append(
            does(
                f"remove-{name}",
                lambda api, v: call(api, f"remove_{method}", v),
                f"Remove {what} of a {scope.noun}.",
                scope.of,
                *anywhere,
                *remove_options,
                hidden=hide,
            )
        )
    return commands


def of(name: str) -> Callable[[Values], Any]:
    """A body that is one value."""
    return lambda values: getattr(values, name)


def on_or_off(values: Values) -> bool:
    return either(values, "enable", "disable")


def retention(values: Values) -> dict[str, int]:
    time, size = values.time, values.size
    return {
        "retentionTimeInMinutes": -1 if time == -1 else time // 60,
        "retentionSizeInMB": -1 if size == -1 else size // 2**20,
    }


def quota(values: Values) -> dict[str, object]:
    """A backlog quota bounds one thing: the other limit is left open."""
    size, time = values.limit, values.limit_time
    if values.type == "destination_storage":
        if size is None:
            raise click.UsageError("Quota type of 'destination_storage' needs a size limit: --limit 10G")
        return quota_of(size, -1, values.policy)
    if time is None:
        raise click.UsageError("Quota type of 'message_age' needs a time limit: --limitTime 3h")
    return quota_of(-1, time, values.policy)


def quota_of(size: int, time: int, policy: str) -> dict[str, object]:
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


def entry_filters(values: Values) -> dict[str, str]:
    return {"entryFilterNames": values.entry_filters_name}


def clusters(values: Values) -> list[str]:
    return split(values.clusters)
