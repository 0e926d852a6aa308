"""/admin/v2/persistent and non-persistent: stats of topics, and of partitioned ones together."""

from __future__ import annotations

from pulsarium.broker.admin.topic.partitioned_stats import together
from pulsarium.broker.admin.topic.partitions import shown
from pulsarium.broker.admin.topic.stats_json import StatsWriter
from pulsarium.broker.admin.topic.topics import find, parts
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import of_topic, route
from pulsarium.broker.http.reply import Reply, Written, json_reply


@route("GET", *of_topic("/stats"), needs=topic_operation("GET_STATS"))
async def get_stats(call: Call) -> Reply:
    """Who publishes to a topic, who consumes it, and how far they are."""
    return json_reply(await _writer(call).topic(find(call), Written()))


@route("GET", *of_topic("/partitioned-stats"), needs=topic_operation("GET_STATS"), anywhere=True)
async def get_partitioned_stats(call: Call) -> Reply:
    """The stats of all partitions added up, and unless perPartition=false of each."""
    name, broker = call.topic, call.broker
    info = broker.metadata.partitioned.get(str(name))
    if info is None:
        text = f"Partitioned Topic {name} not found" if name.is_persistent else f"Partitioned topic not found {name}"
        raise AdminError(404, text)
    writer = _writer(call)
    stats = {
        str(part): await writer.topic(broker.topics.find(part), {})
        for part in parts(broker, name)
        if broker.topics.exists(part)  # still, for it is asked when the partition's turn comes
    }
    each = stats if call.flag("perPartition", default=True) else {}
    return json_reply(await together(list(stats.values()), shown(info), each, persistent=name.is_persistent))


def _writer(call: Call) -> StatsWriter:
    return StatsWriter(
        call.rates,
        call.broker.web_address,
        exclude_publishers=call.flag("excludePublishers"),
        exclude_consumers=call.flag("excludeConsumers"),
        earliest_time=call.flag("getEarliestTimeInBacklog"),
        backlog_size=call.flag("subscriptionBacklogSize", default=True),
    )
