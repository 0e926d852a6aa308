"""/admin/v2/broker-stats: metrics of a broker. Those of a JVM, Netty and bookies are empty or constant."""

from __future__ import annotations

import os
import platform
import socket
from typing import Any

from pulsarium.broker.auth.needs import SUPERUSER
from pulsarium.broker.model.namespace.policies import bundle_of
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.admin.namespace.bundles import boundaries_of
from pulsarium.broker.web.admin.topic.internal_stats import entries_to_read_position
from pulsarium.broker.web.admin.topic.stats_json import StatsWriter
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, WrittenJson, done, json_reply

ROOT = "/admin/v2/broker-stats"
FIRST_STATS_MS = 60_000  # statsUpdateFrequencyInSecs: when a broker first gathers stats of topics
ALLOCATORS = ("default", "ml-cache")
NO_ARENAS = {
    "numDirectArenas": 0,
    "numHeapArenas": 0,
    "numThreadLocalCaches": 0,
    "normalCacheSize": 64,  # Netty's defaults, which clients show
    "smallCacheSize": 256,
    "usedDirectMemory": 0,
    "usedHeapMemory": 0,
    "directArenas": [],
    "heapArenas": [],
}
CACHE = (
    "entries",
    "evicted_entries_total",
    "evictions",
    "hits_rate",
    "hits_throughput",
    "inserted_entries_total",
    "misses_rate",
    "misses_throughput",
    "pool_active_allocations",
    "pool_active_allocations_huge",
    "pool_active_allocations_normal",
    "pool_active_allocations_small",
    "pool_allocated",
    "pool_used",
)
PENDING = (
    "dataLedgerOpenOp",
    "dataLedgerCloseOp",
    "dataLedgerCreateOp",
    "dataLedgerDeleteOp",
    "cursorLedgerOpenOp",
    "cursorLedgerCloseOp",
    "cursorLedgerCreateOp",
    "cursorLedgerDeleteOp",
)


@route("GET", f"{ROOT}/metrics", needs=SUPERUSER)
async def get_metrics(call: Call) -> HttpReply:
    """Return metrics of the entry cache, the broker's health and its connections."""
    broker, ledgers, slice_ = call.broker, 0, Slice()
    for topic in broker.loaded_topics():
        ledgers += topic.ledger is not None
        await slice_.pause()
    cache: dict[str, float] = {
        f"brk_ml_cache_{name}": 0.0 if "_rate" in name or "_through" in name else 0 for name in CACHE
    }
    cache |= {"brk_ml_cache_used_size": broker.cluster.cache.size, "brk_ml_count": ledgers}
    whose = {"broker": broker.advertised_address, "cluster": broker.config.clusterName}
    return json_reply(
        [
            {"metrics": cache, "dimensions": {}},
            {"metrics": {"brk_health": 1}, "dimensions": {**whose, "metric": "broker_health"}},
            {
                "metrics": {"brk_active_connections": len(broker.sessions)},
                "dimensions": {**whose, "metric": "broker_connection"},
            },
        ]
    )


@route("GET", f"{ROOT}/mbeans", needs=SUPERUSER)
def get_mbeans(call: Call) -> HttpReply:
    """Return one MBean, that of the process: there is no JVM with others."""
    machine, began = call.broker.clock.machine, call.broker.up_since_ms
    process = {
        "Name": f"{os.getpid()}@{socket.gethostname()}",
        "Pid": os.getpid(),
        "StartTime": began,
        "Uptime": machine.now_ms() - began,
        "VmName": platform.python_implementation(),
        "VmVersion": platform.python_version(),
    }
    return json_reply([{"metrics": process, "dimensions": {"MBean": "java.lang:type=Runtime"}}])


@route("GET", f"{ROOT}/topics", needs=SUPERUSER)
async def get_topics(call: Call) -> HttpReply:
    """Return stats of the loaded topics, by namespace, bundle and domain. Return none in a broker's first minute."""
    broker, slice_ = call.broker, Slice()
    if broker.clock.now_ms() - broker.started_ms < FIRST_STATS_MS:
        return json_reply({})
    found: dict[str, dict[str, dict[str, WrittenJson]]] = {}
    writer = StatsWriter(call.rates, broker.web_address)
    for topic in broker.loaded_topics():
        namespace = str(topic.name.namespace_name)
        bundle = bundle_of(boundaries_of(broker, namespace), topic.name)
        kinds = found.setdefault(namespace, {}).setdefault(bundle, {})
        kinds.setdefault(topic.name.domain, WrittenJson())[str(topic.name)] = await topic_figures(writer, topic)
        await slice_.pause()
    return json_reply(found)


