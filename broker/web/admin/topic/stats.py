"""/admin/v2/persistent and non-persistent: stats of topics, and sums over partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.admin.topic.partitions import shown
from pulsarium.broker.web.admin.topic.stats_json import OLDEST_AGE, SUBSCRIPTION_TIMES, StatsWriter
from pulsarium.broker.web.admin.topic.topics import find, parts
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, WrittenJson, json_reply


@route("GET", *of_topic("/stats"), needs=topic_operation("GET_STATS"))
async def get_stats(call: Call) -> HttpReply:
    """Return the stats of a topic, its producers, subscriptions and consumers."""
    return json_reply(await writer_of(call).topic(find(call), WrittenJson()))


@route("GET", *of_topic("/partitioned-stats"), needs=topic_operation("GET_STATS"), anywhere=True)
async def get_partitioned_stats(call: Call) -> HttpReply:
    """Return the stats of all partitions added up. Include each partition unless perPartition=false."""
    name, broker = call.topic, call.broker
    info = broker.metadata.partitioned.get(str(name))
    if info is None:
        text = f"Partitioned Topic {name} not found" if name.is_persistent else f"Partitioned topic not found {name}"
        raise AdminError(404, text)
    writer = writer_of(call)
    stats = {
        str(part): await writer.topic(broker.topics.find(part), {})
        for part in parts(broker, name)
        if broker.topics.exists(part)  # a partition may be deleted before its turn
    }
    each = stats if call.flag("perPartition", default=True) else {}
    return json_reply(await together(list(stats.values()), shown(info), each, persistent=name.is_persistent))


def writer_of(call: Call) -> StatsWriter:
    """Return a writer of the stats that the query asks for."""
    return StatsWriter(
        call.rates,
        call.broker.web_address,
        exclude_publishers=call.flag("excludePublishers"),
        exclude_consumers=call.flag("excludeConsumers"),
        earliest_time=call.flag("getEarliestTimeInBacklog"),
        backlog_size=call.flag("subscriptionBacklogSize", default=True),
    )


Json = dict[str, Any]

NOT_OF_ALL = ("ownerBroker", "deduplicationStatus")
OLDEST = ("topicCreationTimeStamp", "earliestMsgPublishTimeInBacklogs")
NEWEST = ("lastPublishTimeStamp", "backlogQuotaLimitSize", "backlogQuotaLimitTime")
# of clients, which may differ between partitions
PUBLISHER_FIELDS = ("msgRateIn", "msgThroughputIn", "averageMsgSize", "chunkedMessageRate")
CONSUMER_NOT_ADDED = ("avgMessagesPerEntry", "lastAckedTimestamp", "lastConsumedTimestamp", "lastConsumedFlowTimestamp")
CONSUMER_OWN = ("address", "connectedSince", "clientVersion", "metadata")
EPOCH = "1970-01-01T00:00:00Z"


async def together(partitions: list[Json], metadata: Json, each: Mapping[str, Json], *, persistent: bool) -> Json:
    """Return stats added up over `partitions`. The answer has `each` under "partitions"."""
    publishers = _publishers([stats["publishers"] for stats in partitions], persistent=persistent)
    subscriptions = await _subscriptions([stats["subscriptions"] for stats in partitions])
    total: Json = {}
    for field, first in (partitions[0] if partitions else {}).items():
        if field == "publishers":
            total[field] = publishers
        elif field == "subscriptions":
            total[field] = subscriptions
        elif field not in NOT_OF_ALL:
            total[field] = _added(field, [stats[field] for stats in partitions], first)
    about = {"metadata": metadata, "partitions": each}
    if persistent or not total:
        return total | about
    clients = {field: total.pop(field) for field in ("publishers", "subscriptions", "replication")}
    return total | about | clients


def _added(field: str, values: list[Any], first: Any) -> Any:
    if field == OLDEST_AGE:
        return max(0, *values)
    if field in OLDEST:
        return min((value for value in values if value > 0), default=0)
    if field in NEWEST:
        return max(values)
    if field == "averageMsgSize":
        return sum(values) / len(values)
    if isinstance(first, bool):
        return any(values)
    if isinstance(first, (int, float)):
        return sum(values)
    return first


def _publishers(lists: list[list[Json]], *, persistent: bool) -> list[Json]:
    """Return one entry for each partial producer by name. Add up other producers by their place in the lists."""
    named: dict[str, list[Json]] = {}
    for publisher in (each for publishers in lists for each in publishers if each["supportsPartialProducer"]):
        named.setdefault(publisher["producerName"], []).append(publisher)
    rows = zip_longest(*([each for each in publishers if not each["supportsPartialProducer"]] for publishers in lists))
    found = [_publisher([each for each in row if each is not None], persistent=persistent) for row in rows]
    return found + [
        {**_publisher(group, persistent=persistent), "supportsPartialProducer": True, "producerName": name}
        for name, group in named.items()
    ]


def _publisher(group: list[Json], *, persistent: bool) -> Json:
    rates: Json = {field: sum(each[field] for each in group) for field in PUBLISHER_FIELDS}
    rates["averageMsgSize"] /= len(group)
    drop = {} if persistent else {"msgDropRate": 0.0}
    return rates | {"producerId": 0, "supportsPartialProducer": False} | drop


async def _subscriptions(maps: list[dict[str, Json]]) -> dict[str, Json]:
    total: dict[str, Json] = {}
    slice_ = Slice()
    for name in dict.fromkeys(name for subscriptions in maps for name in subscriptions):
        total[name] = _subscription([each[name] for each in maps if name in each])
        await slice_.pause()
    return total


def _subscription(group: list[Json]) -> Json:
    total: Json = {}
    for field, first in group[0].items():
        if field == "consumers":
            total[field] = _consumers([each["consumers"] for each in group])
        elif field in SUBSCRIPTION_TIMES:
            total[field] = 0
        elif field == "subscriptionProperties":
            total[field] = {key: value for each in group for key, value in each[field].items()}
        elif field == OLDEST_AGE:
            total[field] = max(each[field] for each in group)
        elif field == "earliestMsgPublishTimeInBacklog":
            total[field] = min((each[field] for each in group if each[field] > 0), default=0)
        elif field != "activeConsumerName":
            total[field] = _added(field, [each[field] for each in group], first)
    return total


def _consumers(lists: list[list[Json]]) -> list[Json]:
    rows: Iterable[tuple[Json | None, ...]] = zip_longest(*lists)
    return [_consumer([each for each in row if each is not None]) for row in rows]


def _consumer(group: list[Json]) -> Json:
    total: Json = {}
    for field, first in group[0].items():
        if field in CONSUMER_NOT_ADDED:
            total[field] = 0
        elif field in ("firstMessagesSentTimestamp", "firstConsumedFlowTimestamp"):
            total[field] = max(each[field] for each in group)
        elif field in ("lastAckedTime", "lastConsumedTime"):
            total[field] = EPOCH
        elif field not in CONSUMER_OWN:
            total[field] = _added(field, [each[field] for each in group], first)
    return total
