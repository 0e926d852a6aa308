"""Stats of topics: rates, subscriptions, ledgers and cursors."""

from .command import get, option
from .messages import TOPIC_ARGUMENT
from .output import gson

_PRECISE = option("--get-precise-backlog", "-gpb", flag=True, help="Count the backlog exactly, by message.")
# The one flag of pulsar-admin that turns off what is on without it.
_SIZES = option("--get-subscription-backlog-size", "-sbs", flag=True, help="Leave out the size of each backlog.")
_EARLIEST = option("--get-earliest-time-in-backlog", "-etb", flag=True, help="When the oldest message was published.")
_STATS_QUERY = {
    "getPreciseBacklog": "get_precise_backlog",
    "subscriptionBacklogSize": lambda values: not values.get_subscription_backlog_size,
    "getEarliestTimeInBacklog": "get_earliest_time_in_backlog",
}
# What the CLI cannot ask for goes along as the Java client's defaults.
_NO_EXCLUSIONS = "excludePublishers=false&excludeConsumers=false"
STATS_INTERNAL = get(
    "stats-internal",
    "{topic}/internalStats",
    "Show the ledgers and cursors of a topic.",
    TOPIC_ARGUMENT,
    option("--metadata", "-m", flag=True, help="Metadata of the ledgers too."),
    query={"metadata": "metadata"},
)
INFO_INTERNAL = get(
    "info-internal", "{topic}/internal-info", "Show the metadata of a topic's ledgers.", TOPIC_ARGUMENT, show=gson
)
PARTITIONED_STATS_INTERNAL = get(
    "partitioned-stats-internal",
    "{topic}/partitioned-internalStats",
    "Show the ledgers and cursors of all partitions.",
    TOPIC_ARGUMENT,
)

COMMANDS = (
    get(
        "stats",
        f"{{topic}}/stats?{_NO_EXCLUSIONS}",
        "Show the rates, producers, subscriptions and backlog of a topic.",
        TOPIC_ARGUMENT,
        _PRECISE,
        _SIZES,
        _EARLIEST,
        query=_STATS_QUERY,
        example="orders --get-precise-backlog",
    ),
    STATS_INTERNAL,
    INFO_INTERNAL,
    get(
        "partitioned-stats",
        f"{{topic}}/partitioned-stats?{_NO_EXCLUSIONS}",
        "Show the stats of all partitions together.",
        TOPIC_ARGUMENT,
        option("--per-partition", flag=True, help="Of each partition too."),
        _PRECISE,
        _SIZES,
        _EARLIEST,
        query={"perPartition": "per_partition", **_STATS_QUERY},
    ),
    PARTITIONED_STATS_INTERNAL,
)