@route("GET", f"{ROOT}/bookieops", needs=SUPERUSER)
async def get_pending_operations(call: Call) -> HttpReply:
    """Return the pending operations on bookies, by namespace and topic: always 0."""
    found: dict[str, WrittenJson] = {}
    slice_ = Slice()
    for topic in call.broker.loaded_topics():
        if topic.ledger is not None:
            of_namespace = found.setdefault(str(topic.name.namespace_name), WrittenJson())
            of_namespace[str(topic.name)] = dict.fromkeys(PENDING, 0)
        await slice_.pause()
    return json_reply(found)


@route("GET", f"{ROOT}/allocator-stats/{{allocator}}", needs=SUPERUSER)
def get_allocator_stats(call: Call) -> HttpReply:
    """Return an allocator without arenas."""
    name = call.parameter("allocator")
    if name not in ALLOCATORS:
        raise AdminError(406, f"Invalid allocator name : {name}")
    return json_reply(NO_ARENAS)


@route("GET", f"{ROOT}/load-report", needs=SUPERUSER)
def get_load_report(call: Call) -> HttpReply:
    """Return no load report, as a standalone does."""
    return done()


@route("GET", f"{ROOT}/broker-resource-availability/{{tenant}}/{{namespace}}", needs=SUPERUSER)
def get_resource_availability(call: Call) -> HttpReply:
    """Refuse the question which brokers have capacity for a namespace, as a standalone does."""
    raise AdminError(409, "org.apache.pulsar.broker.loadbalance.NoopLoadManager does not support this operation")


CLIENT = ("address", "connectedSince", "clientVersion", "metadata")
PUBLISHER = (*CLIENT, "msgRateIn", "msgThroughputIn", "averageMsgSize", "producerId", "producerName")
CONSUMER = (
    *CLIENT,
    "consumerName",
    "availablePermits",
    "msgRateOut",
    "msgThroughputOut",
    "msgRateRedeliver",
    "avgMessagesPerEntry",
    "messageAckRate",
)
SUBSCRIPTION = (
    "msgBacklog",
    "msgRateExpired",
    "msgRateOut",
    "messageAckRate",
    "msgThroughputOut",
    "msgRateRedeliver",
    "type",
    "filterProcessedMsgCount",
    "filterAcceptedMsgCount",
    "filterRejectedMsgCount",
    "filterRescheduledMsgCount",
    "msgDropRate",
)
TOPIC = (
    "averageMsgSize",
    "msgRateIn",
    "msgRateOut",
    "msgThroughputIn",
    "msgThroughputOut",
    "storageSize",
    "backlogSize",
)
RENAMED = {
    "msgInCount": "msgInCounter",
    "bytesInCount": "bytesInCounter",
    "msgOutCount": "msgOutCounter",
    "bytesOutCount": "bytesOutCounter",
}


async def topic_figures(writer: StatsWriter, topic: Topic) -> dict[str, Any]:
    """Return the stats of one topic."""
    subscriptions = SubscriptionStatsWriter(topic)
    stats = await writer.topic(topic, subscriptions)
    figures = _some(stats, TOPIC) | {name: stats[kept] for name, kept in RENAMED.items()}
    return figures | {
        "publishers": [_some(each, PUBLISHER) for each in stats["publishers"]],
        "replication": {},
        "subscriptions": subscriptions.written,
        "producerCount": len(stats["publishers"]),
        "pendingAddEntriesCount": 0,
        "filteredEntriesCount": 0,
    }


class SubscriptionStatsWriter:
    """Write the stats of a topic's subscriptions."""

    def __init__(self, topic: Topic) -> None:
        self.written = WrittenJson()
        self._topic = topic

    def __setitem__(self, name: str, stats: dict[str, Any]) -> None:
        self.written[name] = _subscription(stats, self._topic.subscriptions.get(name))


def _subscription(stats: dict[str, Any], subscription: Subscription | None) -> dict[str, Any]:
    figures = _some(stats, SUBSCRIPTION) | {"consumers": [_some(each, CONSUMER) for each in stats["consumers"]]}
    cursor = None if subscription is None else subscription.cursor
    if cursor is not None:
        figures["numberOfEntriesSinceFirstNotAckedMessage"] = entries_to_read_position(cursor)
        figures["totalNonContiguousDeletedMessagesRange"] = cursor.individual_acks.count_ranges()
    return figures


def _some(stats: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: stats[name] for name in names if name in stats}
