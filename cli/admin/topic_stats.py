"""Stats of topics: rates, subscriptions, ledgers and cursors."""

from __future__ import annotations

from pulsarium.cli.admin.command import Values, option
from pulsarium.cli.admin.messages import of_topic
from pulsarium.cli.admin.output import gson
from pulsarium.rest.topics import Topics

_PRECISE = option("--get-precise-backlog", "-gpb", flag=True, help="Count the backlog exactly, by message.")
# The one flag of pulsar-admin that turns off what is on without it.
_SIZES = option("--get-subscription-backlog-size", "-sbs", flag=True, help="Leave out the size of each backlog.")
_EARLIEST = option("--get-earliest-time-in-backlog", "-etb", flag=True, help="When the oldest message was published.")


def _with_sizes(values: Values) -> bool:
    return not values.get_subscription_backlog_size


STATS_INTERNAL = of_topic.shows(
    "stats-internal",
    Topics.get_internal_stats,
    "Show the ledgers and cursors of a topic.",
    option("--metadata", "-m", flag=True, help="Metadata of the ledgers too."),
)
INFO_INTERNAL = of_topic.shows(
    "info-internal", Topics.get_internal_info, "Show the metadata of a topic's ledgers.", show=gson
)
PARTITIONED_STATS_INTERNAL = of_topic.shows(
    "partitioned-stats-internal",
    Topics.get_partitioned_internal_stats,
    "Show the ledgers and cursors of all partitions.",
)

COMMANDS = (
    of_topic.shows(
        "stats",
        Topics.get_stats,
        "Show the rates, producers, subscriptions and backlog of a topic.",
        _PRECISE,
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
        option("--per-partition", flag=True, help="Of each partition too."),
        _PRECISE,
        _SIZES,
        _EARLIEST,
        subscription_backlog_size=_with_sizes,
    ),
    PARTITIONED_STATS_INTERNAL,
)
