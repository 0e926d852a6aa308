"""Stats of topics: rates, subscriptions, ledgers and cursors."""

from __future__ import annotations

from pulsarium.cli.admin.command import Values, option, shows
from pulsarium.cli.admin.messages import TOPIC_ARGUMENT
from pulsarium.cli.admin.output import gson

_PRECISE = option("--get-precise-backlog", "-gpb", flag=True, help="Count the backlog exactly, by message.")
# The one flag of pulsar-admin that turns off what is on without it.
_SIZES = option("--get-subscription-backlog-size", "-sbs", flag=True, help="Leave out the size of each backlog.")
_EARLIEST = option("--get-earliest-time-in-backlog", "-etb", flag=True, help="When the oldest message was published.")


def _counted(values: Values) -> dict[str, bool]:
    return {
        "get_precise_backlog": values.get_precise_backlog,
        "subscription_backlog_size": not values.get_subscription_backlog_size,
        "get_earliest_time_in_backlog": values.get_earliest_time_in_backlog,
    }


STATS_INTERNAL = shows(
    "stats-internal",
    lambda api, v: api.topics.get_internal_stats(v.topic, metadata=v.metadata),
    "Show the ledgers and cursors of a topic.",
    TOPIC_ARGUMENT,
    option("--metadata", "-m", flag=True, help="Metadata of the ledgers too."),
)
INFO_INTERNAL = shows(
    "info-internal",
    lambda api, v: api.topics.get_internal_info(v.topic),
    "Show the metadata of a topic's ledgers.",
    TOPIC_ARGUMENT,
    show=gson,
)
PARTITIONED_STATS_INTERNAL = shows(
    "partitioned-stats-internal",
    lambda api, v: api.topics.get_partitioned_internal_stats(v.topic),
    "Show the ledgers and cursors of all partitions.",
    TOPIC_ARGUMENT,
)

COMMANDS = (
    shows(
        "stats",
        lambda api, v: api.topics.get_stats(v.topic, **_counted(v)),
        "Show the rates, producers, subscriptions and backlog of a topic.",
        TOPIC_ARGUMENT,
        _PRECISE,
        _SIZES,
        _EARLIEST,
        example="orders --get-precise-backlog",
    ),
    STATS_INTERNAL,
    INFO_INTERNAL,
    shows(
        "partitioned-stats",
        lambda api, v: api.topics.get_partitioned_stats(v.topic, per_partition=v.per_partition, **_counted(v)),
        "Show the stats of all partitions together.",
        TOPIC_ARGUMENT,
        option("--per-partition", flag=True, help="Of each partition too."),
        _PRECISE,
        _SIZES,
        _EARLIEST,
    ),
    PARTITIONED_STATS_INTERNAL,
)
